/**
 * The classes of a broker: P returns its packages, Q the classes of a package, S the schema of a class that is not
 * cached. Agents report their classes to the broker, so it knows all. Classes that are indicated or met meanwhile are
 * requested once.
 */
import type { ClassKey, QmfMessage, Schema } from '../../../protocol/qmf/types.ts'
import type { ConsoleLimits, QmfCounters } from './console-events.ts'
import type { QmfRequests } from './requests.ts'

/** QMF names may hold any character but are never longer than 255 bytes; NUL keeps them apart. */
export function keyText({ packageName, className, hash }: ClassKey): string {
  return `${packageName}\0${className}\0${hash}`
}

/** A class in all its versions. */
export function classText({ packageName, className }: Pick<ClassKey, 'packageName' | 'className'>): string {
  return `${packageName}\0${className}`
}

/**
 * Schemas that outlive a connection, so that a broker is asked only for new ones. Each broker has its own cache: a hash
 * is only a claim of the broker, and one that lies must not damage what others send.
 */
export class SchemaCache {
  readonly #limit: number
  /** The oldest comes first. */
  readonly #schemas = new Map<string, Schema>()

  constructor(limit = 1_000) {
    this.#limit = limit
  }

  get(key: ClassKey): Schema | undefined {
    return this.#schemas.get(keyText(key))
  }

  add(schema: Schema): void {
    this.#schemas.set(keyText(schema.key), schema)
    const [oldest] = this.#schemas.keys()
    if (this.#schemas.size > this.#limit && oldest !== undefined) this.#schemas.delete(oldest)
  }
}

export interface DiscoveryOptions {
  readonly requests: QmfRequests
  readonly cache: SchemaCache
  readonly limits: Pick<ConsoleLimits, 'schemas' | 'packages'>
  readonly counters: QmfCounters
  /** Called once for each class. */
  readonly learned: (schema: Schema) => void
}

export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #packages = new Set<string>()
  readonly #schemas = new Map<string, Schema>()
  readonly #requested = new Set<string>()
  readonly #requestedPackages = new Set<string>()
  /** Classes that the broker did not have when asked; it is asked again in the next round. */
  readonly #refused = new Set<string>()
  #open = 0
  #done: (() => void) | undefined

  constructor(options: DiscoveryOptions) {
    this.#options = options
  }

  schema(key: ClassKey): Schema | undefined {
    return this.#schemas.get(keyText(key))
  }

  /** Requests everything. Calls `done` when all was answered or given up, but not if a round is under way already. */
  startRound(done: () => void): void {
    if (this.#done !== undefined) return
    this.#done = done
    this.#refused.clear()
    this.#requestPackages()
  }

  /** The broker indicated that it has this package. */
  packageIndicated(packageName: string): void {
    if (!this.#packages.has(packageName)) this.#requestClasses(packageName)
  }

  /** The broker indicated that it has this class, even if it did not have the schema a moment ago. */
  classIndicated(key: ClassKey): void {
    this.#refused.delete(keyText(key))
    this.addClass(key)
  }

  addClass(key: ClassKey): void {
    const { cache, counters, limits } = this.#options
    const text = keyText(key)
    if (this.#schemas.has(text) || this.#requested.has(text) || this.#refused.has(text)) return
    if (this.#schemas.size + this.#requested.size + this.#refused.size >= limits.schemas) {
      counters.schemasFull++
      return
    }
    const cached = cache.get(key)
    if (cached !== undefined) this.#learn(text, cached)
    else this.#requestSchema(key, text)
  }

  #requestPackages(): void {
    this.#request(
      (sequence) => ({ op: 'P', sequence }),
      (answer) => {
        if (answer.op === 'p') this.#requestClasses(answer.packageName)
      },
      (isAnswered) => {
        // Without packages nothing else can be done, and the end of the round would be a false report.
        if (!isAnswered) this.#requestPackages()
      },
    )
  }

  #requestClasses(packageName: string): void {
    const { counters, limits } = this.#options
    if (this.#requestedPackages.has(packageName)) return
    if (!this.#packages.has(packageName) && this.#packages.size >= limits.packages) {
      counters.packagesFull++
      return
    }
    this.#packages.add(packageName)
    this.#requestedPackages.add(packageName)
    this.#request(
      (sequence) => ({ op: 'Q', sequence, packageName }),
      (answer) => {
        if (answer.op === 'q') this.addClass(answer.key)
      },
      () => this.#requestedPackages.delete(packageName),
    )
  }

  #requestSchema(key: ClassKey, text: string): void {
    this.#requested.add(text)
    this.#request(
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
        this.#requested.delete(text)
        if (!this.#schemas.has(text)) this.#refused.add(text)
      },
    )
  }

  #learn(text: string, schema: Schema): void {
    this.#schemas.set(text, schema)
    this.#options.learned(schema)
  }

  #request(
    message: (sequence: number) => QmfMessage,
    answered: (answer: QmfMessage) => void,
    ended: (isAnswered: boolean) => void,
  ): void {
    const close = (isAnswered: boolean): void => {
      ended(isAnswered)
      if (--this.#open > 0) return
      const done = this.#done
      this.#done = undefined
      done?.()
    }
    this.#open++
    const refusal = this.#options.requests.ask({
      to: 'broker',
      message,
      answered,
      ended: (outcome) => {
        if (outcome !== 'closed') close(outcome !== 'timeout')
      },
    })
    if (refusal !== undefined) close(true)
  }
}
