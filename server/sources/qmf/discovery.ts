/**
 * Which classes a broker has: P gives its packages, Q the classes of one, S the schema of a class that is not in the
 * cache. Agents tell the broker of theirs, so it knows all. What is indicated or met on the way is asked for too, once.
 */
import type { ClassKey, QmfMessage, Schema } from '../../../protocol/qmf/types.ts'
import type { QmfCounters } from './counters.ts'
import type { Requests } from './requests.ts'
import { keyText, type SchemaCache } from './schemas.ts'

export interface DiscoveryOptions {
  readonly requests: Requests
  readonly cache: SchemaCache
  readonly mostSchemas: number
  readonly mostPackages: number
  readonly counters: QmfCounters
  /** Called once for each class. */
  readonly learned: (schema: Schema) => void
}

export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #packages = new Set<string>()
  readonly #schemas = new Map<string, Schema>()
  readonly #asked = new Set<string>()
  readonly #askedPackages = new Set<string>()
  /** Those that the broker did not have when asked; it is asked again in the next round. */
  readonly #refused = new Set<string>()
  #open = 0
  #done: (() => void) | undefined

  constructor(options: DiscoveryOptions) {
    this.#options = options
  }

  get schemas(): Iterable<Schema> {
    return this.#schemas.values()
  }

  schema(key: ClassKey): Schema | undefined {
    return this.#schemas.get(keyText(key))
  }

  /** Asks for everything. `done`: all of it was answered or given up; not called if a round is under way already. */
  round(done: () => void): void {
    if (this.#done !== undefined) return
    this.#done = done
    this.#refused.clear()
    this.#askPackages()
  }

  /** The broker says that it has that package. */
  packageIndicated(packageName: string): void {
    if (!this.#packages.has(packageName)) this.#askClasses(packageName)
  }

  /** The broker says that it has that class: also one that it did not have the schema of a moment ago. */
  classIndicated(key: ClassKey): void {
    this.#refused.delete(keyText(key))
    this.offer(key)
  }

  /** There is such a class. */
  offer(key: ClassKey): void {
    const { cache, counters, mostSchemas } = this.#options
    const text = keyText(key)
    if (this.#schemas.has(text) || this.#asked.has(text) || this.#refused.has(text)) return
    if (this.#schemas.size + this.#asked.size + this.#refused.size >= mostSchemas) {
      counters.schemasFull++
      return
    }
    const cached = cache.get(key)
    if (cached !== undefined) this.#learn(text, cached)
    else this.#askSchema(key, text)
  }

  #askPackages(): void {
    this.#ask(
      (sequence) => ({ op: 'P', sequence }),
      (answer) => {
        if (answer.op === 'p') this.#askClasses(answer.packageName)
      },
      (isAnswered) => {
        // Without packages there is nothing else to do, and whoever waits for the round would not be told the truth.
        if (!isAnswered) this.#askPackages()
      },
    )
  }

  #askClasses(packageName: string): void {
    const { counters, mostPackages } = this.#options
    if (this.#askedPackages.has(packageName)) return
    if (!this.#packages.has(packageName) && this.#packages.size >= mostPackages) {
      counters.packagesFull++
      return
    }
    this.#packages.add(packageName)
    this.#askedPackages.add(packageName)
    this.#ask(
      (sequence) => ({ op: 'Q', sequence, packageName }),
      (answer) => {
        if (answer.op === 'q') this.offer(answer.key)
      },
      () => this.#askedPackages.delete(packageName),
    )
  }

  #askSchema(key: ClassKey, text: string): void {
    this.#asked.add(text)
    this.#ask(
      (sequence) => ({ op: 'S', sequence, key }),
      (answer) => {
        if (answer.op !== 's') return
        if (keyText(answer.schema.key) !== text) {
          this.#options.counters.unexpected++
          return
        }
        this.#options.cache.add(answer.schema)
        this.#learn(text, answer.schema)
      },
      () => {
        this.#asked.delete(text)
        if (!this.#schemas.has(text)) this.#refused.add(text)
      },
    )
  }

  #learn(text: string, schema: Schema): void {
    this.#schemas.set(text, schema)
    this.#options.learned(schema)
  }

  #ask(
    message: (sequence: number) => QmfMessage,
    answered: (answer: QmfMessage) => void,
    ended: (isAnswered: boolean) => void,
  ): void {
    this.#open++
    const refusal = this.#options.requests.ask({
      to: 'broker',
      message,
      answered,
      ended: (ending) => {
        if (ending === 'ended') return
        ended(ending !== 'late')
        this.#close()
      },
    })
    if (refusal === undefined) return
    ended(true)
    this.#close()
  }

  #close(): void {
    if (--this.#open > 0) return
    const done = this.#done
    this.#done = undefined
    done?.()
  }
}
