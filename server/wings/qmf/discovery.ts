/**
 * The classes of a broker: P returns its packages, Q the classes of a package, S the schema of a class that is not
 * cached. Agents of QMF v1 report their classes to the broker, so it knows all; those that speak v2 only are asked
 * themselves (Q and S, without packages). Classes that are indicated or met meanwhile are requested once.
 */
import type { ClassKey, QmfMessage, Schema, SchemaArgument, SchemaItem } from '../../../protocol/qmf/types.ts'
import { type ConsoleLimits, consoleLimits, type QmfCounters } from './console-events.ts'
import type { QmfRequests } from './requests.ts'

/** The address of the broker in requests for classes. */
const BROKER = 'broker'

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
  readonly #limits: Pick<ConsoleLimits, 'schemas' | 'schemaBytes'>
  /** The oldest comes first. */
  readonly #schemas = new Map<string, Schema>()
  #bytes = 0

  constructor(limits: Pick<ConsoleLimits, 'schemas' | 'schemaBytes'> = consoleLimits) {
    this.#limits = limits
  }

  get(key: ClassKey): Schema | undefined {
    return this.#schemas.get(keyText(key))
  }

  add(schema: Schema): void {
    const text = keyText(schema.key)
    this.#bytes += schemaBytes(schema) - schemaBytes(this.#schemas.get(text))
    this.#schemas.set(text, schema)
    for (const [oldest, { key }] of this.#schemas) {
      if (this.#schemas.size <= this.#limits.schemas && this.#bytes <= this.#limits.schemaBytes) return
      this.#bytes -= schemaBytes(this.get(key))
      this.#schemas.delete(oldest)
    }
  }
}

/** About as many bytes as a schema takes in memory. */
function schemaBytes(schema: Schema | undefined): number {
  if (schema === undefined) return 0
  const methods = schema.kind === 'event' ? [] : schema.methods
  const items: readonly Pick<SchemaItem, 'name' | 'description' | 'unit'>[] =
    schema.kind === 'event'
      ? schema.arguments
      : [...schema.properties, ...schema.statistics, ...methods, ...methods.flatMap((method) => method.arguments)]
  return items.reduce((sum, { name, description = '', unit = '', ...rest }) => {
    const { refPackage = '', refClass = '', default: byDefault } = rest as Partial<SchemaItem & SchemaArgument>
    const texts = [name, description, unit, refPackage, refClass, typeof byDefault === 'string' ? byDefault : '']
    return texts.reduce((bytes, text) => bytes + 2 * text.length, sum + 200)
  }, 1_000)
}

export interface DiscoveryOptions {
  readonly requests: QmfRequests
  readonly cache: SchemaCache
  readonly limits: Pick<ConsoleLimits, 'schemas' | 'schemaBytes' | 'packages'>
  readonly counters: QmfCounters
  /** Called once for each class. */
  readonly learned: (schema: Schema) => void
  /** Called for each class of the broker, or of an agent that was asked itself, after `learned`. */
  readonly offered: (agent: string, schema: Schema) => void
}

export class Discovery {
  readonly #options: DiscoveryOptions
  readonly #packages = new Set<string>()
  readonly #schemas = new Map<string, Schema>()
  readonly #requested = new Set<string>()
  readonly #requestedPackages = new Set<string>()
  /** Classes that the broker did not have when asked; it is asked again in the next round. */
  readonly #refused = new Set<string>()
  /** The classes of the broker and of each agent that is asked itself, known or not. */
  readonly #agents = new Map<string, Set<string>>([[BROKER, new Set()]])
  #bytes = 0
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
    for (const agent of this.#agents.keys()) if (agent !== BROKER) this.#requestClassesOf(agent)
  }

  /** An agent is there that speaks v2 only. */
  addAgent(agent: string): void {
    this.#agents.set(agent, new Set())
    this.#requestClassesOf(agent)
  }

  removeAgent(agent: string): void {
    this.#agents.delete(agent)
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

  /** `from` and `kind`: the agent that has it, if it is asked itself, and whether it is a class of objects or events. */
  addClass(key: ClassKey, from = BROKER, kind: Schema['kind'] = 'table'): void {
    const { cache, counters, limits, offered } = this.#options
    const text = keyText(key)
    const classes = this.#agents.get(from)
    if (classes !== undefined && !classes.has(text) && classes.size < limits.schemas) {
      classes.add(text)
      const known = this.#schemas.get(text)
      if (known !== undefined) offered(from, known)
    }
    if (this.#schemas.has(text) || this.#requested.has(text) || this.#refused.has(text)) return
    if (this.#schemas.size + this.#requested.size + this.#refused.size >= limits.schemas) {
      counters.schemasFull++
      return
    }
    const cached = cache.get(key)
    if (cached !== undefined) this.#learn(text, cached)
    else this.#requestSchema(key, text, classes === undefined ? BROKER : from, kind)
  }

  #requestPackages(): void {
    this.#request(
      BROKER,
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
      BROKER,
      (sequence) => ({ op: 'Q', sequence, packageName }),
      (answer) => {
        if (answer.op === 'q') this.addClass(answer.key)
      },
      () => this.#requestedPackages.delete(packageName),
    )
  }

  #requestClassesOf(agent: string): void {
    this.#request(
      agent,
      (sequence) => ({ op: 'Q', sequence, packageName: '' }),
      (answer) => {
        if (answer.op === 'q') this.addClass(answer.key, agent, answer.kind)
      },
      () => {},
    )
  }

  #requestSchema(key: ClassKey, text: string, from: string, kind: Schema['kind']): void {
    this.#requested.add(text)
    this.#request(
      from,
      (sequence) => ({ op: 'S', sequence, key, kind }),
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
    const { counters, learned, limits, offered } = this.#options
    const bytes = schemaBytes(schema)
    if (this.#bytes + bytes > limits.schemaBytes) {
      counters.schemasFull++
      this.#refused.add(text)
      return
    }
    this.#bytes += bytes
    this.#schemas.set(text, schema)
    learned(schema)
    for (const [agent, classes] of this.#agents) if (classes.has(text)) offered(agent, schema)
  }

  #request(
    to: string,
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
      to,
      message,
      answered,
      ended: (outcome) => {
        if (outcome !== 'closed') close(outcome !== 'timeout')
      },
    })
    if (refusal !== undefined) close(true)
  }
}
