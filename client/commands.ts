/** One method per command [MON 2]. Commands may be sent without waiting for each other. */
import type { CommandArguments, CommandName } from '../protocol/monitor/commands.ts'
import { CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import { type Arguments, toArguments } from './arguments.ts'

/** Sends one command; settles with the result. `onOk` is called while its response is read. */
export type Request = <N extends CommandName>(
  name: N,
  values: CommandArguments<N>,
  onOk?: (result: number) => void,
) => Promise<number>

/** The commands that are answered by a value. */
export type Asking = 'QUERY' | 'EXECUTE'

/** For those. */
export interface WaitOptions {
  /** So long the value may take; as long as the producer needs unless given. */
  readonly deadlineMs?: number | undefined
}

/** All reject with StatusError, which has the producer's own words, or with ConnectionError. */
export abstract class Commands {
  protected abstract request<N extends CommandName>(
    name: N,
    values: CommandArguments<N>,
    onOk?: (result: number) => void,
  ): Promise<number>

  protected abstract ask<N extends Asking>(
    name: N,
    values: CommandArguments<N>,
    options: WaitOptions,
  ): Promise<ValueMessage>

  /** Makes a metric instance; gives its id. Nothing is measured before it is bound. */
  collect(metric: string, args: Arguments = {}): Promise<number> {
    return this.request('COLLECT', { metric, args: toArguments(args) })
  }

  /** From now on the values of a metric come by themselves. `follow` does this and keeps it over lost connections. */
  async subscribe(metric: number, channel: number = CURRENT_CHANNEL): Promise<void> {
    await this.request('SUBSCRIBE', { metric, channel })
  }

  /** From now on the values of a metric wait on the channel for `get`. */
  async buffer(metric: number, channel: number = CURRENT_CHANNEL): Promise<void> {
    await this.request('BUFFER', { metric, channel })
  }

  /** Has what waits sent, and a continuous metric measured now. */
  async get(metric: number, channel: number = CURRENT_CHANNEL): Promise<void> {
    await this.request('GET', { metric, channel })
  }

  /** No more values of a metric on a channel; those queued there are dropped. */
  async stop(metric: number, channel: number = CURRENT_CHANNEL): Promise<void> {
    await this.request('STOP', { metric, channel })
  }

  /** Defines a channel that outlives every connection; gives its id. */
  defChannel(url = '', args: Arguments = {}): Promise<number> {
    return this.request('DEF_CHANNEL', { url, args: toArguments(args) })
  }

  /** Deleting the current channel ends the connection. */
  async delChannel(channel: number = CURRENT_CHANNEL): Promise<void> {
    await this.request('DEL_CHANNEL', { channel })
  }

  /** One value of a continuous metric; of type VOID where no measurement could be had. */
  query(metric: string, args: Arguments = {}, options: WaitOptions = {}): Promise<ValueMessage> {
    return this.ask('QUERY', { metric, args: toArguments(args) }, options)
  }

  /** Runs a control; gives the value with its result. Where the connection is lost meanwhile, it comes on the next one. */
  execute(control: string, args: Arguments = {}, options: WaitOptions = {}): Promise<ValueMessage> {
    return this.ask('EXECUTE', { control, args: toArguments(args) }, options)
  }

  /** Settles when the producer has answered: it is there. */
  async nop(): Promise<void> {
    await this.request('NOP', {})
  }
}
