/** The feed of the lowest server: requests of remote write, each value of which is a number that comes once. */
import { setTimeout } from 'node:timers/promises'
import { encodeWriteRequest, type OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'

export const METRIC = 'prometheus.feed'
/** Values of a request, each of a series of its own. */
export const SERIES = 20

const RETRY_MS = 20
/** A server that is behind answers later, and one whose disk is full does so when there is room: the feed goes on with others. */
const PATIENCE_MS = 2_000

export class Feed {
  isOver = false
  /** What was answered with a yes. */
  readonly promised = new Set<number>()
  readonly #url: string
  readonly #token: string
  readonly #startMs = Date.now()
  #next = 0

  constructor(http: number, token: string) {
    this.#url = `http://127.0.0.1:${http}/api/v1/write`
    this.#token = token
  }

  /** Sends request after request until it is over. */
  async run(pauseMs: number): Promise<void> {
    while (!this.isOver) {
      await setTimeout(pauseMs)
      if (!(await this.send())) await setTimeout(RETRY_MS)
    }
  }

  /** One request; whether it was answered with a yes. What is not is not sent again: each number stands for one value. */
  async send(): Promise<boolean> {
    const first = this.#next * SERIES
    const series: OutgoingSeries[] = []
    for (let n = 0; n < SERIES; n++) {
      const samples = [{ value: first + n, timeMs: this.#startMs + this.#next }]
      series.push({ name: 'feed', labels: [['n', String(n)]], samples })
    }
    this.#next++
    const headers = {
      'content-type': 'application/x-protobuf',
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
      authorization: `Bearer ${this.#token}`,
    }
    const body = Uint8Array.from(finish(encodeWriteRequest(series)))
    const signal = AbortSignal.timeout(PATIENCE_MS)
    try {
      const { ok } = await fetch(this.#url, { method: 'POST', headers, body, signal })
      if (ok) for (let n = 0; n < SERIES; n++) this.promised.add(first + n)
      return ok
    } catch {
      return false
    }
  }
}
