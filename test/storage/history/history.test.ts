import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NAME_LABEL } from '../../../protocol/prometheus/samples.ts'
import { History } from '../../../storage/history/history.ts'
import { OTHER_NAME_LABEL } from '../../../storage/history/series-table.ts'
import {
  HistoryExpressionError,
  type HistoryLimits,
  type HistoryMatcher,
  type HistorySeries,
} from '../../../storage/history/store.ts'
import {
  all,
  append,
  DAY_MS,
  HOUR_MS,
  linesOf,
  query,
  type Sample,
  STALE,
  START_MS,
  series,
  UNLIMITED,
} from './history-model.ts'

let directory = ''
let now = START_MS + 12 * HOUR_MS
let history: History
const open = (limits: HistoryLimits = UNLIMITED): History =>
  History.open({ directory, clock: () => now, monotonicMs: () => now, limits })
const reopen = (limits?: HistoryLimits): void => {
  history.close()
  history = open(limits)
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'history-'))
  now = START_MS + 12 * HOUR_MS
  history = open()
})
afterEach(() => {
  history.close()
  rmSync(directory, { recursive: true, force: true })
})

/** Lets time pass, and all work be done. */
function pass(ms: number): void {
  now += ms
  while (history.work(1000));
}

const LOAD = series('host_load_one')

function dataFiles(): string[] {
  return readdirSync(directory).filter((name) => name.endsWith('.db') && name !== 'fresh.db')
}

const selected = (matchers: readonly HistoryMatcher[] = [], tenant = 'acme'): string[] =>
  linesOf(all(history.select(query(tenant, { matchers }))))

describe('what is appended', () => {
  const samples: Sample[] = [
    [LOAD, now - 3000, 1],
    [LOAD, now - 1000, 2.5],
    [LOAD, now - 2000, STALE],
    [LOAD, now - 1000, 3],
  ]
  const expected = [
    `host_load_one[] ${START_MS + 12 * HOUR_MS - 3000} 3ff00000:0`,
    `host_load_one[] ${START_MS + 12 * HOUR_MS - 2000} 7ff00000:2`,
    `host_load_one[] ${START_MS + 12 * HOUR_MS - 1000} 40080000:0`,
  ]

  it('is seen from the commit on, sorted, with the last of one time', () => {
    append(history, samples)
    expect(history.uncommitted).toBe(4)
    expect(selected()).toEqual([])
    history.commit()
    expect(history.uncommitted).toBe(0)
    expect(selected()).toEqual(expected)
    reopen()
    expect(selected()).toEqual(expected)
  })

  it('counts from its oldest day, also where that came last', () => {
    const oldest = () => history.figures().tenants.get('acme')?.oldestMs
    append(history, [[LOAD, now, 1]])
    history.commit()
    pass(DAY_MS)
    pass(DAY_MS)
    expect(oldest()).toBe(START_MS)
    append(history, [[LOAD, START_MS - 2 * DAY_MS, 1]])
    history.commit()
    expect(oldest()).toBe(START_MS - 3 * DAY_MS)
  })

  it('is the same as pages, in the file of its day, and with what is late', () => {
    append(history, samples)
    history.commit()
    pass(HOUR_MS)
    expect(selected()).toEqual(expected)
    expect(history.figures().tenants.get('acme')).toMatchObject({ series: 1, samples: 3, oldestMs: START_MS })
    pass(DAY_MS)
    expect(dataFiles()).toEqual([expect.stringMatching(/^2026-08-31\.\d+\.db$/)])
    expect(selected()).toEqual(expected)
    append(history, [[LOAD, START_MS + 12 * HOUR_MS - 3000, 7]])
    history.commit()
    const replaced = [expected[0]!.replace('3ff00000', '401c0000'), ...expected.slice(1)]
    expect(selected()).toEqual(replaced)
    pass(HOUR_MS)
    expect(selected()).toEqual(replaced)
    expect(history.figures().late).toBe(1)
    pass(2 * DAY_MS)
    // The month is over, too.
    expect(dataFiles()).toEqual([expect.stringMatching(/^2026-08-31/), expect.stringMatching(/^2026-08\.\d+\.db$/)])
    expect(selected()).toEqual(replaced)
    reopen()
    expect(selected()).toEqual(replaced)
    expect(history.figures().damagedPages).toBe(0)
  })

  it('goes with its position and its losses', () => {
    expect(history.positionOf('acme')).toBeUndefined()
    const position = { generation: 'g', channel: 7, transaction: 12, committed: 5, takenMs: 34 }
    const loss = { native: 'host.*', fromMs: now - 5000, toMs: now - 4000, count: 3, reason: 'overflow' }
    append(history, samples, { position, losses: [loss] })
    expect(history.positionOf('acme')).toEqual(position)
    history.commit()
    append(history, [], { position: { ...position, transaction: 15 } })
    history.commit()
    reopen()
    expect(history.positionOf('acme')).toEqual({ ...position, transaction: 15 })
    const range = { tenant: 'acme', fromMs: now - 4000, toMs: now }
    expect(history.losses(range)).toEqual([loss])
    expect(history.losses({ ...range, fromMs: now - 3999 })).toEqual([])
    expect(history.losses({ ...range, tenant: 'other' })).toEqual([])
  })

  it('is refused where its series is not known, or its time is none', () => {
    const reference = history.seriesOf(LOAD)!
    const times = Float64Array.from([now, now + 0.5, Number.NaN, -1, now - 31 * DAY_MS, 1e15, now + 1])
    const ids = Uint32Array.from(times, () => reference)
    ids[6] = 99
    const batch = { tenant: 'acme', position: undefined, losses: [], length: 7 }
    history.append({ ...batch, series: ids, times, values: new Float64Array(7) })
    history.append({ ...batch, tenant: 'other', series: ids, times, values: new Float64Array(7), length: 1 })
    history.commit()
    expect(selected()).toHaveLength(1)
    expect(selected([], 'other')).toEqual([])
    expect(history.figures()).toMatchObject({ refusedSamples: 5, tooOld: 2 })
  })
})

