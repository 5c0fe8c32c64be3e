/** The metrics that a consumer follows, by the ids that they have on its channel at present. */
import { BasicType, CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { Field } from '../protocol/monitor/value.ts'
import type { SendCommand } from './commands.ts'
import { StatusError } from './errors.ts'
import { type Arguments, type PlainRecord, plainOf, recordsOf, type Sample, toArgumentList } from './values.ts'

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

/** A metric that is bound to the channel. */
export interface BoundMetric {
  readonly id: number
  readonly metric: string
  /** As COLLECT took them: integers as numbers, or as bigints beyond 2^53. */
  readonly args: Arguments
  /** `subscribe`, or `buffer` if the values wait for `get`. */
  readonly mode: string
}

/** The number of former ids that are remembered. */
const MAX_FORMER = 1024

export class Subscriptions {
  readonly #byId = new Map<number, FollowedMetric>()
  /** Metrics by the ids that they had before: values with those may still wait to be handled. */
  readonly #former = new Map<number, FollowedMetric>()
  /** The other metrics that are bound to the channel, by id. */
  #found = new Map<number, BoundMetric>()

  get size(): number {
    return this.#byId.size
  }

  get(id: number): FollowedMetric | undefined {
    return this.#byId.get(id) ?? this.#former.get(id)
  }

  nameOf(id: number): string {
    return this.#byId.get(id)?.metric ?? this.#found.get(id)?.metric ?? ''
  }

  /** The metrics that the channel binds and nobody follows. */
  get unfollowed(): readonly BoundMetric[] {
    return [...this.#found.values()]
  }

  /** Takes over the binding that the channel already has with this name and these arguments; undefined if it has none. */
  adopt(followed: FollowedMetric): BoundMetric | undefined {
    for (const bound of this.#found.values()) {
      if (bound.metric !== followed.metric || !areEqual(bound.args, followed.args)) continue
      this.#set(bound.id, followed)
      return bound
    }
    return undefined
  }

  /** Sends COLLECT and SUBSCRIBE. Nothing is followed once `signal` is aborted. */
  async bind(send: SendCommand, followed: FollowedMetric, signal?: AbortSignal): Promise<void> {
    const { metric, args } = followed
    const collected = (id: number) => {
      if (!signal?.aborted) this.#set(id, followed)
    }
    const id = await send('COLLECT', { metric, args: toArgumentList(args) }, collected, signal)
    await send('SUBSCRIBE', { metric: id, channel: CURRENT_CHANNEL }, undefined, signal)
  }

  /** What was taken over is nobody's again, under the id that it has now. */
  giveBack(followed: Followed, bound: BoundMetric): void {
    // Another channel may be current by now.
    const isOurs = this.#byId.get(followed.id) === followed
    this.delete(followed)
    if (isOurs) this.#found.set(followed.id, { ...bound, id: followed.id })
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

  /** The channel does not bind this id any more. */
  forget(id: number): void {
    this.#found.delete(id)
  }

  /** Takes note of what a new channel binds, if that is known. Returns the followed metrics that are missing there. */
  reconcile(bound: ReadonlyMap<number, BoundMetric> | undefined): FollowedMetric[] {
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

export type SendQuery = (metric: string, args: Arguments) => Promise<Pick<ValueMessage, 'value'>>

/** The types differ: the producer has converted what it was given to the types that the metric declares. */
function areEqual(a: Arguments, b: Arguments): boolean {
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && String(a[name]) === String(b[name]))
  )
}

/** What a channel binds, by id; undefined if the producer does not report it. */
export async function bindingsOf(
  channel: number,
  query: SendQuery,
): Promise<ReadonlyMap<number, BoundMetric> | undefined> {
  const bound = new Map<number, BoundMetric>()
  try {
    for (let after = 0; ; ) {
      const { value } = await query('producer.bindings', { channel: String(channel), ...(after > 0 && { after }) })
      const page = recordsOf(value) ?? []
      const isCut = fieldOf(page.at(-1) ?? [], 'more')?.value === true
      for (const record of isCut ? page.slice(0, -1) : page) {
        const binding = toBoundMetric(record)
        bound.set(binding.id, binding)
        after = binding.id
      }
      if (!isCut || page.length === 1) return bound
    }
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

function toBoundMetric(record: readonly Field[]): BoundMetric {
  const { metric, name, mode, arguments: args } = plainOf({ type: BasicType.REC, value: record }) as PlainRecord
  return { id: Number(metric), metric: String(name), args: (args ?? {}) as Arguments, mode: String(mode) }
}

function fieldOf(record: readonly Field[], name: string): Field | undefined {
  return record.find((field) => field.name === name)
}
