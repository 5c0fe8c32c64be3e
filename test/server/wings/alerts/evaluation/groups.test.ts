/**
 * Groups of rules over series in memory, by a clock that is handed in: what is stored, what comes after a kill, a reload, and a clock
 * that was set; and the clauses of the specification of alert generators (prometheus/compliance), each named.
 */
import { beforeEach, describe, expect, it } from 'vitest'
import { QUERY_LIMITS } from '../../../../../promql/evaluate/budget.ts'
import { LabelSet } from '../../../../../promql/label-set.ts'
import { MemorySource, type MemoryValue } from '../../../../../promql/memory-source.ts'
import { finish } from '../../../../../server/kernel/core/fair-work.ts'
import { createLogger } from '../../../../../server/kernel/core/log.ts'
import type { AlertGroupRow, AlertRow, Expressions } from '../../../../../server/kit/expressions.ts'
import { RuleGroups } from '../../../../../server/wings/alerts/evaluation/groups.ts'
import { readRuleFile } from '../../../../../server/wings/alerts/rules/rule-file.ts'
import type { Change } from '../../../../../storage/store.ts'
import { eventually } from '../../../../support/eventually.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

const MINUTE = 60_000
const reader = () => ({ userId: 0, tenant: 'default', name: 'alerts:', role: 'consumer' })

/** What outlives a process. */
class Disk {
  readonly alerts = new Map<string, AlertRow>()
  readonly groups = new Map<string, AlertGroupRow>()

  change(change: Change): void {
    if ('put' in change) {
      if (change.put === 'alert') this.alerts.set(change.row.rule + change.row.labels, change.row)
      if (change.put === 'alert group') this.groups.set(change.row.name, change.row)
    } else if (change.remove === 'alert') this.alerts.delete(change.rule + change.labels)
    else if (change.remove === 'alert group') this.groups.delete(change.name)
  }
}

interface Reported {
  readonly minute: number
  readonly text: string
}

let disk: Disk
let clock: FakeClock
let source: MemorySource
/** What was recorded and is not in the source yet. */
let accepted: (readonly [LabelSet, number, MemoryValue])[]
let reported: Reported[]
let problem: string | undefined
let catchingUp: Promise<void>
let groups: RuleGroups
let startMs: number
/** After so many steps of what follows from an evaluation nothing more of it is done. */
let stepsDone: number
/** What follows is handed on now: whoever wants it was asked. */
let isAnnounced: boolean

beforeEach(() => {
  disk = new Disk()
  clock = new FakeClock()
  startMs = clock.wallMs()
  source = new MemorySource()
  accepted = []
  reported = []
  stepsDone = Number.POSITIVE_INFINITY
  isAnnounced = false
  problem = undefined
  catchingUp = Promise.resolve()
})

/** What was accepted comes into the source. */
function store(): void {
  for (const [labels, timeMs, value] of accepted.splice(0)) source.add(labels, [[timeMs, value]])
}

/** A process over the disk; the one before is no more. */
function start(): void {
  groups?.stop()
  const expressions: Omit<Expressions, 'watch'> = {
    get problem() {
      return problem
    },
    limits: QUERY_LIMITS,
    async caughtUp() {
      await catchingUp
      store()
    },
    recurring: () => ({ workedMs: 0, ask() {}, run: async (_reader, _timeMs, steps) => finish(steps(source)) }),
    stored: { journal: disk, alerts: [...disk.alerts.values()], groups: [...disk.groups.values()], files: [] },
  }
  groups = new RuleGroups({
    tenant: 'default',
    expressions,
    stored: expressions.stored,
    clock,
    log: createLogger('silent'),
    publish({ labels, value }, timeMs) {
      accepted.push([labels, timeMs, value])
      return undefined
    },
    async work(steps) {
      const most = isAnnounced ? stepsDone : Number.POSITIVE_INFINITY
      isAnnounced = false
      for (let step = 0; step < most; step++) if (steps.next().done === true) return
      await new Promise(() => {})
    },
    emit({ alert: { labels, state }, sequence, timeMs }) {
      reported.push({ minute: Math.floor((timeMs - startMs) / MINUTE), text: `${sequence} ${labels} ${state}` })
    },
    forget() {},
    announce() {},
    asked() {
      isAnnounced = true
      return undefined
    },
  })
}

async function follow(rules: string, name = 'rules.yml'): Promise<void> {
  const file = await readRuleFile(`groups:\n  - name: g\n    interval: 1m\n    rules:\n${rules}`)
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  groups.follow([{ path: `/etc/${name}`, groups: file.groups, reader }], MINUTE)
}

