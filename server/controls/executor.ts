/**
 * Runs controls [MON 10]: judged before the response; begun when "a result is to come" is stored; its result is a value of
 * the channel that was current, and no limit touches it. What ended with the process has the outcome `unknown`.
 */
import { AuthError } from '../../auth/errors.ts'
import type { Identity } from '../../auth/permissions.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { VOID, writeTyped } from '../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { Clock } from '../clock.ts'
import { StatusError } from '../errors.ts'
import type { Logger } from '../log.ts'
import { convertArguments } from '../metrics/arguments.ts'
import type { Ids } from '../metrics/ids.ts'
import { frameHead } from '../metrics/template.ts'
import { type Control, type ControlContext, type ControlResult, failed } from './control.ts'

export interface ExecutorOptions {
  readonly controls: readonly Control[]
  readonly ids: Ids
  readonly journal: Journal
  readonly clock: Pick<Clock, 'microseconds'>
  readonly log: Logger
}

export class Executor {
  readonly #options: ExecutorOptions

  constructor(options: ExecutorOptions) {
    this.#options = options
  }

  /** Those an identity is shown. */
  visible(identity: Identity): Control[] {
    return this.#options.controls.filter((control) => control.allows(identity))
  }

  /** Judges an EXECUTE; gives the result id and what is to be called when the response is out. Throws StatusError. */
  async execute(name: string, list: ArgumentList, context: ControlContext): Promise<{ id: number; run: () => void }> {
    const control = this.visible(context.identity).find((candidate) => candidate.name === name)
    if (control === undefined) {
      throw new StatusError('NO_SUCH_CONTROL', `no control ${name}: \`producer.controls\` lists what there is`)
    }
    const args = convertArguments(list, control.parameters, name)
    const missing = control.parameters.find((parameter) => !parameter.optional && !args.has(parameter.name))
    if (missing) throw new StatusError('INVALID_ARGUMENT', `${name} needs the argument ${missing.name}`)
    const prepared = await control.prepare(args, context)
    const { ids, journal } = this.#options
    const { channel, identity } = context
    // Deleted while the control was judged, and this connection with it: nobody reads the refusal.
    if (channel.deleted) throw new StatusError('NO_SUCH_CHANNEL', 'the channel is gone')
    const id = ids.take()
    channel.results.add(id)
    if (channel.row.durable) {
      const row = { id, channel: channel.id, user: identity.userId, control: name, transaction: 0 }
      channel.queue.touch()
      journal.change({ put: 'result', row })
    }
    return { id, run: () => void this.#run(id, name, prepared, context) }
  }

  async #run(
    id: number,
    name: string,
    prepared: () => ControlResult | Promise<ControlResult>,
    context: ControlContext,
  ) {
    let result: ControlResult
    try {
      result = await prepared()
    } catch (error) {
      result = this.#failure(error, name)
    }
    this.finish(id, name, context.identity.userId, context.channel, result)
  }

  /** What auth says (too many passwords are being set at once) is for the consumer; all else is ours. */
  #failure(error: unknown, control: string): ControlResult {
    if (error instanceof AuthError) return failed(error.message)
    this.#options.log.error({ err: error, control }, 'a control failed')
    return failed('the producer failed; its log says how')
  }

  /** Puts the result on its channel, unless it was stopped or the channel deleted meanwhile. */
  finish(id: number, control: string, user: number, channel: Channel, result: ControlResult): void {
    if (channel.deleted || !channel.results.has(id)) return
    const writer = new XdrWriter()
    writeTyped(writer, {
      type: BasicType.REC,
      value: [
        { name: 'outcome', type: BasicType.STRING, value: result.outcome },
        { name: 'detail', type: BasicType.STRING, value: result.detail },
        { name: 'value', ...result.value },
      ],
    })
    const { clock, journal } = this.#options
    const { queue } = channel
    const head = frameHead(id, {}, new Set())
    const hold = channel.row.durable ? queue.hold() : undefined
    const transaction = queue.appendResult(head, writer.bytes(), clock.microseconds())
    if (hold === undefined) return
    journal.change({ put: 'result', row: { id, channel: channel.id, user, control, transaction } })
    // Sent only when it is stored: after a crash the consumer would get `unknown` as a second result.
    void journal.whenStored().then(() => queue.letGo(hold))
  }

  /** A result that was to come when the process ended. */
  unknown(id: number, control: string, user: number, channel: Channel): void {
    channel.results.add(id)
    const detail = 'the producer ended before the result was stored; whether the control took effect is not known'
    this.finish(id, control, user, channel, { outcome: 'unknown', detail, value: VOID })
  }
}
