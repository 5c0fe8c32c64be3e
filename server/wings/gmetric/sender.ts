/**
 * The connection of a gmetric:// channel. It has no session, so nobody commits: a value is committed when its datagrams are
 * sent. Only a few are sent at a time, because a kernel that gets 65,536 of them drops most. Values that gmetric cannot
 * express, or that could not be sent, are committed and counted: UDP guarantees nothing.
 */
import { createSocket, type Socket } from 'node:dgram'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { readMessage, type ValueMessage } from '../../../protocol/monitor/message.ts'
import { familyOf } from '../../kit/io/address.ts'
import type { ChannelConnection, DeliveredChannel } from '../../kit/push.ts'
import type { GmetricPackets } from './send-packets.ts'

/** The number of values sent in one turn of the event loop. */
const AT_ONCE = 64
const MAX_ANSWERS_BYTES = 1 << 20

/** The destination of datagrams. */
export interface Datagrams {
  /** `done` is called once, with the error of the system if there is one. */
  send(packet: Uint8Array, done: (error: Error | null) => void): void
  close(): void
}

/** Frames of values that are being sent, from the offset `at` on. */
interface Batch {
  readonly bytes: Uint8Array
  readonly isAnswer: boolean
  readonly written: () => void
  at: number
}

export interface SenderOptions {
  readonly channel: DeliveredChannel
  readonly datagrams: Datagrams
  readonly packets: GmetricPackets
  /** Called when the channel must be left. */
  readonly ended: (sender: GmetricSender, counts: SentCounts) => void
}

export interface SentCounts {
  readonly values: number
  /** Values that gmetric cannot express. */
  readonly unsupported: number
  /** Datagrams that the system refused. */
  readonly errors: number
}

export class GmetricSender implements ChannelConnection {
  readonly #options: SenderOptions
  readonly #batches: Batch[] = []
  readonly #reader = new XdrReader()
  readonly #counts = { values: 0, unsupported: 0, errors: 0 }
  #answersBytes = 0
  #isSending = false
  #isOver = false
  undrained = 0

  constructor(options: SenderOptions) {
    this.#options = options
  }

  get counts(): SentCounts {
    return this.#counts
  }

  get behind(): boolean {
    return this.#answersBytes > MAX_ANSWERS_BYTES
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.undrained += bytes.length
    const out = (): void => {
      this.undrained -= bytes.length
      written()
    }
    this.#take({ bytes, isAnswer: false, written: out, at: 0 })
  }

  writeAnswers(bytes: Uint8Array): void {
    this.#answersBytes += bytes.length
    const out = (): void => {
      this.#answersBytes -= bytes.length
    }
    this.#take({ bytes, isAnswer: true, written: out, at: 0 })
  }

  /** Notices cannot be expressed in gmetric. */
  notice(): void {}

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const { written } of this.#batches.splice(0)) written()
    this.#options.datagrams.close()
    this.#options.ended(this, this.#counts)
  }

  #take(batch: Batch): void {
    if (this.#isOver) {
      batch.written()
      return
    }
    this.#batches.push(batch)
    if (!this.#isSending) this.#send()
  }

  /** Sends the next few values; the rest follow when these are sent. */
  #send(): void {
    const batch = this.#batches[0]
    this.#isSending = batch !== undefined && !this.#isOver
    if (batch === undefined || this.#isOver) return
    const packets: Uint8Array[] = []
    let last = 0
    for (let values = 0; values < AT_ONCE && batch.at < batch.bytes.length; values++) {
      last = Math.max(last, this.#next(batch, packets))
    }
    let left = packets.length
    // Everything else gets a turn before the next values.
    const out = (): void => {
      setImmediate(() => {
        if (!this.#isOver) this.#done(batch, last)
        this.#send()
      })
    }
    if (left === 0) out()
    for (const packet of packets) {
      this.#options.datagrams.send(packet, (error) => {
        if (error) this.#counts.errors++
        if (--left === 0) out()
      })
    }
  }

  #done(batch: Batch, transaction: number): void {
    const { queue, outbox } = this.#options.channel
    if (transaction !== 0) queue.commit(transaction, true)
    if (batch.at < batch.bytes.length) return
    this.#batches.shift()
    batch.written()
    outbox.drained()
  }

  /** Appends the datagrams of the next frame to `packets`, and returns the transaction to commit. */
  #next(batch: Batch, packets: Uint8Array[]): number {
    const { bytes } = batch
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const start = batch.at + 4
    batch.at = start + view.getUint32(batch.at)
    const message = readMessage(this.#reader.reset(bytes, start, batch.at, view))
    if (message.kind === 'gap') return message.transaction
    if (message.kind !== 'value') return 0
    const made = this.#packetsOf(message)
    this.#counts.values++
    if (made.length === 0) this.#counts.unsupported++
    packets.push(...made)
    return message.transaction
  }

  #packetsOf({ metric, value }: ValueMessage): Uint8Array[] {
    // Without a binding it is a result or an answer, or the binding was stopped meanwhile.
    const binding = this.#options.channel.bindings.get(metric)
    return binding === undefined ? [] : this.#options.packets.of(binding.instance, value)
  }
}

/** Datagrams to one address. Rejects if the system has no route to it. */
export function openDatagrams(address: string, port: number): Promise<Datagrams> {
  const socket: Socket = createSocket(familyOf(address) === 'ipv4' ? 'udp4' : 'udp6')
  return new Promise((resolve, reject) => {
    socket.once('error', (error) => {
      socket.close()
      reject(error)
    })
    socket.connect(port, address, () => {
      socket.removeAllListeners('error')
      // The destination reported that nobody listens; the next send fails with that error too.
      socket.on('error', () => {})
      resolve({ send: (packet, done) => socket.send(packet, done), close: () => socket.close() })
    })
  })
}
