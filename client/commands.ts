/** The commands of a consumer as methods [MON 2], and the values that answer some of them. */
import { onAbort } from '../protocol/kept/pause.ts'
import type { CommandArguments, CommandName } from '../protocol/monitor/commands.ts'
import { CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import { StatusCode } from '../protocol/monitor/status.ts'
import type { ClientClock } from './clock.ts'
import { ConnectionError, StatusError } from './errors.ts'
import type { ExpressionOptions, ExpressionResult } from './expression.ts'
import type { HistoryReadOptions, SeriesHistory } from './history.ts'
import { type Arguments, type PlainRecord, recordsOf, Sample, type SampleOrigin, toArgumentList } from './values.ts'

/**
 * Sends one command and settles with the result. `onOk` is called while the response is read. Once `signal` is aborted it rejects
 * with the reason; what was sent by then may take effect.
 */
export type SendCommand = <N extends CommandName>(
  name: N,
  values: CommandArguments<N>,
  onOk?: (result: number) => void,
  signal?: AbortSignal,
) => Promise<number>

/** The commands that are answered by a value. */
export type AskingCommand = 'QUERY' | 'EXECUTE'

/** Options of all commands. */
export interface CommandOptions {
  /** Gives up waiting: the command rejects with the reason. If it was sent by then, its effect is unknown. */
  readonly signal?: AbortSignal | undefined
}

/** Options of the commands that are answered by a value. */
export interface WaitOptions extends CommandOptions {
  /** How long the value may take; without limit if it is not given. */
  readonly deadlineMs?: number | undefined
  /** Called when the producer has taken the command, with the id of the value that is to come. */
  readonly onTaken?: ((id: number) => void) | undefined
}

/**
 * Commands may be sent without waiting for each other. All reject with StatusError, which has the producer's own words, or
 * with ConnectionError.
 */
export abstract class CommandMethods {
  protected abstract readonly request: SendCommand
  protected abstract ask<N extends AskingCommand>(
    name: N,
    values: CommandArguments<N>,
    options: WaitOptions,
  ): Promise<AnsweringValue>

  /** Makes a metric instance and returns its id. Nothing is measured before it is bound. */
  collect(metric: string, args: Arguments = {}, { signal }: CommandOptions = {}): Promise<number> {
    return this.request('COLLECT', { metric, args: toArgumentList(args) }, undefined, signal)
  }

  /** Has the values of a metric sent as they come. `follow` does this, and renews it after a lost connection. */
  async subscribe(metric: number, channel: number = CURRENT_CHANNEL, { signal }: CommandOptions = {}): Promise<void> {
    await this.request('SUBSCRIBE', { metric, channel }, undefined, signal)
  }

  /** Has the values of a metric wait on the channel for `get`. */
  async buffer(metric: number, channel: number = CURRENT_CHANNEL, { signal }: CommandOptions = {}): Promise<void> {
    await this.request('BUFFER', { metric, channel }, undefined, signal)
  }

  /** Has the waiting values sent, and a continuous metric measured now. */
  async get(metric: number, channel: number = CURRENT_CHANNEL, { signal }: CommandOptions = {}): Promise<void> {
    await this.request('GET', { metric, channel }, undefined, signal)
  }

  /** Ends the values of a metric on a channel. Those queued there are dropped. */
  async stop(metric: number, channel: number = CURRENT_CHANNEL, { signal }: CommandOptions = {}): Promise<void> {
    await this.request('STOP', { metric, channel }, undefined, signal)
  }

  /** Defines a channel that outlives every connection, or finds the one of the argument `name`. Returns its id. */
  defChannel(url = '', args: Arguments = {}, { signal }: CommandOptions = {}): Promise<number> {
    return this.request('DEF_CHANNEL', { url, args: toArgumentList(args) }, undefined, signal)
  }

  /** Deletes a channel. To delete the current channel ends the connection. */
  async delChannel(channel: number = CURRENT_CHANNEL, { signal }: CommandOptions = {}): Promise<void> {
    await this.request('DEL_CHANNEL', { channel }, undefined, signal)
  }

  /** Returns one value of a continuous metric, of type VOID if it could not be measured. */
  async query(metric: string, args: Arguments = {}, options: WaitOptions = {}): Promise<Sample> {
    return new Sample(metric, await this.ask('QUERY', { metric, args: toArgumentList(args) }, options))
  }

  /**
   * What the producer remembers of a metric or a pattern: series with their samples, each series once. It shows the state at the
   * beginning. Throws StatusError and ConnectionError; begin again then.
   */
  async *history(metric: string, options: HistoryReadOptions = {}): AsyncGenerator<SeriesHistory, void, void> {
    const { readHistory } = await import('./history.ts')
    const pageOf = async (args: Arguments) => {
      const records = recordsOf((await this.query('producer.history.select', args, options)).value)
      if (records) return records
      throw new StatusError('QUERY', StatusCode.UNSUPPORTED, 'the producer remembers nothing, or cannot read it now')
    }
    yield* readHistory(pageOf, metric, options)
  }

  /**
   * What an expression of Prometheus' language comes to over what the producer remembers: at a time, or from `since` on at each `step`.
   * Throws ExpressionError, StatusError and ConnectionError.
   */
  async evaluate(expr: string, options: ExpressionOptions = {}): Promise<ExpressionResult> {
    const { readExpression } = await import('./expression.ts')
    const pageOf = async (args: Arguments) => {
      const { plain } = await this.query('producer.history.query', args, options)
      if (Array.isArray(plain)) return plain as readonly PlainRecord[]
      throw new StatusError('QUERY', StatusCode.UNSUPPORTED, 'the producer remembers nothing, or cannot read it now')
    }
    return readExpression(pageOf, expr, options)
  }

  /** Runs a control and returns the value with its result, which may come on the next connection if this one is lost. */
  async execute(control: string, args: Arguments = {}, options: WaitOptions = {}): Promise<Sample> {
    const result = await this.ask('EXECUTE', { control, args: toArgumentList(args) }, options)
    return new Sample(control, result, result.origin)
  }

  /** Settles when the producer has answered, which proves that it is there. */
  async nop({ signal }: CommandOptions = {}): Promise<void> {
    await this.request('NOP', {}, undefined, signal)
  }
}

/** The value that a command has waited for. */
export interface AnsweringValue extends ValueMessage {
  /** The channel that it came on, which may have been left since; undefined for a value that the producer does not keep. */
  readonly origin: SampleOrigin | undefined
}

interface AwaitedValue {
  readonly resolve: (value: AnsweringValue) => void
  readonly reject: (error: Error) => void
  /** Whether the value is kept on the channel, so that it outlives the connection. */
  readonly isKept: boolean
  /** Whether the command was given up: the value comes all the same, and belongs to nobody. */
  readonly isGivenUp?: boolean
}

const NOTHING = () => {}

/** The values that commands wait for: the answer to a QUERY, which is lost with the connection, and the result of EXECUTE. */
export class AwaitedValues {
  readonly #clock: ClientClock
  readonly #byId = new Map<number, AwaitedValue>()

  constructor(clock: ClientClock) {
    this.#clock = clock
  }

  /** Sends a command and waits for the value whose id is the result of the command. */
  ask<N extends AskingCommand>(
    send: SendCommand,
    name: N,
    values: CommandArguments<N>,
    { isKept, deadlineMs, signal, onTaken }: WaitOptions & { readonly isKept: boolean },
  ): Promise<AnsweringValue> {
    return new Promise((resolve, reject) => {
      const expect = (id: number) => {
        const giveUp = (reason: unknown) => {
          release()
          this.#byId.set(id, { resolve: NOTHING, reject: NOTHING, isKept, isGivenUp: true })
          reject(reason)
        }
        const late = `${name}: the value did not arrive within ${deadlineMs} ms`
        const expire = () => giveUp(new ConnectionError('TIMEOUT', late))
        const timer = deadlineMs === undefined ? undefined : this.#clock.setTimeout(expire, deadlineMs)
        const abort = () => giveUp(signal?.reason)
        const ignore = onAbort(signal, abort)
        const release = () => {
          timer?.cancel()
          ignore()
        }
        const after = <T>(settle: (result: T) => void) => {
          return (result: T) => {
            release()
            settle(result)
          }
        }
        this.#byId.set(id, { resolve: after(resolve), reject: after(reject), isKept })
        if (signal?.aborted) abort()
        else onTaken?.(id)
      }
      send(name, values, expect, signal).catch(reject)
    })
  }

  /** Hands the value to the command that asked for it, if it still waits; undefined if the value is no command's. */
  take(message: ValueMessage, origin?: () => SampleOrigin): 'handed' | 'unwanted' | undefined {
    const awaited = this.#byId.size > 0 ? this.#byId.get(message.metric) : undefined
    if (!awaited) return undefined
    this.#byId.delete(message.metric)
    // Before a connection has the channel, answers that are not kept come already.
    awaited.resolve({ ...message, origin: message.transaction === 0 ? undefined : origin?.() })
    return awaited.isGivenUp ? 'unwanted' : 'handed'
  }

  /** Rejects everything except, with `exceptKept`, the values that are kept on the channel. */
  reject(error: Error, exceptKept: boolean): void {
    for (const [id, { reject, isKept }] of this.#byId) {
      if (exceptKept && isKept) continue
      this.#byId.delete(id)
      reject(error)
    }
  }
}
