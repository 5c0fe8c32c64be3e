/**
 * The births of series that very many bindings may select: some are asked at once, the others over several turns. Until then a
 * birth keeps what its series has, like a subscription, so that those who are asked late miss nothing.
 */
import { type FairWork, finish, type Party, SERVER_TENANT, type Steps } from '../core/fair-work.ts'
import type { BoundInstance, HubSubscription } from './bound-instance.ts'
import type { ListeningSensor, Sensor, Series, Sink, Subscription } from './metric.ts'
import { unsubscribe } from './subscriptions.ts'

/** Bindings that are asked about a new series at once. */
const MOST_AT_ONCE = 256
/** Values of a series that may wait for bindings to be asked. */
const MAX_MISSED = 64
const NO_BYTES = new Uint8Array(0)

interface EncodedValue {
  /** Its basic type and the value. */
  readonly tail: Uint8Array
  /** Microseconds since 1970. */
  readonly time: number
}

/** The steps that ask about one new series. */
interface Asking {
  readonly name: string
  readonly steps: Steps<void>
}

/** Subscribes a binding to a series; undefined if it does not select the series, has it already, or has ended. */
type Subscribe = (binding: BoundInstance, sensor: ListeningSensor, series: Series) => Subscription | undefined

export class Births {
  readonly #work: FairWork
  readonly #subscribe: Subscribe
  /** By sensor, the new series that the rest of the bindings are asked about, one after the other. */
  readonly #asking = new Map<Sensor, Asking[]>()
  /** How many of these series have a name. */
  readonly #names = new Map<string, number>()
  readonly #parties = new Map<Sensor, Party>()

  constructor(work: FairWork, subscribe: Subscribe) {
    this.#work = work
    this.#subscribe = subscribe
  }

  /**
   * How many bindings may be asked about a new series at once. None, if some are still to be asked about an earlier one of this
   * name: it may have been the same metric, so they must hear of that first.
   */
  mostAtOnce({ name }: Series): number {
    return this.#names.has(name) ? 0 : MOST_AT_ONCE
  }

  /** Whose work the births of a sensor are. */
  partyOf(sensor: Sensor): Party {
    const { owner } = sensor
    const party = this.#parties.get(sensor) ?? { tenant: owner === 'producer' ? SERVER_TENANT : owner.tenant }
    this.#parties.set(sensor, party)
    return party
  }

  /**
   * Asks the rest of the bindings about a new series over the next turns. Those with a number above `lastNumber` are newer than
   * the series and have asked for it themselves. `first`: the value that a subscription gets at once.
   */
  askLater(
    sensor: ListeningSensor,
    series: Series,
    bindings: Iterable<BoundInstance>,
    lastNumber: number,
    first: EncodedValue | undefined,
  ): void {
    const birth = new Birth(series.subscriptions.length, first, () => this.#complete(sensor, asking))
    series.subscriptions.push(birth.subscription)
    const { name } = series
    const asking: Asking = { name, steps: this.#ask(sensor, series, birth, bindings, lastNumber) }
    this.#names.set(name, (this.#names.get(name) ?? 0) + 1)
    const queue = this.#asking.get(sensor)
    if (queue !== undefined) {
      queue.push(asking)
      return
    }
    this.#asking.set(sensor, [asking])
    void this.#work.run(this.partyOf(sensor), this.#askAll(sensor))
  }

  /**
   * Resolves when all bindings have been asked about the series of a sensor that were born so far, and have what these have kept;
   * undefined if that is so already.
   */
  whenAsked(sensor: Sensor): Promise<void> | undefined {
    const queue = this.#asking.get(sensor)
    if (queue === undefined) return undefined
    // No series has an empty name, so nothing takes it out of its turn.
    return new Promise((resolve) => queue.push({ name: '', steps: reached(resolve) }))
  }

  *#ask(
    sensor: ListeningSensor,
    series: Series,
    birth: Birth,
    bindings: Iterable<BoundInstance>,
    lastNumber: number,
  ): Steps<void> {
    for (const binding of bindings) {
      const subscribed = binding.number <= lastNumber ? this.#subscribe(binding, sensor, series) : undefined
      if (subscribed !== undefined) {
        for (const { tail, time } of birth.missed) subscribed.sink.append(subscribed.framePrefix, tail, time)
        // The series has ended meanwhile, and with it all its subscriptions.
        if (!birth.isSubscribed(series)) {
          binding.drop(series)
        }
      }
      yield
    }
    unsubscribe(series, birth.subscription)
    const left = (this.#names.get(series.name) ?? 1) - 1
    if (left === 0) this.#names.delete(series.name)
    else this.#names.set(series.name, left)
  }

  *#askAll(sensor: Sensor): Steps<void> {
    const queue = this.#asking.get(sensor) ?? []
    for (let next = queue[0]; next !== undefined; next = queue[0]) {
      yield* next.steps
      if (queue[0] === next) queue.shift()
    }
    this.#asking.delete(sensor)
  }

  /** Asks the rest of the bindings at once: about one new series, after the earlier ones of its name. */
  #complete(sensor: Sensor, last: Asking): void {
    const queue = this.#asking.get(sensor) ?? []
    for (const asking of queue.slice(0, queue.indexOf(last) + 1)) {
      if (asking.name !== last.name) continue
      finish(asking.steps)
      queue.splice(queue.indexOf(asking), 1)
    }
  }
}

// biome-ignore lint/correctness/useYield: there is only one step.
function* reached(resolve: () => void): Steps<void> {
  resolve()
}

class Birth implements Sink {
  readonly missed: EncodedValue[] = []
  readonly subscription: HubSubscription
  readonly #full: () => void

  /** `full` is called when it keeps too much, but not while a value is passed to the subscriptions of its series. */
  constructor(at: number, first: EncodedValue | undefined, full: () => void) {
    this.subscription = { framePrefix: NO_BYTES, sink: this, at }
    if (first !== undefined) this.missed.push(first)
    this.#full = full
  }

  isSubscribed({ subscriptions }: Series): boolean {
    return subscriptions[this.subscription.at] === this.subscription
  }

  append(_framePrefix: Uint8Array, tail: Uint8Array, time: number): void {
    this.missed.push({ tail: tail.slice(), time })
    if (this.missed.length === MAX_MISSED) queueMicrotask(this.#full)
  }
}
