/** The parameters of a request, in its URL or its form: times, durations and numbers, as Prometheus reads them. */
import { durationMs, floatOf } from '../../../../promql/parse/numbers.ts'
import { invalidParameter } from '../../query/problems.ts'
import type { QueryRequest } from '../../query/run.ts'

/** As in Go, a comma may stand before the fraction. */
const RFC_3339 = /^(\d{4}-\d{2}-(\d{2})[Tt](\d{2}):\d{2}:\d{2})(?:[.,](\d+))?([Zz]|[+-]\d{2}:\d{2})$/
/** The times that Prometheus takes for "ever"; no date of JavaScript is as early or late. */
const EVER: Readonly<Record<string, number>> = {
  '-292273086-05-16T16:47:06Z': -8.64e15,
  '292277025-08-18T07:12:54.999999999Z': 8.64e15,
}

/** What is asked of the history. */
export interface ApiRequest extends QueryRequest {
  /** Of the form, then of the URL. */
  readonly given: URLSearchParams
  /** The label that the path names. */
  readonly label?: string | undefined
  /** What was sent that is no form. */
  readonly body?: Uint8Array | undefined
  /** How long it has waited for its turn. */
  readonly waitedMs: number
}

/** Of the form first, as Go's FormValue has it. */
export function givenIn({ url, form }: { readonly url: string; readonly form: string }): URLSearchParams {
  const given = new URLSearchParams(form)
  for (const [name, text] of new URLSearchParams(/\?(.*)$/s.exec(url)?.[1] ?? '')) given.append(name, text)
  return given
}

export class QueryParameters {
  readonly #given: URLSearchParams

  constructor(given: URLSearchParams) {
    this.#given = given
  }

  /** '' if it is not given. What the form says counts before the URL. */
  text(name: string): string {
    return this.#given.get(name) ?? ''
  }

  all(name: string): readonly string[] {
    return this.#given.getAll(name)
  }

  /** Milliseconds since 1970. Throws QueryProblem, also if it is not given and there is no default. */
  timeMs(name: string, byDefault?: number): number {
    const text = this.text(name)
    if (text === '' && byDefault !== undefined) return byDefault
    const ms = timeOf(text)
    if (ms !== undefined) return ms
    throw invalidParameter(name, `cannot parse ${JSON.stringify(text)} to a valid timestamp`)
  }

  /** Undefined if it is not given. Throws QueryProblem. */
  durationMs(name: string): number | undefined {
    const text = this.text(name)
    return text === '' ? undefined : this.neededDurationMs(name)
  }

  neededDurationMs(name: string): number {
    const text = this.text(name)
    const seconds = floatOf(text)
    const ms = seconds === undefined ? durationMs(text) : seconds * 1_000
    if (ms !== undefined && Math.abs(ms) < 2 ** 53) return ms
    throw invalidParameter(name, `cannot parse ${JSON.stringify(text)} to a valid duration`)
  }

  /** How many elements a result may have; Infinity if nothing is said. Throws QueryProblem. */
  limit(name = 'limit'): number {
    const text = this.text(name)
    if (text === '') return Number.POSITIVE_INFINITY
    if (!/^[+-]?\d{1,15}$/.test(text)) throw invalidParameter(name, `cannot parse ${JSON.stringify(text)} to a number`)
    const limit = Number(text)
    if (limit < 0) throw invalidParameter(name, `${name} must be non-negative`)
    return limit === 0 ? Number.POSITIVE_INFINITY : limit
  }
}

function timeOf(text: string): number | undefined {
  const seconds = floatOf(text)
  if (seconds !== undefined) {
    const whole = Math.trunc(seconds)
    const ms = whole * 1_000 + Math.round((seconds - whole) * 1_000)
    return Number.isSafeInteger(ms) ? ms : undefined
  }
  if (Object.hasOwn(EVER, text)) return EVER[text]
  const [, toSeconds, day, hour, fraction = '0', zone] = RFC_3339.exec(text) ?? []
  const ms = Date.parse(`${toSeconds}.${fraction}${zone}`)
  if (Number.isNaN(ms) || hour === '24') return undefined
  // `Date` takes the 30th of February for a day of March.
  const isDay = new Date(`${toSeconds}Z`).getUTCDate() === Number(day)
  return isDay ? ms : undefined
}