/** Values of a series, one in each minute from now on; `undefined` is none. */
function series(labels: Record<string, string>, ...values: (number | undefined)[]): void {
  const from = Math.floor((clock.wallMs() - startMs) / MINUTE)
  const samples = values.flatMap((value, index): [number, number][] =>
    value === undefined ? [] : [[startMs + (from + index) * MINUTE, value]],
  )
  source.add(LabelSet.of(Object.entries(labels)), samples)
}

/** Minutes pass, and in each the group is evaluated once. */
async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    const before = reached()
    clock.advance(MINUTE)
    await evaluated(() => reached() > before)
  }
}

async function evaluated(isDone: () => boolean): Promise<void> {
  await eventually(async () => {
    groups.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(isDone()).toBe(true)
  })
}

const reached = (): number => [...groups.groups][0]?.reachedMs ?? 0
const alerts = () => [...groups.groups].flatMap(({ rules }) => rules.flatMap(({ rule }) => [...rule.alerts.values()]))
const states = (): string[] => alerts().map(({ labels, state }) => `${labels} ${state}`)

/** The value of a series at the last evaluation, as text; undefined if it has none. */
function recorded(name: string, labels: Record<string, string> = {}): readonly string[] {
  store()
  const found: string[] = []
  const wanted = Object.entries({ __name__: name, ...labels })
  for (const one of source.select([], reached() - 4 * MINUTE, reached())) {
    if (one === undefined) continue
    const set = LabelSet.of(one.labels)
    if (wanted.every(([label, text]) => set.get(label) === text)) found.push(`${set} ${one.values.at(-1)}`)
  }
  return found
}

const DOWN = `      - alert: Down
        expr: up == 0
        for: 3m
        labels: { severity: page }
        annotations: { summary: '{{ $labels.job }} {{ $value }}' }
`

