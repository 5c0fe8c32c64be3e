/** What completes an expression while it is typed: names of metrics and labels, and texts of labels, as the server has them. */
import type { Consumer } from '../client/browser.ts'
import { labelName, selectorText } from './promql-names.ts'
import { recordsOf } from './query.ts'

const LABELS = 'producer.history.labels'
const METRICS = 'producer.metrics'
/** An answer is good for so long. */
const FRESH_MS = 10_000
const MOST_ANSWERS = 100

export interface LabelMatch {
  readonly name: string
  readonly operator: '=' | '!=' | '=~' | '!~'
  /** As it stands in the expression, between its quotes. */
  readonly value: string
  matchesEmpty(): boolean
}

interface Described {
  readonly type: string
  readonly help: string
}

/** In the shape that the editor of Prometheus wants; it is asked with each key that is pressed. */
export class Completion {
  readonly #consumer: Pick<Consumer, 'query'>
  readonly #nowMs: () => number
  /** By their arguments, the oldest first. */
  readonly #answers = new Map<string, { readonly askedMs: number; readonly texts: Promise<string[]> }>()

  constructor(consumer: Pick<Consumer, 'query'>, nowMs: () => number = Date.now) {
    this.#consumer = consumer
    this.#nowMs = nowMs
  }

  metricNames(): Promise<string[]> {
    return this.#texts({ label: '__name__' })
  }

  labelNames(metricName = ''): Promise<string[]> {
    return this.#texts(metricName === '' ? {} : { match: selectorText(metricName, []) })
  }

  labelValues(label: string, metricName = '', matchers: readonly LabelMatch[] = []): Promise<string[]> {
    const others = matchers.filter((one) => one.name !== label && !one.matchesEmpty())
    const pairs = others.map(({ name, operator, value }) => `${labelName(name)}${operator}${inQuotes(value)}`)
    const match = selectorText(metricName, pairs)
    return this.#texts({ label, ...(match !== '' && { match }) })
  }

  /** What the catalogue says of metrics, by their names in Prometheus. */
  async metricMetadata(): Promise<Record<string, Described[]>> {
    try {
      const { plain } = await this.#consumer.query(METRICS)
      const described = recordsOf(plain).map(({ name, monotonic, description }) => {
        const one = { type: monotonic === true ? 'counter' : 'gauge', help: String(description ?? '') }
        return [String(name).replace(/[^a-zA-Z0-9_:]/g, '_'), [one]] as [string, Described[]]
      })
      return Object.fromEntries(described)
    } catch {
      return {}
    }
  }

  /** Matches are found by labels. */
  async series(): Promise<Map<string, string>[]> {
    return []
  }

  async flags(): Promise<Record<string, string>> {
    return {}
  }

  #texts(args: Readonly<Record<string, string>>): Promise<string[]> {
    const key = JSON.stringify(args)
    const known = this.#answers.get(key)
    const nowMs = this.#nowMs()
    if (known !== undefined && nowMs - known.askedMs < FRESH_MS) return known.texts
    this.#answers.delete(key)
    const texts = this.#ask(args)
    this.#answers.set(key, { askedMs: nowMs, texts })
    const [oldest] = this.#answers.keys()
    if (this.#answers.size > MOST_ANSWERS && oldest !== undefined) this.#answers.delete(oldest)
    return texts
  }

  /** Nobody is bothered by what cannot be completed. */
  async #ask(args: Readonly<Record<string, string>>): Promise<string[]> {
    try {
      const { plain } = await this.#consumer.query(LABELS, args)
      return recordsOf(plain).flatMap(({ text }) => (text === undefined ? [] : [String(text)]))
    } catch {
      return []
    }
  }
}

/** What stood between quotes of another kind may have such a one. */
function inQuotes(value: string): string {
  return `"${value.replace(/\\.|"/gs, (part) => (part === '"' ? '\\"' : part))}"`
}
