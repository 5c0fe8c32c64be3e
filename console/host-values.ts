/**
 * The values of one host, read again and again. Only the families are asked that have series of the host: a pattern that every metric
 * matches would have each target scraped that might have one of it.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Consumer, Sample } from '../client/browser.ts'
import { argumentsFor, OWN } from './producers.ts'
import { pagesOf, untilAnswered } from './query.ts'
import { type Refusal, refusalOf } from './refusals.ts'

const PAGE = 1_000
/** Values are read again so long after the last answer. */
const APART_MS = 5_000
/** Which families there are is asked again after so many readings. */
const READINGS = 12

export type HostValues =
  | { readonly kind: 'waiting' }
  | ({ readonly kind: 'refused' } & Refusal)
  | {
      readonly kind: 'answer'
      readonly samples: readonly Sample[]
      /** Of the newest value, microseconds since 1970. */
      readonly time: number
      /** Whether a list was too long for one answer. */
      readonly isCut: boolean
    }

export function useHostValues(consumer: Consumer, host: string, producer: string): HostValues {
  const [values, setValues] = useState<HostValues>({ kind: 'waiting' })
  useEffect(() => {
    const abort = new AbortController()
    const reader = new HostReader(consumer, host, producer, abort.signal)
    let timer = 0
    const read = async (): Promise<void> => {
      const found = await reader.read()
      if (abort.signal.aborted) return
      setValues(found)
      timer = window.setTimeout(read, APART_MS)
    }
    void read()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [consumer, host, producer])
  return values
}

export class HostReader {
  readonly #consumer: Consumer
  readonly #host: string
  readonly #producer: string
  readonly #signal: AbortSignal
  #patterns: readonly string[] = []
  #readings = 0

  constructor(consumer: Consumer, host: string, producer: string, signal: AbortSignal) {
    this.#consumer = consumer
    this.#host = host
    this.#producer = producer
    this.#signal = signal
  }

  /** Never rejects. */
  async read(): Promise<HostValues> {
    try {
      return await untilAnswered(this.#consumer, this.#signal, () => this.#read())
    } catch (error) {
      return { kind: 'refused', ...refusalOf(error) }
    }
  }

  async #read(): Promise<HostValues> {
    const signal = this.#signal
    if (this.#patterns.length === 0 || this.#readings % READINGS === 0) this.#patterns = await this.#families()
    const place = { host: this.#host, ...argumentsFor(this.#producer) }
    const answers = await Promise.all(this.#patterns.map((pattern) => this.#consumer.query(pattern, place, { signal })))
    this.#readings++
    return {
      kind: 'answer',
      samples: answers.flatMap(({ elements }) => elements),
      time: Math.max(0, ...answers.map(({ time }) => time)),
      isCut: answers.some(({ isCut }) => isCut),
    }
  }

  /** A pattern for each family that has series of the host. Other servers do not say which series they have. */
  async #families(): Promise<readonly string[]> {
    if (this.#producer !== OWN) return ['*']
    const args = { host: this.#host, limit: PAGE }
    const ask = (after: string) => this.#consumer.query('producer.series', { ...args, after }, { signal: this.#signal })
    const families = new Set<string>()
    for await (const records of pagesOf(ask)) {
      for (const { name, host } of records) {
        if (typeof name === 'string' && host === this.#host) families.add(familyOf(name))
      }
    }
    return [...families]
  }
}

function familyOf(name: string): string {
  const dot = name.indexOf('.')
  return dot < 0 ? name : `${name.slice(0, dot)}.*`
}