describe('series', () => {
  const fleet: HistorySeries[] = ['a', 'b', 'c'].flatMap((host) => [
    series('node_load1', { instance: host, job: 'node' }),
    series('http_requests_total', { instance: host, code: host === 'c' ? '500' : '200' }),
  ])

  beforeEach(() => {
    append(
      history,
      fleet.map((of, index): Sample => [of, now, index]),
    )
    append(history, [[series('node_load1', { instance: 'a' }, 'other'), now, 9]])
    history.commit()
  })

  const names = (...matchers: [string, HistoryMatcher['operator'], string][]): string[] =>
    all(
      history.series({
        tenant: 'acme',
        matchers: matchers.map(([label, operator, text]) => ({ label, operator, text })),
      }),
    ).map(({ name, labels }) => `${name} ${labels.map(([label, text]) => `${label}=${text}`).join(' ')}`)

  const loads = ['node_load1 instance=a job=node', 'node_load1 instance=b job=node', 'node_load1 instance=c job=node']
  const requests = [
    'http_requests_total code=200 instance=a',
    'http_requests_total code=200 instance=b',
    'http_requests_total code=500 instance=c',
  ]

  it('by a name that very many have, and by texts that few have, in any order', () => {
    const many = Array.from({ length: 1_200 }, (_, index) => {
      const labels = { place: String(index), half: String(index % 2), zone: index < 3 ? 'rare' : 'usual' }
      return [series('many', labels), now, index] as const
    })
    append(history, many)
    // New series are stored in steps.
    for (let step = 0; step < many.length / 100; step++) history.commit()
    const of = (...matchers: Parameters<typeof names>): string[] =>
      names(...matchers).map((text) => /place=(\d+)/.exec(text)?.[1] ?? '')
    const [name, rare, half] = [
      ['__name__', '=', 'many'] as const,
      ['zone', '=', 'rare'] as const,
      ['half', '=', '0'] as const,
    ]
    expect(of([...name], [...rare])).toEqual(['0', '1', '2'])
    expect(of([...rare], [...half], [...name])).toEqual(['0', '2'])
    expect(of([...half], ['place', '=~', '4|5|6'], [...name])).toEqual(['4', '6'])
    expect(of([...name], [...rare], ['half', '!=', '0'])).toEqual(['1'])
    expect(of([...rare], ['__name__', '=~', 'man.'])).toEqual(['0', '1', '2'])
    expect(of([...rare], ['__name__', '=', 'node_load1'])).toEqual([])
    expect(of([...half], [...name])).toHaveLength(600)
  })

  it.each<[what: string, matchers: [string, HistoryMatcher['operator'], string][], found: string[]]>([
    ['by name', [['__name__', '=', 'node_load1']], loads],
    ['by their native name', [['__name__', '=', 'node.load1']], loads],
    ['but those of a name', [['__name__', '!=', 'node_load1']], requests],
    ['but those of a native name', [['__name__', '!=', 'node.load1']], requests],
    ['by an expression of the name', [['__name__', '=~', 'node.+']], loads],
    ['but by an expression of the native name', [['__name__', '!~', 'node[.].*']], requests],
    ['by a label', [['instance', '=', 'b']], [loads[1]!, requests[1]!]],
    [
      'by two labels',
      [
        ['instance', '=', 'b'],
        ['code', '=', '200'],
      ],
      [requests[1]!],
    ],
    ['without a label', [['code', '=', '']], loads],
    ['with a label', [['code', '!=', '']], requests],
    ['without a text', [['code', '!=', '200']], [...loads, requests[2]!]],
    ['by an expression', [['code', '=~', '2..|4..']], requests.slice(0, 2)],
    ['by an expression that takes nothing, too', [['code', '=~', '(5..)?']], [...loads, requests[2]!]],
    ['but by an expression', [['code', '!~', '2..']], [...loads, requests[2]!]],
    ['but by one that takes nothing, too', [['code', '!~', '|2..']], [requests[2]!]],
    ['of a part only as a whole', [['instance', '=~', '']], []],
    ['of another label', [['zone', '=~', '.*']], [...loads, ...requests]],
    ['of no label', [['zone', '=', 'x']], []],
    [
      'of none',
      [
        ['instance', '=', 'a'],
        ['instance', '=', 'b'],
      ],
      [],
    ],
    ['all', [], [...loads, ...requests]],
  ])('are found %s', (_, matchers, found) => {
    expect(names(...matchers).toSorted()).toEqual(found.toSorted())
  })

  it.each([
    ['instance', '=~', 'a|c'],
    ['instance', '=~', 'a|'],
    ['instance', '!~', 'a|b'],
    ['code', '=~', '200|'],
    ['code', '=~', '|200|500'],
    ['code', '!~', '|200'],
    ['code', '=~', '200|404'],
    ['zone', '=~', '|x'],
    ['__name__', '=~', 'node_load1|x'],
    ['__name__', '=~', 'node.load1|http.requests'],
    ['__name__', '!~', 'node.load1|x'],
  ] as const)('are found alike by a list and its expression: %s%s"%s"', (label, operator, text) => {
    const plain = names([label, operator, text])
    const matcher = { label, operator, text, texts: text.split('|') }
    const listed = all(history.series({ tenant: 'acme', matchers: [matcher] }))
    expect(listed.map(({ name, labels }) => `${name} ${labels.map(([l, t]) => `${l}=${t}`).join(' ')}`)).toEqual(plain)
  })

  it('are found by a list that is longer than an expression may be', () => {
    const texts = Array.from({ length: 5_000 }, (_, n) => `host${n}`).concat('b')
    const matchers = [{ label: 'instance', operator: '=~', text: texts.join('|'), texts } as const]
    expect(all(history.series({ tenant: 'acme', matchers }))).toHaveLength(2)
  })

  it('go on after a place, also with those that came meanwhile', () => {
    const [one, other, third] = ['one', 'other', 'third'].map((host) => series('paged', { host }))
    const append1 = (of: HistorySeries | undefined): void => append(history, [[of as HistorySeries, now, 1]])
    append1(one)
    append1(other)
    history.commit()
    const paged = [{ label: '__name__', operator: '=', text: 'paged' }] as const
    const hostsAfter = (after?: number, stepMs?: number) =>
      all(history.select(query('acme', { matchers: paged, after, stepMs }))).map(({ series, place }) => {
        return [series.labels[0]?.[1], place] as const
      })
    const [[, first] = [], [, second] = []] = hostsAfter()
    append1(third)
    history.commit()
    expect(hostsAfter(first).map(([host]) => host)).toEqual(['other', 'third'])
    expect(hostsAfter(second, DAY_MS).map(([host]) => host)).toEqual(['third'])
  })

  it('have one reference, also after a restart', () => {
    const reference = history.seriesOf(fleet[0]!)
    expect(history.seriesOf({ ...fleet[0]!, labels: [...fleet[0]!.labels] })).toBe(reference)
    reopen()
    expect(history.seriesOf(fleet[0]!)).toBe(reference)
    expect(history.seriesOf(series('new'))).toBeGreaterThan(reference!)
  })

  it('are known as long as they are stored, also if the clock was set forward and back', () => {
    const reference = history.seriesOf(fleet[0]!)!
    const { length } = selected()
    for (const ms of [3 * HOUR_MS, 3 * HOUR_MS, -6 * HOUR_MS]) pass(ms)
    const columns = { series: Uint32Array.of(reference), times: Float64Array.of(now + 1), values: Float64Array.of(1) }
    history.append({ tenant: 'acme', position: undefined, losses: [], length: 1, ...columns })
    history.commit()
    expect(history.figures().refusedSamples).toBe(0)
    pass(HOUR_MS)
    expect(selected()).toHaveLength(length + 1)
  })

  it('are told apart, whatever their names are', () => {
    const odd = [series('a[["b","c"]]'), series('a', { b: 'c' }), series('b","c"]]a'), series('a', { 'b","c': 'x' })]
    expect(new Set(odd.map((of) => history.seriesOf(of))).size).toBe(4)
  })

  it('of two metrics with one name and the same labels are two: the first has them, the other has its own name, too', () => {
    const twins = ['a.b', 'a_b', 'a-b'].map((native) => ({ ...series('a_b', { host: 'h', zone: 'z' }), native }))
    const foreign = series('a_b', { host: 'h', zone: 'z', cinnabar_name: 'a-b' })
    const shown = (): string[] =>
      all(history.select(query('acme', { matchers: [{ label: '__name__', operator: '=', text: 'a_b' }] })))
        .map(({ series: of, values }) => `${of.native} ${of.labels.map((label) => label.join('='))} ${values}`)
        .toSorted()
    append(history, [[foreign, now, 7]])
    append(
      history,
      twins.map((of, index) => [of, now, index]),
    )
    const expected = [
      'a-b cinnabar_name=a-b,cinnabar_name_=a-b,host=h,zone=z 2',
      'a.b cinnabar_name=a-b,host=h,zone=z 7',
      'a.b host=h,zone=z 0',
      'a_b cinnabar_name=a_b,host=h,zone=z 1',
    ]
    history.commit()
    expect(shown()).toEqual(expected)
    // Whoever comes first after a restart.
    reopen()
    const references = twins.toReversed().map((of) => history.seriesOf(of))
    expect(new Set(references).size).toBe(3)
    append(
      history,
      twins.toReversed().map((of, index) => [of, now, 2 - index]),
    )
    history.commit()
    expect(shown()).toEqual(expected)
    expect(twins.map((of) => history.seriesOf(of))).toEqual(references.toReversed())
    expect(OTHER_NAME_LABEL).toBe(NAME_LABEL)
  })

  it('are refused over the quota of their tenant, and that is counted', () => {
    reopen({ ...UNLIMITED, quotas: new Map([['acme', { series: 7, bytes: 2 ** 40 }]]) })
    expect(history.seriesOf(series('seventh'))).toBeDefined()
    expect(history.seriesOf(series('eighth'))).toBeUndefined()
    expect(history.seriesOf(series('eighth', {}, 'other'))).toBeDefined()
    expect(history.seriesOf(fleet[0]!)).toBeDefined()
    expect(history.figures().refusedSeries).toBe(1)
    history.limit(UNLIMITED)
    expect(history.seriesOf(series('eighth'))).toBeDefined()
  })

  it('leave the index while others are born', () => {
    const hour = { ...UNLIMITED, keepMs: HOUR_MS, keepRollupsMs: HOUR_MS }
    reopen(hour)
    append(history, [[fleet[0]!, now, 1]])
    history.commit()
    for (let day = 0; day < 6; day++) {
      // What is born has a name of those that leave.
      append(history, [[series(fleet[0]!.name, { day: String(day) }), now, 1]])
      pass(DAY_MS)
      history.commit()
    }
    expect(names()).toHaveLength(2)
    append(history, [[series(fleet[0]!.name, { last: 'yes' }), now, 1]])
    pass(6 * DAY_MS)
    history.commit()
    expect(names()).toHaveLength(1)
    reopen(hour)
    expect(names()).toHaveLength(1)
  })

  it('leave the index with their last file, and others stay', () => {
    const kept = { ...UNLIMITED, keepMs: 2 * DAY_MS, keepRollupsMs: 3 * DAY_MS }
    reopen(kept)
    for (let day = 0; day < 8; day++) {
      append(history, [[fleet[0]!, now, day]])
      history.commit()
      pass(DAY_MS)
      history.work(0)
    }
    pass(2 * HOUR_MS)
    expect(names()).toEqual(loads.slice(0, 1))
    expect(names(['__name__', '=~', 'http.*'])).toEqual([])
    expect(selected([], 'acme')).toHaveLength(2)
    expect(selected([], 'other')).toEqual([])
    expect(history.figures().tenants.get('acme')).toMatchObject({ series: 1 })
    expect(history.seriesOf(fleet[1]!)).toBeDefined()
  })

  it('of an expression that is whole only with what is put around it are an error', () => {
    const matchers: HistoryMatcher[] = [{ label: 'host', operator: '=~', text: 'a)|(b' }]
    expect(() => all(history.select(query('acme', { matchers })))).toThrow(HistoryExpressionError)
  })

  it('of a text that is too long are an error', () => {
    const matchers: HistoryMatcher[] = ['host', 'job'].map((label) => ({
      label,
      operator: '!=',
      text: 'a|'.repeat(4_097),
    }))
    expect(() => all(history.select(query('acme', { matchers })))).toThrow(
      'the texts of the matchers: 16388 characters together, and at most 16384 are compared',
    )
    const repeated = (text: string) => ['a', 'b'].map((label) => ({ label, operator: '=~', text }) as const)
    expect(() => all(history.select(query('acme', { matchers: repeated('a.'.repeat(2_501)) })))).toThrow(
      'patterns and expressions have 5002 characters together, and may have 5000',
    )
    expect(all(history.select(query('acme', { matchers: repeated('a.'.repeat(2_500)) })))).toEqual([])
    expect(all(history.select(query('acme', { matchers: matchers.slice(1) })))).not.toEqual([])
  })

  it('of an expression that is none are an error', () => {
    const matchers: HistoryMatcher[] = [{ label: 'a', operator: '=~', text: '(' }]
    expect(() => all(history.select(query('acme', { matchers })))).toThrow(HistoryExpressionError)
    expect(() => all(history.series({ tenant: 'acme', matchers }))).toThrow(/`\(` is no regular expression/)
    expect(() => [...history.drop({ tenant: 'acme', matchers })]).toThrow(HistoryExpressionError)
  })
})
