/**
 * The values of one host, read again and again, family by family. What is scraped is asked only if there are series of the host among
 * it: each target that might have one would be scraped. Whether there are is looked for meanwhile, since with many targets it takes
 * seconds.
 */
import { useEffect, useState } from 'preact/hooks'
import { type Consumer, type Sample, StatusError } from '../client/browser.ts'
import { argumentsFor, OWN } from './producers.ts'
import { pagesOf, recordsOf, untilAnswered } from './query.ts'
import { type Refusal, refusalOf } from './refusals.ts'

const PAGE = 500
/** The family whose values are fetched when somebody asks. */
const SCRAPED = 'prometheus.*'
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
  #families: readonly string[] = []
  #hasScraped = false
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
    if (this.#readings % READINGS === 0) await this.#look()
    const place = { host: this.#host, ...argumentsFor(this.#producer) }
    const patterns = this.#families.filter((family) => family !== SCRAPED || this.#hasScraped)
    const asked = patterns.map((pattern) => this.#consumer.query(pattern, place, { signal }).catch(refused))
    const all = await Promise.all(asked)
    this.#readings++
    // Families without hosts refuse the argument.
    const answers = all.filter((one): one is Sample => !(one instanceof StatusError))
    const [refusal] = all
    if (answers.length === 0 && refusal instanceof StatusError) throw refusal
    return {
      kind: 'answer',
      samples: answers.flatMap(({ elements }) => elements),
      time: Math.max(0, ...answers.map(({ time }) => time)),
      isCut: answers.some(({ isCut }) => isCut),
    }
  }

  /** Which families there are. Those of other servers are not listed. */
  async #look(): Promise<void> {
    const signal = this.#signal
    if (this.#producer !== OWN) {
      this.#families = ['*']
      return
    }
    const ask = (after: string) => this.#consumer.query('producer.metrics', { after, limit: PAGE }, { signal })
    const families = new Set<string>()
    for await (const records of pagesOf(ask, { key: 'name' })) {
      for (const { name } of records) families.add(familyOf(String(name)))
    }
    this.#families = [...families]
    if (!families.has(SCRAPED)) return
    const series = { match: SCRAPED, host: this.#host, limit: 1 }
    this.#consumer.query('producer.series', series, { signal }).then(
      ({ plain }) => {
        this.#hasScraped = recordsOf(plain).length > 0
      },
      // It is looked for again.
      () => {},
    )
  }
}

function refused(error: unknown): StatusError {
  if (error instanceof StatusError) return error
  throw error
}

function familyOf(name: string): string {
  const dot = name.indexOf('.')
  return dot < 0 ? name : `${name.slice(0, dot)}.*`
}