describe('Executing an Alerting Rule', () => {
  beforeEach(start)

  it('Step 1: each element of the result is an alert, without the name of the metric', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    series({ __name__: 'up', job: 'b' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(1)
    expect(states()).toEqual([
      '{alertname="Down", job="a", severity="page"} pending',
      '{alertname="Down", job="b", severity="page"} pending',
    ])
  })

  it('Step 2: labels of templates override those of the element', async () => {
    series({ __name__: 'up', job: 'a', severity: 'none' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(1)
    expect(states()).toEqual(['{alertname="Down", job="a", severity="page"} pending'])
  })

  it('Step 3: the name of the alert overrides a label alertname', async () => {
    series({ __name__: 'up', alertname: 'other' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(1)
    expect(states()).toEqual(['{alertname="Down", severity="page"} pending'])
  })

  it('Step 4: two alerts with the same labels are an error, which is shown, and nothing is created or reported', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    series({ __name__: 'up', job: 'b' }, ...new Array(9).fill(0))
    await follow(`      - alert: Down\n        expr: up == 0\n        labels: { job: same }\n`)
    await minutes(1)
    expect([alerts(), recorded('ALERTS', { alertname: 'Down' })]).toEqual([[], []])
    expect(reported.filter(({ text }) => !text.includes('CinnabarRuleFails'))).toEqual([])
    const [rule] = [...groups.groups][0]?.rules ?? []
    expect(rule?.health?.problem).toBe('vector contains metrics with the same labelset after applying alert labels')
  })
})

describe('Constraints', () => {
  beforeEach(start)

  it('1: the result of a rule is there for the rules after it in the same evaluation', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(`      - record: job:up:twice
        expr: up + 2
      - alert: Two
        expr: job:up:twice == 2
      - record: seen
        expr: count(ALERTS{alertstate="firing"})
`)
    await minutes(1)
    expect(states()).toEqual(['{alertname="Two", job="a"} firing'])
    expect(recorded('seen')).toEqual(['{__name__="seen"} 1'])
  })
})

describe('`pending`, `firing` and `inactive` State Conditions', () => {
  beforeEach(start)

  it('stays pending while less than `for` has passed, and fires when it has', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(3)
    expect(alerts()[0]).toMatchObject({ state: 'pending', firedMs: undefined })
    const { activeMs } = alerts()[0] ?? { activeMs: 0 }
    await minutes(1)
    expect(alerts()[0]).toMatchObject({ state: 'firing', activeMs, firedMs: activeMs + 3 * MINUTE })
  })

  it('a zero `for` fires at once; one below the interval fires at the next evaluation', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(
      `      - alert: AtOnce\n        expr: up == 0\n      - alert: Soon\n        expr: up == 0\n        for: 5s\n`,
    )
    await minutes(1)
    expect(states()).toEqual(['{alertname="AtOnce", job="a"} firing', '{alertname="Soon", job="a"} pending'])
    await minutes(1)
    expect(states()).toEqual(['{alertname="AtOnce", job="a"} firing', '{alertname="Soon", job="a"} firing'])
  })

  it('annotations are those of the last evaluation', async () => {
    series({ __name__: 'up', job: 'a' }, 1, 2, 3, 4)
    await follow(`      - alert: Up\n        expr: up > 0\n        annotations: { summary: 'now {{ $value }}' }\n`)
    await minutes(1)
    const before = String(alerts()[0]?.annotations)
    await minutes(1)
    expect([before, String(alerts()[0]?.annotations)]).toEqual(['{summary="now 1"}', '{summary="now 2"}'])
  })

  it('what is not in a result is inactive at once, and begins anew when it comes back', async () => {
    series({ __name__: 'up', job: 'a' }, 0, 0, 0, 0, 0, 1, 0, 0)
    await follow(DOWN)
    await minutes(8)
    const name = '{alertname="Down", job="a", severity="page"}'
    expect(reported.map(({ text }) => text)).toEqual([
      `1 ${name} pending`,
      `2 ${name} firing`,
      `3 ${name} inactive`,
      `4 ${name} pending`,
    ])
    expect(alerts()[0]).toMatchObject({ state: 'pending', firedMs: undefined, resolvedMs: undefined })
  })
})

describe('Time Series to Create', () => {
  beforeEach(start)

  it('ALERTS of each active alert, whose name and alertstate override labels, and none of an inactive one', async () => {
    series({ __name__: 'up', alertstate: 'very_critical' }, 0, 0, 0, 0, 0, 1)
    await follow(DOWN)
    await minutes(1)
    const labels = 'alertname="Down", alertstate='
    expect(recorded('ALERTS')).toEqual([`{__name__="ALERTS", ${labels}"pending", severity="page"} 1`])
    await minutes(3)
    expect(recorded('ALERTS', { alertstate: 'firing' })).toEqual([
      `{__name__="ALERTS", ${labels}"firing", severity="page"} 1`,
    ])
    expect(recorded('ALERTS', { alertstate: 'pending' })).toEqual([
      `{__name__="ALERTS", ${labels}"pending", severity="page"} NaN`,
    ])
    await minutes(2)
    expect(recorded('ALERTS', { alertstate: 'firing' })).toEqual([
      `{__name__="ALERTS", ${labels}"firing", severity="page"} NaN`,
    ])
  })
})

describe('what follows from an evaluation, in steps', () => {
  beforeEach(start)

  const MANY = 40
  const jobs = Array.from({ length: MANY }, (_, index) => `j${String(index).padStart(2, '0')}`)
  const begun = async (): Promise<void> => {
    for (const job of jobs) series({ __name__: 'up', job }, ...new Array(9).fill(0))
    await follow(DOWN)
    stepsDone = 2
    clock.advance(MINUTE)
    await evaluated(() => reported.length > 0)
    stepsDone = Number.POSITIVE_INFINITY
  }
  /** Each alert once, with the numbers 1, 2, 3 ... */
  const expectEachOnce = (): void => {
    const numbers = reported.map(({ text }) => Number(text.split(' ')[0]))
    expect(numbers).toEqual(jobs.map((_, index) => index + 1))
    const found = reported.map(({ text }) => /job="(\w+)"/.exec(text)?.[1])
    expect(found.sort()).toEqual(jobs)
  }

  it('killed between two steps: the rest follows when the time is evaluated again, and nothing twice', async () => {
    await begun()
    expect(reported.length).toBeLessThan(MANY)
    const { reachedMs } = [...groups.groups][0] ?? { reachedMs: 0 }
    expect([...disk.groups.values()]).toMatchObject([{ reached: reachedMs, sequence: reported.length }])
    expect(disk.alerts.size).toBe(reported.length)
    start()
    await follow(DOWN)
    await evaluated(() => reached() > reachedMs)
    expectEachOnce()
    expect(disk.alerts.size).toBe(MANY)
  })

  it('rules that are read again between two steps take over when all of it has followed', async () => {
    await begun()
    expect(reported.length).toBeLessThan(MANY)
    await follow(DOWN)
    expectEachOnce()
    expect(alerts()).toHaveLength(MANY)
  })
})

describe('a process that is killed', () => {
  beforeEach(start)

  it('in the middle of `for`: the next one fires at the same time, as if nothing had happened', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(12).fill(0))
    await follow(DOWN)
    await minutes(2)
    start()
    await follow(DOWN)
    expect(states()).toEqual(['{alertname="Down", job="a", severity="page"} pending'])
    await minutes(2)
    expect(reported.map(({ text }) => text.split(' ').at(-1))).toEqual(['pending', 'firing'])
    expect((reported[1]?.minute ?? 0) - (reported[0]?.minute ?? 0)).toBe(3)
    expect(reported[1]?.text.startsWith('2 ')).toBe(true)
  })

  it('and is away for a while: what was missed is evaluated in order, at its own times', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(30).fill(0))
    await follow(DOWN)
    await minutes(1)
    const before = reached()
    start()
    clock.advance(10 * MINUTE)
    await follow(DOWN)
    await evaluated(() => reached() === before + 10 * MINUTE)
    expect((reported[1]?.minute ?? 0) - (reported[0]?.minute ?? 0)).toBe(3)
    expect(groups.counts).toMatchObject({ evaluations: 11 - 1, missed: 0 })
  })

  it('and is away for hours: the last hour is evaluated, and the rest is counted', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(300).fill(0))
    await follow(DOWN)
    await minutes(1)
    start()
    clock.advance(180 * MINUTE)
    await follow(DOWN)
    await evaluated(() => clock.wallMs() - reached() <= MINUTE)
    const { missed, evaluations } = groups.counts
    expect(missed + evaluations).toBe(180)
    expect(evaluations).toBeGreaterThanOrEqual(60)
    expect(evaluations).toBeLessThanOrEqual(61)
  })

  it('while an alert is kept firing: it ends when it would have ended', async () => {
    const KEPT = `      - alert: Down\n        expr: up == 0\n        keep_firing_for: 4m\n`
    series({ __name__: 'up', job: 'a' }, 0, 0, ...new Array(12).fill(1))
    await follow(KEPT)
    await minutes(4)
    const { keptSinceMs } = alerts()[0] ?? {}
    expect(keptSinceMs).toBeDefined()
    start()
    await follow(KEPT)
    expect(alerts()[0]?.keptSinceMs).toBe(keptSinceMs)
    await minutes(4)
    expect(reported.map(({ text }) => text.split(' ').at(-1))).toEqual(['firing', 'inactive'])
    expect(alerts()[0]?.resolvedMs).toBe((keptSinceMs ?? 0) + 4 * MINUTE)
  })

  it('with a rule that is there no more: its alerts end, and nothing of them is stored', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(4)
    start()
    await follow('      - record: x\n        expr: up\n')
    expect(reported.at(-1)?.text).toMatch(/ inactive$/)
    expect(disk.alerts.size).toBe(0)
  })
})

