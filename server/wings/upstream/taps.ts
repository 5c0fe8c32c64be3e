/** The taps of one connection to an upstream, by what they ask for and by the ids that they have there. */
import { ConnectionError, StatusError } from '../../../client/errors.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { CURRENT_CHANNEL } from '../../../protocol/monitor/constants.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { RemoteFollower, RemoteRequest, RemoteTap } from '../../kit/producers.ts'
import { shownProblem, type UpstreamSession } from './session.ts'
import type { StoredBindings } from './stored-bindings.ts'
import { argumentsThere, selectionOf, Tap, type TapOptions } from './tap.ts'

export interface TapsOptions extends Omit<TapOptions, 'request'> {
  /** Whether the values of a request have labels. */
  readonly hasLabels: (request: RemoteRequest) => boolean
  /** Whether what is left stays bound there: a server that ends wants it again when it is back, with what came meanwhile. */
  readonly staysBound: () => boolean
  /** Where each binding is stored before it is made; undefined for those that end with their connection. */
  readonly stored?: StoredBindings
  /** A binding that was taken over is not there. */
  readonly gone: (tap: Tap) => void
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
    const key = selectionOf(request)
    const known = this.#taps.get(key)
    const tap = known ?? new Tap({ ...this.#options, request })
    this.#taps.set(key, tap)
    tap.add(follower)
    if (known === undefined) void this.#bind(tap)
    const end = (): void => {
      tap.delete(follower)
      if (tap.followers > 0 || this.#taps.get(key) !== tap) return
      this.#taps.delete(key)
      if (this.#options.staysBound()) return
      this.#options.stored?.delete(key)
      this.#stop(tap)
    }
    return { series: tap.series(), end }
  }

  /** What asks for a selection, as `selectionOf` writes it. */
  of(selection: string): Tap | undefined {
    return this.#taps.get(selection)
  }

  /** The ids of the last connection mean nothing any more. */
  forgetIds(): void {
    this.#byId.clear()
    for (const tap of this.all()) tap.id = 0
  }

  /** A channel there binds a selection under an id already. Returns whether that is wanted. */
  adopt(selection: string, id: number): boolean {
    const tap = this.#taps.get(selection)
    if (tap === undefined || tap.id !== 0) return false
    this.#named(tap, id)
    return true
  }

  /**
   * There is a connection with the channel: binds what is not bound there, and what may not be. Settles when all of it is, and never
   * rejects. `isSure`: what was taken over is bound there.
   */
  async begin(session: UpstreamSession, isSure = true): Promise<void> {
    this.#session = session
    await Promise.all(this.all().map((tap) => (tap.id === 0 || !isSure ? this.#bind(tap) : undefined)))
  }

  /** What was refused is tried again: it may be there by now. */
  async retry(): Promise<void> {
    await Promise.all(this.all().map((tap) => (tap.problem === '' ? undefined : this.#bind(tap))))
  }

  /** A GAP of the upstream, for all whose values are lost. `before` is called for each of them first. */
  lost(gap: Gap, before: (tap: Tap) => void = () => {}): void {
    const one = this.#byId.get(gap.metric)
    const all = gap.metric === 0 ? this.all() : one === undefined ? [] : [one]
    for (const tap of all) before(tap)
    const bindings = all.reduce((sum, { followers }) => sum + followers, 0)
    if (gap.metric !== 0 || bindings <= 1) for (const tap of all) tap.gap(gap)
    else if (new Set(all.flatMap((tap) => [...tap.queues()])).size === 1) all[0]?.gapOfChannel(gap)
    // Whose they were is not known where there are several.
    else for (const tap of all) tap.gap({ ...gap, count: 0 })
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
    const { stored } = this.#options
    const key = selectionOf(tap.request)
    const isWanted = (): boolean => this.#taps.get(key) === tap
    const args: ArgumentList = argumentsThere(tap.request)
    try {
      if (tap.id !== 0) await this.#bindAgain(tap, session)
      if (tap.id === 0) {
        const id = await session.request('COLLECT', { metric: name, args }, (id) => this.#named(tap, id))
        if (stored !== undefined && isWanted()) await storedOrOver(stored.put(key, id), session)
        if (isWanted()) await session.request('SUBSCRIBE', { metric: id, channel: CURRENT_CHANNEL })
        if (isWanted()) stored?.made(id)
      }
      // When this server ends, nobody wants anything any more; it asks for the same again when it is back.
      if (!isWanted() && !this.#options.staysBound()) this.#stop(tap)
    } catch (error) {
      // The link makes a lost connection again; one over which nobody answers is no better.
      if (error instanceof ConnectionError) session.close(error)
      if (!(error instanceof StatusError)) return
      this.#unnamed(tap)
      if (isWanted()) stored?.delete(key)
      tap.problem = `${name}: ${shownProblem(error.detail || error.message)}`
    } finally {
      if (this.#binding.get(tap) === session) this.#binding.delete(tap)
    }
  }

  /** It was bound when it was stored, and the upstream does not say what is bound now. Changes nothing there if it is. */
  async #bindAgain(tap: Tap, session: UpstreamSession): Promise<void> {
    try {
      await session.request('SUBSCRIBE', { metric: tap.id, channel: CURRENT_CHANNEL })
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      this.#unnamed(tap)
      this.#options.gone(tap)
    }
  }

  #unnamed(tap: Tap): void {
    this.#byId.delete(tap.id)
    tap.id = 0
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

/** Settles when it is stored, which may take any time on a full disk, or when the connection has ended. */
function storedOrOver(stored: Promise<void>, session: UpstreamSession): Promise<void> {
  return new Promise((resolve) => {
    const forget = session.whenOver(resolve)
    void stored.then(() => {
      forget()
      resolve()
    })
  })
}
