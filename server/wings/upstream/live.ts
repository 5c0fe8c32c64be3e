/**
 * The connection for everything that need not survive: channels that are not durable, answers, and the catalogue. It brings what is
 * fresh while the other one empties its channel.
 */
import { StatusError } from '../../../client/errors.ts'
import { toArgumentList } from '../../../client/values.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import { BasicType, CURRENT_CHANNEL } from '../../../protocol/monitor/constants.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Poll } from '../../kit/poll.ts'
import type { Clock, Party, Steps } from '../../kit/running.ts'
import type { LinkUser } from './link.ts'
import type { UpstreamSession } from './session.ts'
import type { Tap } from './tap.ts'
import type { Taps } from './taps.ts'

const NOTHING = new XdrWriter().uint32(BasicType.VOID).copy()

export interface LiveOptions {
  readonly taps: Taps
  readonly clock: Pick<Clock, 'microseconds'>
  readonly work: Poll['work']
  /** Whose work it is. */
  readonly party: Party
  /** Counts a value. */
  readonly counted: () => void
  /** The upstream reports a loss; of one selection, if there is a tap. */
  readonly lost: (gap: Gap, tap: Tap | undefined) => void
  /** The connection can be used. Rejects if it cannot. */
  readonly begun: (session: UpstreamSession) => Promise<void>
  readonly capabilities: (caps: Capabilities) => void
  /** The upstream says that its metrics are other ones. */
  readonly catalogueChanged: (session: UpstreamSession) => void
  readonly changed: (problem: string) => void
}

export class Live implements LinkUser {
  readonly hindrance = ''
  readonly #options: LiveOptions
  #session: UpstreamSession | undefined
  /** The metric id of `producer.catalogue` at the upstream, over this connection. */
  #catalogue: { readonly id: number; readonly session: UpstreamSession } | undefined

  constructor(options: LiveOptions) {
    this.#options = options
  }

  /** The connection, while it can be used. */
  get session(): UpstreamSession | undefined {
    return this.#session
  }

  async begin(session: UpstreamSession): Promise<void> {
    const { taps, begun } = this.#options
    const args = toArgumentList({ channel: session.channel, durable: false })
    const { value } = await session.execute('channel.configure', args)
    const fields: readonly Field[] = value.type === BasicType.REC ? value.value : []
    const outcome = fields.find(({ name }) => name === 'outcome')?.value
    if (outcome !== 'ok') throw new Error('the upstream does not let this connection have a channel that keeps nothing')
    await begun(session)
    taps.forgetIds()
    this.#session = session
    await taps.begin(session)
  }

  /** Has the upstream say when its metrics are other ones. One that does not do so has its catalogue read at intervals. */
  async followCatalogue(session: UpstreamSession): Promise<void> {
    try {
      const id = await session.request('COLLECT', { metric: 'producer.catalogue', args: [] }, (id) => {
        this.#catalogue = { id, session }
      })
      await session.request('SUBSCRIBE', { metric: id, channel: CURRENT_CHANNEL })
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
    }
  }

  value(metric: number, bytes: Uint8Array, start: number, end: number, view: DataView): boolean {
    const tap = this.#options.taps.byId(metric)
    if (tap === undefined) {
      if (metric !== this.#catalogue?.id) return false
      this.#options.catalogueChanged(this.#catalogue.session)
      return true
    }
    this.#options.counted()
    tap.take(bytes, start, end, view)
    return true
  }

  /** What this channel loses is reported by the upstream: it has limits as any other. */
  gap(gap: Gap): void {
    const { taps, lost } = this.#options
    lost(gap, taps.byId(gap.metric))
    taps.lost(gap)
  }

  capabilities(caps: Capabilities): void {
    this.#options.capabilities(caps)
  }

  changed(problem: string): void {
    this.#options.changed(problem)
  }

  over(): void | Promise<void> {
    const { taps, work, party } = this.#options
    this.#session = undefined
    this.#catalogue = undefined
    taps.over()
    return work(party, this.#end())
  }

  /** There may be very many series. */
  *#end(): Steps<void> {
    const { taps, clock } = this.#options
    const time = clock.microseconds()
    for (const tap of taps.all()) yield* tap.end(NOTHING, time)
  }
}
