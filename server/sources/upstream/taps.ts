/** The taps of one connection to an upstream, by what they ask for and by the ids that they have there. */
import { ConnectionError, StatusError } from '../../../client/errors.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { CURRENT_CHANNEL } from '../../../protocol/monitor/constants.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { RemoteFollower, RemoteRequest, RemoteTap } from '../../metrics/metric.ts'
import { shownProblem, type UpstreamSession } from './session.ts'
import { argumentsThere, keyOfSelection, Tap, type TapOptions } from './tap.ts'

export interface TapsOptions extends Omit<TapOptions, 'request'> {
  /** Whether the values of a request have labels. */
  readonly hasLabels: (request: RemoteRequest) => boolean
  /** Whether what is left stays bound there: a server that ends wants it again when it is back, with what came meanwhile. */
  readonly staysBound: () => boolean
}

/** A metric id that the channel there binds. */
export interface BoundThere {
  readonly id: number
  readonly metric: string
  readonly args: Readonly<Record<string, unknown>>
}

export class Taps {
  readonly #options: TapsOptions
  readonly #taps = new Map<string, Tap>()
  readonly #byId = new Map<number, Tap>()
  /** Those that are being bound, with the connection over which that happens. */
  readonly #binding = new Map<Tap, UpstreamSession>()
  #session: UpstreamSession | undefined

  constructor(options: TapsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#taps.size
  }

  get series(): number {
    return this.all().reduce((sum, { size }) => sum + size, 0)
  }

  /** Why the upstream does not take some of them; empty if it takes all. */
  get problem(): string {
    return this.all().find(({ problem }) => problem !== '')?.problem ?? ''
  }

  all(): Tap[] {
    return [...this.#taps.values()]
  }

  byId(id: number): Tap | undefined {
    return this.#byId.get(id)
  }

  follow(request: RemoteRequest, follower: RemoteFollower): RemoteTap {
    const key = keyOf(request)
    const known = this.#taps.get(key)
    const tap = known ?? new Tap({ ...this.#options, request })
    this.#taps.set(key, tap)
    tap.add(follower)
    if (known === undefined) void this.#bind(tap)
    const end = (): void => {
      tap.delete(follower)
      if (tap.followers > 0 || this.#taps.get(key) !== tap) return
      this.#taps.delete(key)
      if (!this.#options.staysBound()) this.#stop(tap)
    }
    return { series: tap.series(), end }
  }

  /** The ids that a channel there binds: those that are wanted are taken over. Returns the others. */
  adopt(bound: Iterable<BoundThere>): number[] {
    this.#byId.clear()
    for (const tap of this.all()) tap.id = 0
    const unknown: number[] = []
    for (const { id, metric, args } of bound) {
      const tap = this.#taps.get(keyOfSelection(metric, Object.entries(args)))
      if (tap === undefined || tap.id !== 0) unknown.push(id)
      else this.#named(tap, id)
    }
    return unknown
  }

  /** There is a connection with the channel: binds what is not bound there. Settles when all of it is, and never rejects. */
  async begin(session: UpstreamSession): Promise<void> {
    this.#session = session
    await Promise.all(this.all().map((tap) => (tap.id === 0 ? this.#bind(tap) : undefined)))
  }

  /** What was refused is tried again: it may be there by now. */
  async retry(): Promise<void> {
    await Promise.all(this.all().map((tap) => (tap.problem === '' ? undefined : this.#bind(tap))))
  }

  /** A GAP of the upstream, for all whose values are lost. `before` is called for each of them first. */
  lost(gap: Gap, before: (tap: Tap) => void = () => {}): void {
    const one = this.#byId.get(gap.metric)
    const all = gap.metric === 0 ? this.all() : one === undefined ? [] : [one]
    // Whose they were is not known where there are several.
    const isKnown = gap.metric !== 0 || (all.length === 1 && all[0]?.followers === 1)
    for (const tap of all) {
      before(tap)
      tap.gap(isKnown ? gap : { ...gap, count: 0 })
    }
  }

  /** The connection is gone. */
  over(): void {
    this.#session = undefined
  }

  /** Its values may follow its response at once. */
  #named(tap: Tap, id: number): void {
    tap.id = id
    tap.isLabelled = this.#options.hasLabels(tap.request)
    tap.problem = ''
    this.#byId.set(id, tap)
  }

  async #bind(tap: Tap): Promise<void> {
    const session = this.#session
    // Twice, and its values would come under two ids.
    if (session === undefined || this.#binding.get(tap) === session) return
    this.#binding.set(tap, session)
    const { name } = tap.request
    const args: ArgumentList = argumentsThere(tap.request)
    try {
      const id = await session.request('COLLECT', { metric: name, args }, (id) => this.#named(tap, id))
      await session.request('SUBSCRIBE', { metric: id, channel: CURRENT_CHANNEL })
      // Nobody wants it any more.
      if (this.#taps.get(keyOf(tap.request)) !== tap) this.#stop(tap)
    } catch (error) {
      // The link makes a lost connection again; one over which nobody answers is no better.
      if (error instanceof ConnectionError) session.close(error)
      if (!(error instanceof StatusError)) return
      this.#byId.delete(tap.id)
      tap.id = 0
      tap.problem = `${name}: ${shownProblem(error.detail || error.message)}`
    } finally {
      if (this.#binding.get(tap) === session) this.#binding.delete(tap)
    }
  }

  #stop(tap: Tap): void {
    if (tap.id === 0) return
    this.#byId.delete(tap.id)
    const stopped = this.#session?.request('STOP', { metric: tap.id, channel: CURRENT_CHANNEL })
    // If it is lost, the next connection finds the binding, and nobody who wants it.
    stopped?.catch(() => {})
    tap.id = 0
  }
}

function keyOf(request: RemoteRequest): string {
  return keyOfSelection(
    request.name,
    argumentsThere(request).map(({ name, value }) => [name, value] as const),
  )
}