describe('other rules', () => {
  beforeEach(start)

  it('of the same name go on with the alerts that there are', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(2)
    await follow(DOWN.replace('for: 3m', 'for: 2m'))
    await minutes(1)
    expect(states()).toEqual(['{alertname="Down", job="a", severity="page"} firing'])
    expect(reported.length).toBe(2)
  })

  it('end those of rules that are gone, with their series', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(4)
    groups.follow([], MINUTE)
    expect(reported.at(-1)?.text).toMatch(/ inactive$/)
    expect([disk.alerts.size, disk.groups.size]).toEqual([0, 0])
  })
})

describe('a clock', () => {
  beforeEach(start)

  it('that is set back by an hour: evaluation goes on, and `for` does not begin anew', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    await minutes(2)
    const heldMs = reached() - (alerts()[0]?.activeMs ?? 0)
    clock.jumpWall(-60 * MINUTE)
    startMs -= 60 * MINUTE
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await evaluated(() => groups.counts.setBack === 1)
    expect(reached()).toBeLessThanOrEqual(clock.wallMs())
    expect(reached() - (alerts()[0]?.activeMs ?? 0)).toBe(heldMs)
    await minutes(3)
    expect(states()).toEqual(['{alertname="Down", job="a", severity="page"} firing'])
  })

  it('that is set forward: there are no data in between, so what holds only begins again with them', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(3).fill(0))
    await follow(DOWN)
    await minutes(2)
    clock.jumpWall(30 * MINUTE)
    await evaluated(() => clock.wallMs() - reached() < MINUTE)
    expect(reported.map(({ text }) => text.split(' ').at(-1))).toEqual(['pending', 'firing', 'inactive'])
  })
})

describe('evaluation', () => {
  beforeEach(start)

  it('waits until everything is stored that was accepted before', async () => {
    let caughtUp = (): void => {}
    catchingUp = new Promise((resolve) => {
      caughtUp = resolve
    })
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    const before = reached()
    clock.advance(2 * MINUTE)
    groups.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(reached()).toBe(before)
    expect(groups.lagMs).toBeGreaterThan(0)
    caughtUp()
    await evaluated(() => reached() > before)
  })

  it('is not tried while nothing can be asked, and is done afterwards', async () => {
    series({ __name__: 'up', job: 'a' }, ...new Array(9).fill(0))
    await follow(DOWN)
    problem = 'the history has failed'
    clock.advance(5 * MINUTE)
    groups.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(groups.counts.evaluations).toBe(0)
    problem = undefined
    await evaluated(() => groups.counts.evaluations === 5)
    expect(groups.counts.missed).toBe(0)
  })
})
