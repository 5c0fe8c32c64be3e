/** Selections that are asked for again and again: they have what came, and not what went, since the last time. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KeptSelections } from '../../../storage/history/kept-selections.ts'
import { NameChanges } from '../../../storage/history/name-changes.ts'
import type { HistoryMatcher, HistorySeries } from '../../../storage/history/store.ts'
import { all } from './history-model.ts'
import { TestHistory } from './test-history.ts'

const named = (text: string): HistoryMatcher[] => [{ label: '__name__', operator: '=', text }]
const seriesOf = (name: string, host: string): HistorySeries => ({
  tenant: 'acme',
  name,
  native: `test.${name}`,
  labels: [['host', host]],
})

describe('what is kept', () => {
  let changes: NameChanges
  let kept: KeptSelections
  beforeEach(() => {
    changes = new NameChanges()
    kept = new KeptSelections(changes)
  })
  const keep = (matchers: HistoryMatcher[], ...places: number[]) =>
    kept.keep(1, matchers, Float64Array.from(places), changes.now)

  it('holds until a series of its name comes or goes, of its tenant', () => {
    const found = keep(named('a'), 1, 2)
    changes.note(1, 'b')
    changes.note(2, 'a')
    expect(kept.find(1, named('a'))).toBe(found)
    changes.note(1, 'a')
    expect(kept.find(1, named('a'))).toBeUndefined()
  })

  it('of any name holds until any series of the tenant does', () => {
    const matchers: HistoryMatcher[] = [{ label: 'host', operator: '=', text: 'h' }]
    keep(matchers, 1)
    changes.note(2, 'a')
    expect(kept.find(1, matchers)).toBeDefined()
    changes.note(1, 'a')
    expect(kept.find(1, matchers)).toBeUndefined()
  })

  it('does not hold if a series came after its state had begun', () => {
    const { now } = changes
    changes.note(1, 'a')
    kept.keep(1, named('a'), Float64Array.of(1), now)
    expect(kept.find(1, named('a'))).toBeUndefined()
  })

  it('does not hold when so many names have changed that they are not told apart any more', () => {
    keep(named('a'), 1)
    for (let name = 0; name <= 100_000; name++) changes.note(1, `n${name}`)
    expect(kept.find(1, named('a'))).toBeUndefined()
    keep(named('a'), 1)
    changes.note(1, 'b')
    expect(kept.find(1, named('a'))).toBeDefined()
  })

  it('gives way to what is used later, where it has too many series', () => {
    const many = Array.from({ length: 4_096 }, (_, place) => place)
    for (let name = 0; name < 32; name++) keep(named(`n${name}`), ...many)
    expect(kept.find(1, named('n0'))).toBeDefined()
    keep(named('more'), 1)
    expect(kept.find(1, named('n0'))).toBeDefined()
    expect(kept.find(1, named('n1'))).toBeUndefined()
    keep(named('most'), ...many, 5_000)
    expect(kept.find(1, named('most'))).toBeUndefined()
  })

  it('gives way to what is used later, where its matchers are long; very long ones are not kept at all', () => {
    const long = (of: number): HistoryMatcher[] => named(`n${of}_${'x'.repeat(4_000)}`)
    for (let of = 0; of < 3_000; of++) keep(long(of), 1)
    expect(kept.find(1, long(0))).toBeUndefined()
    expect(kept.find(1, long(1_000))).toBeDefined()
    const longer = named('x'.repeat(4_096))
    keep(longer, 1)
    expect(kept.find(1, longer)).toBeUndefined()
  })
})

describe('a history', () => {
  let history: TestHistory
  beforeEach(() => {
    history = new TestHistory()
  })
  afterEach(() => history.end())

  const hosts = (name: string): string[] => {
    const range = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, stepMs: 1 }
    const found = all(history.history.select({ tenant: 'acme', matchers: named(name), ...range }))
    return found.map(({ series }) => series.labels[0]?.[1] ?? '').sort()
  }

  it('has series that came since the last time, by either of their names, and none that has gone', () => {
    expect(hosts('a')).toEqual([])
    history.store([[seriesOf('a', 'h1'), history.now, 1]])
    expect([hosts('a'), hosts('test.a')]).toEqual([['h1'], ['h1']])
    history.store([[seriesOf('a', 'h2'), history.now, 1]])
    expect([hosts('a'), hosts('test.a')]).toEqual([
      ['h1', 'h2'],
      ['h1', 'h2'],
    ])
    history.history.removeTenant('acme')
    expect(hosts('a')).toEqual([])
    history.store([[seriesOf('a', 'h3'), history.now, 1]])
    expect(hosts('a')).toEqual(['h3'])
  })
})
