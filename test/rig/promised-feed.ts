/**
 * A feed by HTTP of numbers each of which comes once, so that each that was answered with a yes can be looked for: by remote write,
 * or by OTLP. A request has one number for each of its series.
 */
import { setTimeout } from 'node:timers/promises'
import { encodeMetricsRequest } from '../../protocol/otlp/encode.ts'
import { encodeWriteRequest, type OutgoingSeries } from '../../protocol/prometheus/write-request.ts'
import { finish } from '../../server/kernel/core/fair-work.ts'
import { OTLP_HEADERS, WRITE, WRITE_HEADERS } from './prometheus-stack.ts'

/** Its name where it is sent. */
export const FED = 'feed'
/** Values of a request, each of a series of its own. */
export const SERIES = 20

const RETRY_MS = 20
/** A server whose disk is full answers when there is room, and a feed goes on with others. One that is behind answers later, too. */
const PATIENCE_MS = 2_000
/** For one request by itself: an end before that of a test, and no measure of speed. */
const LONG_PATIENCE_MS = 60_000

const PROTOCOLS = {
  'remote-write': { path: WRITE, headers: WRITE_HEADERS, encode: encodeWriteRequest },
  otlp: { path: '/v1/metrics', headers: OTLP_HEADERS, encode: gaugeOf },
} as const

export type FeedProtocol = keyof typeof PROTOCOLS

/** Where it goes. */
export interface FeedTo {
  readonly url: string
  readonly token?: string | undefined
  readonly protocol?: FeedProtocol
  /** Its name there; default: `FED`. */
  readonly name?: string
  /** The time of the values of each request, another one for each, milliseconds since 1970. */
  readonly timeOf?: (request: number) => number
}

export class PromisedFeed {
  isOver = false
  /** The numbers that were answered with a yes. */
  readonly promised = new Set<number>()
  /** Who it is; undefined for those that take from everybody. */
  token: string | undefined
  readonly #to: FeedTo
  readonly #timeOf: (request: number) => number
  #next = 0

  /** `startMs`: the time of its first values, if `to` does not say otherwise; those of each request are a millisecond later. */
  constructor(to: FeedTo, startMs = Date.now()) {
    this.#to = to
    this.token = to.token
    this.#timeOf = to.timeOf ?? ((request) => startMs + request)
  }

  /** So many numbers were sent, from 0 on. */
  get sent(): number {
    return this.#next * SERIES
  }

  /**
   * Sends request after request until it is over. After one that was not answered within the patience, twice as long is waited for the
   * next one: on a busy machine nothing would ever be promised else.
   */
  async run(pauseMs = 0, patienceMs = PATIENCE_MS): Promise<void> {
    let patience = patienceMs
    while (!this.isOver) {
      await setTimeout(pauseMs)
      const askedAt = performance.now()
      if (await this.send(patience)) patience = patienceMs
      else {
        if (performance.now() - askedAt >= patience) patience = Math.min(2 * patience, LONG_PATIENCE_MS)
        await setTimeout(RETRY_MS)
      }
    }
  }

  /** One request; whether it was answered with a yes. What is not is not sent again: each number stands for one value. */
  async send(patienceMs = LONG_PATIENCE_MS): Promise<boolean> {
    const numbers = Array.from({ length: SERIES }, (_, n) => this.#next * SERIES + n)
    this.#next++
    const { url, protocol = 'remote-write', name = FED } = this.#to
    const { token } = this
    const { path, headers, encode } = PROTOCOLS[protocol]
    const series = numbers.map((number): OutgoingSeries => {
      const { n, timeMs } = this.sampleOf(number)
      return { name, labels: [['n', String(n)]], samples: [{ value: number, timeMs }] }
    })
    try {
      const { ok } = await fetch(url + path, {
        method: 'POST',
        headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        body: Uint8Array.from(finish(encode(series))),
        signal: AbortSignal.timeout(patienceMs),
      })
      if (ok) for (const number of numbers) this.promised.add(number)
      return ok
    } catch {
      return false
    }
  }

  /** Under which series and time a number is sent. */
  sampleOf(number: number): { readonly n: number; readonly timeMs: number } {
    return { n: number % SERIES, timeMs: this.#timeOf(Math.floor(number / SERIES)) }
  }
}

/** The same samples as points of one gauge. */
function gaugeOf(series: readonly OutgoingSeries[]): Generator<undefined, Uint8Array> {
  const points = series.flatMap(({ labels, samples }) => {
    const attributes = labels.map(([key, value]) => ({ key, value }))
    return samples.map(({ value, timeMs }) => ({ attributes, start: 0, time: timeMs * 1_000, isEnd: false, value }))
  })
  const [{ name = FED } = {}] = series
  return encodeMetricsRequest([{ name, unit: '', description: '', data: { kind: 'gauge', points } }])
}
