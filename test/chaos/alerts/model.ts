/**
 * What the rules of the rig come to, worked out from the same data and the same times by a program of its own: the transitions of each
 * alert, and the series ALERTS.
 */
import { LEVEL, type Levels } from './levels.ts'

/** A rule alerts for each series above a number. */
interface LevelRule {
  readonly name: string
  readonly above: number
  readonly forMs: number
  readonly keepMs: number
  /** What fires goes on until its series is below this. */
  readonly below: number | undefined
}

const PLAIN = { above: 4, forMs: 0, keepMs: 0, below: undefined } as const
const LEVEL_RULES: readonly LevelRule[] = [
  { ...PLAIN, name: 'Plain' },
  { ...PLAIN, name: 'Slow', forMs: 3_000 },
  { ...PLAIN, name: 'Kept', forMs: 1_000, keepMs: 3_000 },
  { ...PLAIN, name: 'Sticky', above: 6, below: 3 },
]
export const INTERVAL_MS = 1_000
/** When nothing is above anything any more, all alerts have ended after this time. */
export const ENDED_MS = 5_000

/** A group with all of these rules. */
export interface ModelGroup {
  readonly name: string
  /** Before the names of its alerts. */
  readonly prefix: string
  /** What a rule records: the time of each evaluation, as its value. */
  readonly tick: string
}

/** The one of the configuration, and the one that a user puts. */
export const CONFIGURED_GROUP: ModelGroup = { name: 'chaos', prefix: '', tick: 'tick' }
export const PUT_GROUP: ModelGroup = { name: 'put', prefix: 'Put', tick: 'put_tick' }

/** The rules of the model, for a server. */
export function ruleFile({ name: group, prefix, tick }: ModelGroup): string {
  const rules = LEVEL_RULES.map(({ name, above, forMs, keepMs, below }) =>
    [
      `      - alert: ${prefix}${name}`,
      `        expr: ${LEVEL} > ${above}`,
      `        for: ${forMs}ms`,
      `        keep_firing_for: ${keepMs}ms`,
      ...(below === undefined ? [] : [`        recover: ${LEVEL} < ${below}`]),
      `        annotations: { summary: '${name} {{ $labels.n }}' }`,
    ].join('\n'),
  )
  const head = `  - name: ${group}\n    interval: ${INTERVAL_MS}ms\n    rules:\n      - record: ${tick}\n        expr: time()\n`
  return `groups:\n${head}${rules.join('\n')}\n`
}

export type AlertState = 'pending' | 'firing' | 'inactive'

/** What an alert became at a time; 0: it has not fired, or has not ended. */
export interface ModelTransition {
  readonly state: AlertState
  readonly sinceMs: number
  readonly firedMs: number
  readonly endedMs: number
}

interface Active {
  readonly sinceMs: number
  firedMs: number
  /** Since when it fires although it does not hold; 0: it holds. */
  keptMs: number
}

export interface Modelled {
  /** By the name of the rule and the series, as `Slow 3`. */
  readonly transitions: ReadonlyMap<string, readonly ModelTransition[]>
  /** By those and the state: the times at which ALERTS has a sample. */
  readonly alerts: ReadonlyMap<string, readonly number[]>
}

/** The times of the evaluations of a group, ascending. */
export interface Evaluated {
  readonly group: ModelGroup
  readonly ticksMs: readonly number[]
}

/** What follows from evaluations of these groups. */
export function modelOf(levels: Pick<Levels, 'at' | 'count'>, groups: readonly Evaluated[]): Modelled {
  const modelled = { transitions: new Map<string, ModelTransition[]>(), alerts: new Map<string, number[]>() }
  for (const evaluated of groups) addGroup(modelled, levels, evaluated)
  return modelled
}

function addGroup(
  { transitions, alerts }: { transitions: Map<string, ModelTransition[]>; alerts: Map<string, number[]> },
  levels: Pick<Levels, 'at' | 'count'>,
  { group, ticksMs }: Evaluated,
): void {
  for (const rule of LEVEL_RULES)
    for (let n = 0; n < levels.count; n++) {
      const name = `${group.prefix}${rule.name} ${n}`
      const own: ModelTransition[] = []
      transitions.set(name, own)
      let active: Active | undefined
      for (const tickMs of ticksMs) {
        active = follow(rule, active, levels.at(n, tickMs), tickMs, own)
        if (active === undefined) continue
        const shown = `${name} ${active.firedMs > 0 ? 'firing' : 'pending'}`
        alerts.set(shown, [...(alerts.get(shown) ?? []), tickMs])
      }
    }
}

function follow(
  { above, below, forMs, keepMs }: LevelRule,
  before: Active | undefined,
  value: number | undefined,
  tickMs: number,
  transitions: ModelTransition[],
): Active | undefined {
  const became = (state: AlertState, { sinceMs, firedMs }: Active, endedMs = 0): void =>
    void transitions.push({ state, sinceMs, firedMs, endedMs })
  if (value !== undefined && value > above) {
    const active = before ?? { sinceMs: tickMs, firedMs: 0, keptMs: 0 }
    active.keptMs = 0
    if (active.firedMs === 0 && tickMs - active.sinceMs >= forMs) {
      active.firedMs = tickMs
      became('firing', active)
    } else if (before === undefined) became('pending', active)
    return active
  }
  if (before === undefined) return undefined
  if (before.firedMs > 0 && below !== undefined && value !== undefined && value >= below) return before
  if (before.firedMs > 0 && keepMs > 0) {
    before.keptMs ||= tickMs
    if (tickMs - before.keptMs < keepMs) return before
  }
  became('inactive', before, tickMs)
  return undefined
}
