/**
 * Expressions of Prometheus' language: those of the Query view as its URL has them, and what the server says that they come to over
 * the time that is shown.
 */
import { useEffect, useState } from 'preact/hooks'
import {
  type Consumer,
  ExpressionError,
  type ExpressionOptions,
  type ExpressionResult,
  type ExpressionSeries,
  type LossRange,
} from '../client/browser.ts'
import { keepLoss, type PastLoss } from './losses.ts'
import { labelName, selectorText } from './promql-names.ts'
import { untilAnswered } from './query.ts'
import { reasonOf, sentence } from './refusals.ts'
import { Samples } from './samples.ts'
import type { WatchedSeries } from './series-watch.ts'

export const MAX_QUERIES = 10
/** Series of an answer that are shown at most. */
const MOST_SERIES = 1_000
/** About so many steps are between the two ends of a range. */
const STEPS = 240
const STEP_SECONDS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[60, 120, 300, 600, 900, 1_800],
  ...[3_600, 7_200, 14_400, 21_600, 43_200, 86_400],
]
const LONGEST_STEP = 7 * 86_400
/** What is followed is asked for again after this time, or after so many parts of the range. */
const LEAST_APART_MS = 5_000
const DRAWN_APART = 60
/** Arguments of the URL of the view, once for each query. */
const EXPR = 'expr'
const SHOW = 'show'

/** How a query is shown: its values at one time, or over the range of the page. */
export type Showing = 'table' | 'chart'

export interface AskedExpression {
  /** Empty if nothing was asked yet. */
  readonly expr: string
  readonly show: Showing
}

/** There is always one. */
export function expressionsOf(args: URLSearchParams): readonly AskedExpression[] {
  const shows = args.getAll(SHOW)
  const all = args.getAll(EXPR).slice(0, MAX_QUERIES)
  if (all.length === 0) return [{ expr: '', show: 'table' }]
  return all.map((expr, at) => ({ expr, show: shows[at] === 'chart' ? 'chart' : 'table' }))
}

export function expressionArgs(all: readonly AskedExpression[]): string[][] {
  if (all.every(({ expr, show }) => expr === '' && show === 'table') && all.length === 1) return []
  return all.flatMap(({ expr, show }) => [
    [EXPR, expr],
    [SHOW, show],
  ])
}

/** Seconds since 1970: one time, by default now, or a range, which ends now at the latest. */
export type AskedTime =
  | { readonly at: number | undefined }
  | {
      readonly from: number
      readonly to: number
      readonly isLive: boolean
      /** Whether it is asked for again and again, as what comes now is in it. */
      readonly isFollowed?: boolean
    }

/** Seconds between two values over a range of so many. */
export function stepOf(seconds: number): number {
  return STEP_SECONDS.find((step) => step * STEPS >= seconds) ?? LONGEST_STEP
}

/** Times of steps stay the same while the range moves on, so that what is drawn does not tremble. In microseconds. */
export function gridOf({ from, to, isLive }: Extract<AskedTime, { from: number }>): ExpressionOptions {
  const step = stepOf(to - from)
  const since = Math.floor(from / step) * step * 1e6
  return { since, step: step * 1e6, ...(!isLive && { until: Math.floor(to) * 1e6 }) }
}

export interface EvaluationProblem {
  readonly reason: string
  /** Characters of the expression. */
  readonly position?: ExpressionError['position']
}

export interface Evaluation {
  /** Undefined until there is one; the one before stays until the next one is there. */
  readonly result: ExpressionResult | undefined
  readonly problem: EvaluationProblem | undefined
  /** Where values of the selected metrics are missing. */
  readonly losses: readonly PastLoss[]
  readonly isBusy: boolean
  /** From asking to the answer. */
  readonly elapsedMs: number
}

const NOTHING: Evaluation = { result: undefined, problem: undefined, losses: [], isBusy: false, elapsedMs: 0 }

/** Asks whenever the expression or the time changes. `round`: another number asks again. An empty expression asks nothing. */
export function useEvaluation(consumer: Consumer, expr: string, time: AskedTime, round: number): Evaluation {
  const [evaluation, setEvaluation] = useState<Evaluation>(NOTHING)
  const question = JSON.stringify([expr, time])
  useEffect(() => {
    if (expr === '') {
      setEvaluation(NOTHING)
      return undefined
    }
    const abort = new AbortController()
    const { signal } = abort
    let timer = 0
    const ask = async (): Promise<void> => {
      const begunMs = performance.now()
      const found = new Map<string, PastLoss>()
      const answered = (answer: Pick<Evaluation, 'result' | 'problem'>): void => {
        const losses = [...found.values()]
        setEvaluation({ ...answer, losses, isBusy: false, elapsedMs: performance.now() - begunMs })
      }
      try {
        const onLoss = (loss: LossRange): void => keepLoss(found, loss)
        const options = { ...optionsOf(time), limit: MOST_SERIES, onLoss, signal }
        const evaluate = () => consumer.evaluate(expr, options)
        answered({ result: await untilAnswered(consumer, signal, evaluate), problem: undefined })
      } catch (error) {
        if (signal.aborted) return
        answered({ result: undefined, problem: problemOf(error) })
      }
      if ('from' in time && time.isFollowed)
        follow(Math.max(LEAST_APART_MS, ((time.to - time.from) * 1000) / DRAWN_APART))
    }
    const follow = (apartMs: number): void => {
      timer = window.setTimeout(() => void (document.hidden ? follow(apartMs) : ask()), apartMs)
    }
    setEvaluation((before) => ({ ...before, isBusy: true }))
    void ask()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [consumer, question, round])
  return evaluation
}

function optionsOf(time: AskedTime): ExpressionOptions {
  return 'from' in time ? gridOf(time) : { at: time.at === undefined ? undefined : Math.floor(time.at) * 1e6 }
}

function problemOf(error: unknown): EvaluationProblem {
  if (error instanceof ExpressionError) return { reason: sentence(error.message), position: error.position }
  return { reason: reasonOf(error) }
}

/** `up{job="a"}`, as Prometheus writes it; empty if it has no label. */
export function seriesText({ name, labels }: Pick<ExpressionSeries, 'name' | 'labels'>): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${labelName(label)}=${JSON.stringify(text)}`)
  return selectorText(name, pairs)
}

/** As a chart draws it. */
export function chartedSeries({ name, labels, times, values }: ExpressionSeries): WatchedSeries {
  const samples = new Samples()
  for (const [at, time] of times.entries()) {
    samples.push(time / 1e6, values[at] as number, times.length, Number.NEGATIVE_INFINITY)
  }
  return {
    metric: name,
    labels,
    samples,
    holes: [],
    cameMs: Number.NEGATIVE_INFINITY,
    askedAt: Number.NEGATIVE_INFINITY,
    cutAt: undefined,
  }
}
