/**
 * The past states of alerts, from the series `ALERTS` of the history. Of one alert they are those of each evaluation. Of all alerts they
 * are a line of so many parts, each of which is in the worst state that the alert had in it: what was short is drawn as one part.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Consumer, ExpressionSeries } from '../client/browser.ts'
import type { AlertState, Pair } from './alerts.ts'
import { labelName, selectorText } from './promql-names.ts'
import { untilAnswered } from './query.ts'
import { type Refusal, refusalOf } from './refusals.ts'
import type { ServerClock } from './series-watch.ts'

/** How long a line may be, in seconds. */
export const HISTORY_SECONDS = [3_600, 21_600, 86_400, 604_800, 2_592_000] as const
export const USUAL_HISTORY_SECONDS = 86_400
const PARTS = 240
/** Alerts of an answer are at most half as many. */
const MOST_SERIES = 1_000
/** It is asked for again after this time, or after so many parts of the whole. */
const LEAST_APART_SECONDS = 30
const ASKED_APART = 1_000
/** For so long a value counts after its time. */
const LOOKBACK_SECONDS = 300
const SERIES = 'ALERTS'
const STATE = 'alertstate'

/** A time during which an alert was in one state, seconds since 1970. */
export interface StateSpan {
  readonly state: AlertState
  readonly from: number
  readonly to: number
}

export interface PastAlert {
  readonly key: string
  readonly name: string
  readonly severity: string
  readonly labels: readonly Pair[]
  /** Ascending; there is one at least. */
  readonly spans: readonly StateSpan[]
}

export interface AlertHistory {
  readonly alerts: readonly PastAlert[]
  /** Seconds since 1970. */
  readonly from: number
  readonly to: number
  /** How exactly the times of spans are known, in seconds. */
  readonly exact: number
  /** Whether there are more than are read. */
  readonly hasMore: boolean
}

/**
 * The states that were there at any time in a part. A short one may have no evaluation in it: there the state counts that is there at
 * its end, which a series has until it ends, or for five minutes.
 */
function partsExpression(part: number): string {
  const atAnyTime = `present_over_time(${SERIES}[${part}s])`
  return part < LOOKBACK_SECONDS ? `${SERIES} or ${atAnyTime}` : atAnyTime
}

/** The states of one alert at each evaluation. */
function evaluationsExpression(labels: readonly Pair[], seconds: number): string {
  const matchers = labels.map(([name, text]) => `${labelName(name)}=${JSON.stringify(text)}`)
  return `${selectorText(SERIES, matchers)}[${seconds}s]`
}

/** How long a state lasts that was there at a time, in seconds: before it, since that time is the end of a part, or after it. */
interface Lasting {
  readonly before: number
  readonly after: number
}

/** What series with times in microseconds are of one alert by their labels. */
export function pastAlertsOf(all: readonly ExpressionSeries[], lasting: Lasting): readonly PastAlert[] {
  const found = new Map<string, { readonly labels: readonly Pair[]; readonly states: Map<number, AlertState> }>()
  for (const { labels: given, times } of all) {
    const state: AlertState = given[STATE] === 'firing' ? 'firing' : 'pending'
    const labels = Object.entries(given)
      .filter(([name]) => name !== STATE)
      .sort(([one], [other]) => (one < other ? -1 : 1))
    const key = JSON.stringify(labels)
    const alert = found.get(key) ?? { labels, states: new Map<number, AlertState>() }
    found.set(key, alert)
    for (const time of times) if (alert.states.get(time) !== 'firing') alert.states.set(time, state)
  }
  return [...found].map(([key, { labels, states }]) => {
    const of = (name: string): string => labels.find(([label]) => label === name)?.[1] ?? ''
    return { key, name: of('alertname'), severity: of('severity'), labels, spans: spansOf(states, lasting) }
  })
}

function spansOf(states: ReadonlyMap<number, AlertState>, { before, after }: Lasting): readonly StateSpan[] {
  const spans: StateSpan[] = []
  const most = (before + after) / 2
  for (const [time, state] of [...states].sort(([one], [other]) => one - other)) {
    const [from, to] = [time / 1e6 - before, time / 1e6 + after]
    const last = spans.at(-1)
    if (last !== undefined && from - last.to < most) {
      const isSame = last.state === state
      // What changes is in one state until it is in the next one.
      spans[spans.length - 1] = { ...last, to: isSame ? to : from }
      if (isSame) continue
    }
    spans.push({ state, from, to })
  }
  return spans
}

/** Seconds in a state. */
export function secondsIn({ spans }: Pick<PastAlert, 'spans'>, wanted: AlertState): number {
  return spans.filter(({ state }) => state === wanted).reduce((sum, { from, to }) => sum + to - from, 0)
}

/** The one that was there last first; of those that are there now, the one that fires longest. */
export function byRecency(one: PastAlert, other: PastAlert): number {
  const end = ({ spans }: PastAlert): number => spans.at(-1)?.to ?? 0
  return (
    end(other) - end(one) || secondsIn(other, 'firing') - secondsIn(one, 'firing') || (one.key < other.key ? -1 : 1)
  )
}

/** One alert, and how often it is evaluated, in seconds. */
export interface EvaluatedAlert {
  readonly labels: readonly Pair[]
  readonly interval: number
}

/** Both are undefined until there is an answer. Without `one` it is that of all alerts that may be read, in parts. */
export function useAlertHistory(
  consumer: Consumer,
  clock: ServerClock,
  seconds: number,
  one?: EvaluatedAlert,
): { readonly history: AlertHistory | undefined; readonly refusal: Refusal | undefined } {
  const [read, setRead] = useState<ReturnType<typeof useAlertHistory>>({ history: undefined, refusal: undefined })
  const exact = one?.interval ?? seconds / PARTS
  const expr = one === undefined ? partsExpression(exact) : evaluationsExpression(one.labels, seconds)
  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    let timer = 0
    const ask = async (): Promise<void> => {
      const to = Math.floor(clock.nowMs / 1000)
      const from = to - seconds
      const at =
        one === undefined ? { since: (from + exact) * 1e6, until: to * 1e6, step: exact * 1e6 } : { at: to * 1e6 }
      const options = { ...at, limit: MOST_SERIES, signal }
      const lasting = one === undefined ? { before: exact, after: 0 } : { before: 0, after: exact }
      try {
        const { series, warnings } = await untilAnswered(consumer, signal, () => consumer.evaluate(expr, options))
        const history = { alerts: pastAlertsOf(series, lasting), from, to, exact, hasMore: warnings.length > 0 }
        setRead({ history, refusal: undefined })
      } catch (error) {
        if (signal.aborted) return
        setRead({ history: undefined, refusal: refusalOf(error) })
      }
      again(Math.max(LEAST_APART_SECONDS, seconds / ASKED_APART) * 1000)
    }
    const again = (pauseMs: number): void => {
      timer = window.setTimeout(() => (document.hidden ? again(pauseMs) : void ask()), pauseMs)
    }
    void ask()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [consumer, expr, seconds, exact])
  return read
}
