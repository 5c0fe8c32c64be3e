/** Groups that are due: which begins when, what each sees of what was recorded, and what becomes of results. */
import { beforeEach, describe, expect, it } from 'vitest'
import { QUERY_LIMITS } from '../../../../../promql/evaluate/budget.ts'
import type { LabelSet } from '../../../../../promql/label-set.ts'
import { MemorySource, type MemoryValue } from '../../../../../promql/memory-source.ts'
import { finish } from '../../../../../server/kernel/core/fair-work.ts'
import { createLogger } from '../../../../../server/kernel/core/log.ts'
import type { AlertGroupRow, AlertRow } from '../../../../../server/kit/expressions.ts'
import { RuleGroups } from '../../../../../server/wings/alerts/evaluation/groups.ts'
import type { RunningGroup } from '../../../../../server/wings/alerts/evaluation/running-group.ts'
import { readRuleFile } from '../../../../../server/wings/alerts/rules/rule-file.ts'
import type { Change } from '../../../../../storage/store.ts'
import { eventually } from '../../../../support/eventually.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

const MINUTE = 60_000
const reader = () => ({ userId: 0, tenant: 'default', name: 'alerts:', role: 'consumer' })
const ONE = '      - record: x\n        expr: vector(1)\n'

let clock: FakeClock
let source: MemorySource
/** What was recorded and is not in the source yet. */
let accepted: (readonly [LabelSet, number, MemoryValue])[]
let refused: string | undefined
/** What the next evaluation waits for. */
let answering: Promise<void>
let logged: string[]
/** What was stored of alerts, and of groups, by their keys. */
let alertRows: Map<string, AlertRow>
let groupRows: Map<string, AlertGroupRow>
let changes: number
/** The states of alerts that were reported. */
let states: string[]
let announced: number
/** Of these alerts nothing more will come. */
let forgotten: string[]
/** Until then somebody is asked about new alerts. */
let asking: Promise<void> | undefined
let groups: RuleGroups

beforeEach(() => {
  clock = new FakeClock()
  source = new MemorySource()
  accepted = []
  refused = undefined
  answering = Promise.resolve()
  logged = []
  alertRows = new Map()
  groupRows = new Map()
  changes = 0
  states = []
  announced = 0
  forgotten = []
  asking = undefined
  start()
})

function change(made: Change): void {
  changes++
  if ('remove' in made) {
    if (made.remove === 'alert') alertRows.delete(made.rule + made.labels)
  } else if (made.put === 'alert') alertRows.set(made.row.rule + made.row.labels, made.row)
  else if (made.put === 'alert group') groupRows.set(made.row.name, made.row)
}

/** A process over what was stored. */
function start(): void {
  groups?.stop()
  const stored = { journal: { change }, alerts: [...alertRows.values()], groups: [...groupRows.values()], files: [] }
  groups = new RuleGroups({
    tenant: 'default',
    expressions: {
      problem: undefined,
      limits: QUERY_LIMITS,
      async caughtUp() {
        store()
      },
      recurring: () => ({
        workedMs: 0,
        ask() {},
        async run(_reader, _timeMs, steps) {
          await answering
          return finish(steps(source))
        },
      }),
      stored,
    },
    stored,
    clock,
    log: createLogger('info', { write: (line) => void logged.push(line) }),
    publish({ labels, value }, timeMs) {
      accepted.push([labels, timeMs, value])
      return refused
    },
    work(steps) {
      for (;;) if (steps.next().done === true) return
    },
    emit({ alert }) {
      changes++
      states.push(alert.state)
    },
    forget: (labels) => void forgotten.push(String(labels)),
    announce: () => void announced++,
    asked: () => asking,
  })
}

function store(): void {
  for (const [labels, timeMs, value] of accepted.splice(0)) source.add(labels, [[timeMs, value]])
}

function groupOf(name: string, rules: string, more = ''): string {
  return `  - name: ${name}\n    interval: 1m\n${more}    rules:\n${rules}`
}

async function follow(...texts: readonly string[]): Promise<void> {
  const file = await readRuleFile(`groups:\n${texts.join('')}`)
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  groups.follow([{ path: '/etc/rules.yml', groups: file.groups, reader }], MINUTE)
}

function named(name: string): RunningGroup | undefined {
  return [...groups.groups].find(({ definition }) => definition.name === name)
}

/** The next evaluation goes on when the function is called that this gives. */
function held(): () => void {
  let end = (): void => {}
  answering = new Promise((resolve) => {
    end = resolve
  })
  return end
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function swept(isDone: () => boolean): Promise<void> {
  await eventually(async () => {
    groups.sweep()
    await turn()
    expect(isDone()).toBe(true)
  })
}

async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    const before = named('g')?.reachedMs ?? 0
    clock.advance(MINUTE)
    await swept(() => (named('g')?.reachedMs ?? 0) > before)
  }
}

/** The last value of a series without labels. */
function lastOf(name: string): number | undefined {
  store()
  for (const series of source.select([], 0, clock.wallMs()))
    if (series !== undefined && [...series.labels].some(([, text]) => text === name)) return series.values.at(-1)
  return undefined
}

