/** The metrics that a consumer follows, by the ids that they have on its channel at present. */
import { BasicType, CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { Field, Value } from '../protocol/monitor/value.ts'
import type { SendCommand } from './commands.ts'
import { StatusError } from './errors.ts'
import { type Arguments, type Sample, toArgumentList } from './values.ts'

/** If it returns a promise, the next value waits for that. */
export type Handler = (sample: Sample) => unknown

/** A metric that is followed. */
export interface Followed {
  readonly metric: string
  readonly args: Arguments
  /** The id changes if the channel has to be replaced. */
  readonly id: number
  /** Ends the subscription. Values that still wait on the channel are dropped. */
  stop(): Promise<void>
}

export interface FollowedMetric extends Followed {
  id: number
  readonly handler: Handler | undefined
}

/** The number of former ids that are remembered. */
const MAX_FORMER = 1024

export class Subscriptions {
  readonly #byId = new Map<number, FollowedMetric>()
  /** Metrics by the ids that they had before: values with those may still wait to be handled. */
  readonly #former = new Map<number, FollowedMetric>()
  /** The names of the other metrics that are bound to the channel, by id. */
  #found = new Map<number, string>()

  get size(): number {
    return this.#byId.size
  }

  get(id: number): FollowedMetric | undefined {
    return this.#byId.get(id) ?? this.#former.get(id)
  }

  nameOf(id: number): string {
    return this.#byId.get(id)?.metric ?? this.#found.get(id) ?? ''
  }

  /**
   * Takes over the binding that the channel already has under this name; false if it has none. Throws RangeError if it has
   * several, since the producer does not report their arguments.
   */
  adopt(followed: FollowedMetric): boolean {
    const { metric } = followed
    const [id, ...others] = [...this.#found].flatMap(([id, name]) => (name === metric ? [id] : []))
    if (id === undefined) return false
    if (others.length > 0) {
      const ids = [id, ...others].join(', ')
      throw new RangeError(`the channel binds ${metric} more than once (ids ${ids}): stop all but one of them`)
    }
    this.#set(id, followed)
    return true
  }

  /** Sends COLLECT and SUBSCRIBE. */
  async bind(send: SendCommand, followed: FollowedMetric): Promise<void> {
    const { metric, args } = followed
    const id = await send('COLLECT', { metric, args: toArgumentList(args) }, (id) => this.#set(id, followed))
    await send('SUBSCRIBE', { metric: id, channel: CURRENT_CHANNEL })
  }

  delete(followed: Followed): void {
    this.#byId.delete(followed.id)
    for (const [id, former] of this.#former) if (former === followed) this.#former.delete(id)
  }

  /** Ends a subscription. Those of its values that have already arrived are dropped and count as handled. */
  stopped(followed: FollowedMetric): void {
    this.delete(followed)
    this.#remember(followed.id, { ...followed, handler: () => {} })
  }

  /** Takes note of what a new channel binds, if that is known. Returns the followed metrics that are missing there. */
  reconcile(bound: ReadonlyMap<number, string> | undefined): FollowedMetric[] {
    if (!bound) return []
    this.#found = new Map([...bound].filter(([id]) => !this.#byId.has(id)))
    return [...this.#byId.values()].filter(({ id }) => !bound.has(id))
  }

  clear(): void {
    this.#byId.clear()
    this.#former.clear()
    this.#found.clear()
  }

  #set(id: number, followed: FollowedMetric): void {
    if (this.#byId.delete(followed.id)) this.#remember(followed.id, followed)
    this.#found.delete(id)
    followed.id = id
    this.#byId.set(id, followed)
  }

  #remember(id: number, followed: FollowedMetric): void {
    this.#former.set(id, followed)
    for (const oldest of this.#former.keys()) if (this.#former.size > MAX_FORMER) this.#former.delete(oldest)
  }
}

export type SendQuery = (metric: string, args: Arguments) => Promise<ValueMessage>

/** What a channel binds: names by id; undefined if the producer does not report it. */
export async function bindingsOf(channel: number, query: SendQuery): Promise<ReadonlyMap<number, string> | undefined> {
  try {
    const { value } = await query('producer.channels', { channel: String(channel) })
    const [ledger = []] = recordsOf(value)
    const bindings = fieldOf(ledger, 'bindings')
    if (bindings === undefined) return undefined
    const first = recordsOf(bindings)
    // A ledger has only the first bindings of a channel with very many.
    const all = Number(fieldOf(ledger, 'bound')?.value ?? 0) > first.length ? await allBindings(channel, query) : first
    return new Map(
      all.map((binding) => [Number(fieldOf(binding, 'metric')?.value), String(fieldOf(binding, 'name')?.value)]),
    )
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

async function allBindings(channel: number, query: SendQuery): Promise<readonly (readonly Field[])[]> {
  const all: (readonly Field[])[] = []
  for (let after = 0; ; ) {
    const { value } = await query('producer.bindings', { channel: String(channel), after })
    const page = recordsOf(value)
    const isCut = fieldOf(page.at(-1) ?? [], 'more')?.value === true
    all.push(...(isCut ? page.slice(0, -1) : page))
    if (!isCut || page.length === 1) return all
    after = Number(fieldOf(all.at(-1) ?? [], 'metric')?.value)
  }
}

function fieldOf(record: readonly Field[], name: string): Field | undefined {
  return record.find((field) => field.name === name)
}

function recordsOf({ type, value }: Value): readonly (readonly Field[])[] {
  if (type !== BasicType.ARRAY || value.element !== BasicType.REC) return []
  return value.items as readonly (readonly Field[])[]
}
