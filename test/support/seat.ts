/**
 * An authenticated consumer of a test: numbers its commands, and takes messages in the order in which the test asks for
 * them, whatever stands between. Nothing that came is lost: `rest` shows what was not asked for.
 */
import { args, command, str, type } from './bytes.ts'
import type { RawPeer, Received } from './raw-peer.ts'
import { decoded, type Json } from './records.ts'

export type Response = Extract<Received, { kind: 'response' }>
export type ValueMessage = Extract<Received, { kind: 'value' }>
export type GapMessage = Extract<Received, { kind: 'gap' }>

/** Host `h1` of the pushed test metrics: with it given, values are plain and stand without labels. */
export const atH1 = args(['host', type.string, str('h1')])

export class Seat {
  readonly peer: RawPeer
  /** The channel that AUTH gave. */
  readonly channel: number
  #seq = 0
  readonly #unread: Received[] = []

  constructor(peer: RawPeer, channel: number) {
    this.peer = peer
    this.channel = channel
  }

  /** Sends a command and waits for its response. */
  async ask(make: (seq: number) => Uint8Array): Promise<Response> {
    const seq = this.send(make)
    return this.response(seq)
  }

  /** The same; anything but OK is an error. Gives the result. */
  async ok(make: (seq: number) => Uint8Array): Promise<number> {
    const { status, result, detail } = await this.ask(make)
    if (status !== 0) throw new Error(`answered with status ${status}: ${detail}`)
    return result
  }

  /** Sends a command; gives its seq. */
  send(make: (seq: number) => Uint8Array): number {
    this.peer.send(make(++this.#seq))
    return this.#seq
  }

  response(seq: number): Promise<Response> {
    return this.#take((message): message is Response => message.kind === 'response' && message.seq === seq)
  }

  value(): Promise<ValueMessage> {
    return this.#take((message) => message.kind === 'value')
  }

  gap(): Promise<GapMessage> {
    return this.#take((message) => message.kind === 'gap')
  }

  notice(): Promise<Extract<Received, { kind: 'notice' }>> {
    return this.#take((message) => message.kind === 'notice')
  }

  async values(count: number): Promise<ValueMessage[]> {
    const values: ValueMessage[] = []
    const unread = this.#unread.splice(0)
    for (const message of unread) {
      if (message.kind === 'value' && values.length < count) values.push(message)
      else this.#unread.push(message)
    }
    while (values.length < count) values.push(await this.value())
    return values
  }

  /** Everything that is there and was not asked for. Settle first. */
  rest(): Received[] {
    this.#unread.push(...this.peer.pending())
    return this.#unread.splice(0)
  }

  async closed(): Promise<void> {
    for (;;) {
      const message = await this.peer.next()
      if (message.kind === 'closed') return
      this.#unread.push(message)
    }
  }

  async #take<T extends Received>(is: (message: Received) => message is T): Promise<T> {
    const index = this.#unread.findIndex(is)
    if (index >= 0) return this.#unread.splice(index, 1)[0] as T
    for (;;) {
      const message = await this.peer.next()
      if (message.kind === 'closed') throw new Error('the connection ended while something was awaited')
      if (is(message)) return message
      this.#unread.push(message)
    }
  }

  collect(metric: string, list?: Uint8Array): Promise<number> {
    return this.ok((seq) => command.collect(seq, metric, list))
  }

  /** COLLECTs a pushed test metric of host h1 and SUBSCRIBEs it. */
  async follow(metric: string, channel = 0): Promise<number> {
    const id = await this.collect(metric, atH1)
    await this.ok((seq) => command.subscribe(seq, id, channel))
    return id
  }

  /** A channel that survives whatever happens. */
  defChannel(...settings: readonly (readonly [string, number, Uint8Array])[]): Promise<number> {
    return this.ok((seq) => command.defChannel(seq, '', args(...settings)))
  }

  setChannel(channel: number): Promise<number> {
    return this.ok((seq) => command.setChannel(seq, channel))
  }

  /** COLLECTs a pushed test metric of host h1 and BUFFERs it. */
  async hoard(metric: string, channel = 0): Promise<number> {
    const id = await this.collect(metric, atH1)
    await this.ok((seq) => command.buffer(seq, id, channel))
    return id
  }

  /** QUERYs a metric; gives the answer. */
  async query(metric: string, list?: Uint8Array): Promise<ValueMessage> {
    const id = await this.ok((seq) => command.query(seq, metric, list))
    return this.#take((message): message is ValueMessage => message.kind === 'value' && message.metric === id)
  }

  /** The REC of one channel in `producer.channels`; undefined if it is not shown. */
  async ledger(channel: number | string = 0): Promise<Json> {
    const list = args(['channel', type.string, str(String(channel))])
    return decoded(await this.query('producer.channels', list))[0]
  }

  /** EXECUTEs a control that is answered OK; gives its result. */
  async execute(control: string, ...list: readonly (readonly [string, number, Uint8Array])[]): Promise<Json> {
    const id = await this.ok((seq) => command.execute(seq, control, args(...list)))
    return decoded(
      await this.#take((message): message is ValueMessage => message.kind === 'value' && message.metric === id),
    )
  }

  commit(transaction: number): Promise<Response> {
    return this.ask((seq) => command.commit(seq, transaction))
  }
}

/** The uint32 of a value that is one. */
export function numberOf(value: ValueMessage): number {
  if (value.type !== type.uint32) throw new Error(`a uint32 was expected, not type ${value.type}`)
  return value.value.readUInt32BE(0)
}