describe('groups that are due', () => {
  it('begin as soon as another one has ended, and wait for no other second', async () => {
    const names = new Array(50).fill(0).map((_, index) => `g${index}`)
    await follow(...names.map((name) => groupOf(name, ONE)))
    clock.advance(MINUTE)
    groups.sweep()
    await eventually(() => expect(groups.counts.evaluations).toBe(names.length))
    expect(groups.lagMs).toBe(0)
  })

  it('are not held up by one that is slow', async () => {
    await follow(groupOf('slow', ONE))
    const end = held()
    clock.advance(MINUTE)
    groups.sweep()
    await turn()
    answering = Promise.resolve()
    await follow(groupOf('slow', ONE), groupOf('other', ONE))
    const firstMs = clock.wallMs() + MINUTE
    await eventually(async () => {
      clock.advance(1_000)
      groups.sweep()
      await turn()
      expect(named('other')?.reachedMs).toBeGreaterThan(firstMs)
    })
    expect(named('slow')?.reachedMs).toBeLessThan(firstMs)
    end()
  })

  it('after a time that was missed see what earlier times have recorded, also those of other groups', async () => {
    await follow(
      groupOf('a', '      - record: n\n        expr: n + 1 or vector(1)\n'),
      groupOf('b', '      - record: seen\n        expr: n\n'),
      groupOf('c', '      - record: counted\n        expr: count_over_time(n[10m])\n'),
    )
    clock.advance(10 * MINUTE)
    await swept(() => groups.lagMs === 0)
    expect(lastOf('n')).toBe(10)
    expect(lastOf('seen')).toBeGreaterThanOrEqual(9)
    expect(lastOf('counted')).toBeGreaterThanOrEqual(9)
  })

  it('and end after the stop change nothing', async () => {
    await follow(groupOf('g', '      - alert: Always\n        expr: vector(1)\n'))
    const end = held()
    clock.advance(MINUTE)
    groups.sweep()
    await turn()
    groups.stop()
    end()
    await turn()
    expect([changes, accepted]).toEqual([0, []])
  })
})

describe('a rule', () => {
  it('whose results are refused fails each time, and is logged once', async () => {
    await follow(groupOf('g', ONE))
    refused = 'there is no room'
    await minutes(3)
    expect(groups.counts.failures).toBe(3)
    expect(groups.problem).toMatch(/^the rule \S+ fails: /)
    expect(logged.filter((line) => line.includes('a rule cannot be evaluated')).length).toBe(1)
    expect(logged.filter((line) => line.includes('a rule can be evaluated again'))).toEqual([])
    expect(named('g')?.rules[0]?.health?.problem).toBe('there is no room')
  })

  it('whose results are refused is an alert from that evaluation on, and no longer', async () => {
    await follow(groupOf('g', ONE))
    await minutes(1)
    refused = 'there is no room'
    await minutes(1)
    expect(states).toEqual(['pending'])
    refused = undefined
    await minutes(1)
    expect(states).toEqual(['pending', 'inactive'])
  })

  it.each([
    ['is killed', start],
    ['reads its rules again', () => {}],
  ])('whose results are refused goes on failing where the process %s', async (_, between) => {
    await follow(groupOf('g', ONE))
    refused = 'there is no room'
    await minutes(7)
    expect(states).toEqual(['pending', 'firing'])
    between()
    await follow(groupOf('g', ONE.replace('vector(1)', 'vector(2)')))
    await minutes(3)
    expect(states).toEqual(['pending', 'firing'])
  })

  it('of a group with `query_offset` gives samples the time that it looks at, as in Prometheus', async () => {
    const rules = '      - record: x\n        expr: vector(1)\n      - alert: Seen\n        expr: x == 1\n'
    await follow(groupOf('g', rules, '    query_offset: 30s\n'))
    await minutes(1)
    const reachedMs = named('g')?.reachedMs ?? 0
    expect(new Set(accepted.map(([, timeMs]) => timeMs))).toEqual(new Set([reachedMs - 30_000]))
    const [, alerting] = named('g')?.rules ?? []
    expect([...(alerting?.rule.alerts.values() ?? [])]).toMatchObject([{ state: 'firing', activeMs: reachedMs }])
  })
})

it('can be relied on when each group was evaluated in time', async () => {
  expect(groups.problem).toBe('no rules are evaluated')
  await follow(groupOf('a', ONE))
  expect(groups.problem).toBe('the group a has not been evaluated yet')
  clock.advance(MINUTE)
  await eventually(async () => {
    groups.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(groups.problem).toBeUndefined()
  })
  clock.advance(2 * MINUTE + 1_000)
  expect(groups.problem).toBe('the group a is late')
})

it('nothing of it is stored or sent before everybody is asked who wants to hear of its alerts', async () => {
  let asked = (): void => {}
  asking = new Promise((resolve) => {
    asked = resolve
  })
  await follow(groupOf('a', '      - alert: Always\n        expr: vector(1)\n'))
  const before = changes
  clock.advance(MINUTE)
  await eventually(async () => {
    groups.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(announced).toBe(1)
  })
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect([changes - before, [...groups.groups][0]?.alertCount]).toEqual([0, 0])
  asked()
  await eventually(() => expect([...groups.groups][0]?.alertCount).toBe(1))
  expect(changes).toBeGreaterThan(before)
})

it('an alert that was only announced when its rule went is forgotten', async () => {
  let asked = (): void => {}
  asking = new Promise((resolve) => {
    asked = resolve
  })
  await follow(groupOf('a', '      - alert: Always\n        expr: vector(1)\n'))
  clock.advance(MINUTE)
  await swept(() => announced === 1)
  expect(forgotten).toEqual([])
  groups.follow([], MINUTE)
  expect(forgotten).toEqual(['{alertname="Always"}'])
  asked()
  await turn()
  expect([...groups.groups]).toEqual([])
})
