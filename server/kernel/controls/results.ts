/**
 * Delivers the results of EXECUTEs as values of channels [MON 10]. None is ever dropped for a limit: a channel whose results are
 * not committed takes no further EXECUTE instead. They are sent only when they are stored.
 */
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { readTyped, VOID, writeTyped } from '../../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import type { Ids } from '../metrics/ids.ts'
import { framePrefix } from '../metrics/instance.ts'
import type { ControlResult } from './control.ts'

/** Results of a channel that are to come or not committed, and the bytes of those that have come. */
const MAX_RESULTS = 10_000
const MAX_RESULT_BYTES = 16 * 1024 * 1024

export interface ResultsOptions {
  readonly ids: Ids
  readonly journal: Journal
  readonly clock: Pick<Clock, 'microseconds'>
}

/** A result that was announced. */
export interface PendingResult {
  readonly id: number
  readonly control: string
  readonly user: number
  /** undefined if nobody gets it any more. */
  readonly channel: Channel | undefined
}

export class Results {
  readonly #options: ResultsOptions

  constructor(options: ResultsOptions) {
    this.#options = options
  }

  /** Throws StatusError QUOTA_EXCEEDED if the channel takes no further EXECUTE. The results of those that run may go beyond the bytes. */
  needsRoom({ label, results, queue }: Channel): void {
    const { resultBytes } = queue
    if (results.size < MAX_RESULTS && resultBytes < MAX_RESULT_BYTES) return
    const [have, may] =
      results.size < MAX_RESULTS
        ? [`${resultBytes} bytes of results`, MAX_RESULT_BYTES]
        : [`${results.size} results`, MAX_RESULTS]
    throw new StatusError(
      'QUOTA_EXCEEDED',
      `channel ${label}: ${have} are not committed and ${may} are allowed; COMMIT them, or STOP their result ids`,
    )
  }

  /** Announces a result in the current batch. */
  announce(control: string, user: number, channel: Channel, id = this.#options.ids.take()): PendingResult {
    const { journal } = this.#options
    channel.results.add(id)
    if (channel.row.durable) {
      channel.queue.markChanged()
      journal.change({ put: 'result', row: { id, channel: channel.id, user, control, transaction: 0 } })
    }
    return { id, control, user, channel }
  }

  /** Appends a result to its channel, unless the result was stopped or the channel deleted meanwhile. */
  deliver({ id, control, user, channel }: PendingResult, result: Uint8Array): void {
    if (channel === undefined || channel.deleted || !channel.results.has(id)) return
    const { clock, journal } = this.#options
    const { queue } = channel
    const prefix = framePrefix(id, {}, new Set())
    const hold = channel.row.durable ? queue.holdBack() : undefined
    const transaction = queue.appendResult(prefix, result, clock.microseconds())
    if (hold === undefined) return
    journal.change({ put: 'result', row: { id, channel: channel.id, user, control, transaction } })
    // Sent only when it is stored: otherwise the consumer could get `unknown` as a second result after a crash.
    void journal.whenStored().then(() => hold.release())
  }
}

/** Encodes the value of a result as it is sent and stored. */
export function encodeResult({ outcome, detail, value }: ControlResult): Uint8Array {
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

/** Whether the outcome of an encoded result is `unknown`. */
export function isUnknown(result: Uint8Array): boolean {
  const { type, value } = readTyped(new XdrReader(result))
  return type === BasicType.REC && value[0]?.value === 'unknown'
}

/** The result of a control that had not ended when the process ended. */
export const UNKNOWN_RESULT: ControlResult = {
  outcome: 'unknown',
  detail: 'the producer ended before the result was stored; whether the control took effect is not known',
  value: VOID,
}
