/** The results of EXECUTEs as values of channels [MON 10]: subject to no limit, sent only when they are stored. */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../core/clock.ts'
import type { Ids } from '../metrics/ids.ts'
import { framePrefix } from '../metrics/instance.ts'
import type { ControlResult } from './control.ts'

export interface ResultsOptions {
  readonly ids: Ids
  readonly journal: Journal
  readonly clock: Pick<Clock, 'microseconds'>
}

/** A result that is to come, or came. */
export interface Expected {
  readonly id: number
  readonly control: string
  readonly user: number
  readonly channel: Channel
}

export class Results {
  readonly #options: ResultsOptions

  constructor(options: ResultsOptions) {
    this.#options = options
  }

  /** "A result is to come", in the batch under way. */
  announce(control: string, user: number, channel: Channel, id = this.#options.ids.take()): Expected {
    const { journal } = this.#options
    channel.results.add(id)
    if (channel.row.durable) {
      channel.queue.markChanged()
      journal.change({ put: 'result', row: { id, channel: channel.id, user, control, transaction: 0 } })
    }
    return { id, control, user, channel }
  }

  /** Puts a result on its channel, unless it was stopped or the channel deleted meanwhile. */
  finish({ id, control, user, channel }: Expected, result: Uint8Array): void {
    if (channel.deleted || !channel.results.has(id)) return
    const { clock, journal } = this.#options
    const { queue } = channel
    const prefix = framePrefix(id, {}, new Set())
    const hold = channel.row.durable ? queue.holdBack() : undefined
    const transaction = queue.appendResult(prefix, result, clock.microseconds())
    if (hold === undefined) return
    journal.change({ put: 'result', row: { id, channel: channel.id, user, control, transaction } })
    // Sent only when it is stored: after a crash the consumer would get `unknown` as a second result.
    void journal.whenStored().then(() => hold.release())
  }
}

/** The value of a result, as it is sent and kept. */
export function encoded({ outcome, detail, value }: ControlResult): Uint8Array {
  const writer = new XdrWriter()
  writeTyped(writer, {
    type: BasicType.REC,
    value: [
      { name: 'outcome', type: BasicType.STRING, value: outcome },
      { name: 'detail', type: BasicType.STRING, value: detail },
      { name: 'value', ...value },
    ],
  })
  return writer.copy()
}

/** Of whatever the process did not live to see the end of. */
export const UNKNOWN: ControlResult = {
  outcome: 'unknown',
  detail: 'the producer ended before the result was stored; whether the control took effect is not known',
  value: VOID,
}
