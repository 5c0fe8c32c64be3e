/**
 * The connection for everything that need not survive: channels that are not durable, answers, and the catalogue. It brings what is
 * fresh while the other one empties its channel.
 */
import { toArgumentList } from '../../../client/values.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../../core/clock.ts'
import type { LinkUser } from './link.ts'
import type { UpstreamSession } from './session.ts'
import type { Taps } from './taps.ts'

const NOTHING = new XdrWriter().uint32(BasicType.VOID).copy()

export interface LiveOptions {
  readonly taps: Taps
  readonly clock: Pick<Clock, 'microseconds'>
  /** Counts a value. */
  readonly counted: () => void
  /** The connection can be used. Rejects if it cannot. */
  readonly begun: (session: UpstreamSession) => Promise<void>
  readonly capabilities: (caps: Capabilities) => void
  readonly changed: (problem: string) => void
}

export class Live implements LinkUser {
  readonly hindrance = ''
  readonly #options: LiveOptions
  #session: UpstreamSession | undefined

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
    taps.adopt([])
    this.#session = session
    await taps.begin(session)
  }

  value(metric: number, bytes: Uint8Array, start: number, end: number, view: DataView): boolean {
    const tap = this.#options.taps.byId(metric)
    if (tap === undefined) return false
    this.#options.counted()
    tap.take(bytes, start, end, view)
    return true
  }

  /** What this channel loses is reported by the upstream: it has limits as any other. */
  gap(gap: Gap): void {
    this.#options.taps.lost(gap)
  }

  capabilities(caps: Capabilities): void {
    this.#options.capabilities(caps)
  }

  changed(problem: string): void {
    this.#options.changed(problem)
  }

  over(): void {
    const { taps, clock } = this.#options
    this.#session = undefined
    taps.over()
    for (const tap of taps.all()) tap.end(NOTHING, clock.microseconds())
  }
}
