/**
 * The values of one host, read again and again, family by family. What is scraped is asked only if there are series of the host among
 * it: each target that might have one would be scraped.
 */
import { useEffect, useState } from 'preact/hooks'
import { type Consumer, type Sample, StatusError } from '../client/browser.ts'
import { argumentsFor, OWN } from './producers.ts'
import { type Arguments, pagesOf, recordsOf, untilAnswered } from './query.ts'
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
    if (this.#readings % READINGS === 0) await this.#look()
    const place = { host: this.#host, ...argumentsFor(this.#producer) }
    const patterns = this.#families.filter((family) => family !== SCRAPED || this.#hasScraped)
    const asked = patterns.map((pattern) => this.#ask(pattern, place).catch(refused))
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

  /** Which families there are. */
  async #look(): Promise<void> {
    const ask = (after: string) =>
      this.#ask('producer.metrics', { ...argumentsFor(this.#producer), after, limit: PAGE })
    const families = new Set<string>()
    for await (const records of pagesOf(ask, { key: 'name' })) {
      for (const { name } of records) families.add(familyOf(String(name)))
    }
    // What another server may not list for this one, or does not list while it is not connected, it may still have.
    this.#families = families.size > 0 || this.#producer === OWN ? [...families] : ['*']
    if (!families.has(SCRAPED)) return
    const looking = this.#lookForScraped()
    // Another server has to wait for its targets.
    if (this.#producer === OWN) await looking
  }

  /** Other servers do not list their series: these are asked for the values, so that each of their targets is scraped once. */
  async #lookForScraped(): Promise<void> {
    const host = this.#host
    try {
      if (this.#producer === OWN) {
        const { plain } = await this.#ask('producer.series', { match: SCRAPED, host, limit: 1 })
        this.#hasScraped = recordsOf(plain).length > 0
      } else {
        const { elements } = await this.#ask(SCRAPED, { host, ...argumentsFor(this.#producer) })
        this.#hasScraped = elements.length > 0
      }
    } catch {
      // It is looked for again. What is refused is left out.
    }
  }

  #ask(metric: string, args: Arguments): Promise<Sample> {
    return this.#consumer.query(metric, args, { signal: this.#signal })
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
