/** The metrics that a consumer follows, by the ids that they have on its channel at present. */
import { BasicType } from '../protocol/monitor/constants.ts'
import type { Field, Value } from '../protocol/monitor/value.ts'
import type { Arguments } from './arguments.ts'
import type { Sample } from './sample.ts'

/** May take its time: what comes behind waits for it. */
export type Handler = (sample: Sample) => unknown

/** A metric that is followed. */
export interface Followed {
  readonly metric: string
  readonly args: Arguments
  /** Another one where the channel had to be made anew. */
  readonly id: number
  /** No more values; those that wait on the channel are dropped. */
  stop(): Promise<void>
}

export interface Follow extends Followed {
  id: number
  readonly handler: Handler | undefined
}

/** Ids that are remembered beyond their time. */
const MAX_FORMER = 1024

export class Follows {
  readonly #byId = new Map<number, Follow>()
  /** By the ids that they had before: values of those may still wait to be handled. */
  readonly #former = new Map<number, Follow>()
  /** What the channel has bound besides: metric names by id. */
  #found = new Map<number, string>()

  get size(): number {
    return this.#byId.size
  }

  get(id: number): Follow | undefined {
    return this.#byId.get(id) ?? this.#former.get(id)
  }

  nameOf(id: number): string {
    return this.#byId.get(id)?.metric ?? this.#found.get(id) ?? ''
  }

  /** What the channel already binds under this name. Throws where it does so more than once: their arguments are not told. */
  claim(metric: string): number | undefined {
    const ids = [...this.#found].filter(([, name]) => name === metric).map(([id]) => id)
    if (ids.length < 2) return ids[0]
    throw new RangeError(`the channel binds ${metric} more than once (ids ${ids.join(', ')}): stop all but one of them`)
  }

  /** Takes over what the channel binds under its name; false where there is nothing. Throws as `claim` does. */
  adopt(follow: Follow): boolean {
    const id = this.claim(follow.metric)
    if (id !== undefined) this.set(id, follow)
    return id !== undefined
  }

  set(id: number, follow: Follow): void {
    if (this.#byId.delete(follow.id)) this.#remember(follow.id, follow)
    this.#found.delete(id)
    follow.id = id
    this.#byId.set(id, follow)
  }

  delete(follow: Followed): void {
    this.#byId.delete(follow.id)
    for (const [id, former] of this.#former) if (former === follow) this.#former.delete(id)
  }

  /** Its values that are here already are of no more use: they count as handled. */
  stopped(follow: Follow): void {
    this.delete(follow)
    this.#remember(follow.id, { ...follow, handler: () => {} })
  }

  /** A channel has been taken up that binds this, if that is known; gives what is followed and not among it. */
  reconcile(bound: ReadonlyMap<number, string> | undefined): Follow[] {
    if (!bound) return []
    this.#found = new Map([...bound].filter(([id]) => !this.#byId.has(id)))
    return [...this.#byId.values()].filter(({ id }) => !bound.has(id))
  }

  clear(): void {
    this.#byId.clear()
    this.#former.clear()
    this.#found.clear()
  }

  #remember(id: number, follow: Follow): void {
    this.#former.set(id, follow)
    for (const oldest of this.#former.keys()) if (this.#former.size > MAX_FORMER) this.#former.delete(oldest)
  }
}

/** The bindings that an answer of `producer.channels` tells of one channel; undefined where it does not know it. */
export function bindingsOf(answer: Value): ReadonlyMap<number, string> | undefined {
  const [channel] = recordsOf(answer)
  const bindings = channel?.find(({ name }) => name === 'bindings')
  if (!bindings) return undefined
  return new Map(
    recordsOf(bindings).map((binding) => {
      const field = (name: string) => binding.find((candidate) => candidate.name === name)?.value
      return [Number(field('metric')), String(field('name'))]
    }),
  )
}

function recordsOf({ type, value }: Value): readonly (readonly Field[])[] {
  if (type !== BasicType.ARRAY || value.element !== BasicType.REC) return []
  return value.items as readonly (readonly Field[])[]
}
