/**
 * A consumer that COMMITs every value by itself and counts the OKs. By hand, so that it is never what is measured: one
 * pass over each chunk, no object per value, one write of COMMITs per chunk.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { until } from '../rig/patience.ts'
import { args, command, join, str, type } from '../support/bytes.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { decoded, type Json } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { CommitFrames } from './durable-commits.ts'
import { StoredMark } from './durable-stored.ts'
import type { Commits, End, Job, Outcome } from './processes/end.ts'
import { Moment, RawSocket } from './processes/raw-socket.ts'

export const ADMIN_PASSWORD = 'a password for benchmarks'
const PATTERN = 'smon.*'
const EVERY_VALUE: Commits = { through: false, shuffle: 0, writeAll: false }

const RESPONSE = 0xffffffff
const GAP = 0xfffffffc
const FIRST_MESSAGE = 0x80000000
/** Seqs of what is not a COMMIT; COMMITs count from 0. */
const AUTH_SEQ = 0xf0000000
const SET_CHANNEL_SEQ = 0xf0000001

export async function openCinnabarConsumer(job: Job): Promise<End> {
  const channel = await defineChannel(job)
  const consumer = new Consumer(job)
  await consumer.take(channel)
  return consumer
}

/** A durable channel with the pattern on it. Channel and binding outlive the connection that makes them. */
async function defineChannel({ port, below }: Job): Promise<number> {
  const seat = await seatAt(port)
  const channel = await seat.defChannel()
  const pattern = await seat.collect(PATTERN, below && args(['producer', type.string, str(below.producer)]))
  await seat.ok((seq) => command.subscribe(seq, pattern, channel))
  seat.peer.destroy()
  if (below !== undefined) await untilBound(below.port)
  return channel
}

/** An admin's connection. */
export async function seatAt(port: number): Promise<Seat> {
  const socket = connect({ host: '127.0.0.1', port })
  await once(socket, 'connect')
  const peer = new RawPeer(socket)
  await peer.until('caps')
  const seat = new Seat(peer, 0)
  await seat.ok((seq) => command.auth(seq, 'password', credentials()))
  return seat
}

/** The server below knows what is wanted above: what comes before that is nobody's. */
async function untilBound(port: number): Promise<void> {
  const seat = await seatAt(port)
  await until('the server below knows what is wanted above', async () => {
    const channels = decoded(await seat.query('producer.channels')) as Json[]
    return channels.some(({ name, bound }) => String(name).startsWith('upstream:') && bound === 1)
  })
  seat.peer.destroy()
}

function credentials(): Uint8Array {
  return join(str('admin'), str(ADMIN_PASSWORD))
}

interface Handed {
  readonly transaction: number
  /** Microseconds since 1970. */
  readonly time: number
  readonly value: number
}

function timeAt(view: DataView, at: number): number {
  return view.getUint32(at + 16) * 0x100000000 + view.getUint32(at + 20)
}

class Consumer implements End {
  readonly #socket: RawSocket
  readonly #values: number
  readonly #isHanded: boolean
  readonly #commits: CommitFrames
  readonly #stored: StoredMark | undefined
  readonly #seated = new Moment()
  readonly #done = new Moment()
  #received = 0
  #valueBytes = 0
  #dropped = 0
  #oks = 0
  #lastId = 0

  constructor(job: Job) {
    const commits = job.commits ?? EVERY_VALUE
    this.#values = job.values
    this.#isHanded = commits.handed === true
    this.#socket = new RawSocket(job.port, (bytes, view, end) => this.#read(bytes, view, end))
    this.#commits = new CommitFrames(commits, (bytes) => this.#socket.write(bytes))
    if (commits.writeAll) {
      this.#stored = new StoredMark({
        ask: (query) => this.#socket.write(query),
        reached: (id) => {
          this.#commits.upTo(id)
          this.#commits.flush()
        },
      })
    }
  }

  /** Logs in and takes the channel. */
  async take(channel: number): Promise<void> {
    await this.#socket.connected()
    this.#socket.write(
      join(command.auth(AUTH_SEQ, 'password', credentials()), command.setChannel(SET_CHANNEL_SEQ, channel)),
    )
    await this.#socket.until(this.#seated.reached)
    this.#stored?.poll()
  }

  async run(): Promise<Outcome> {
    await this.#socket.until(this.#done.reached)
    return { dropped: this.#dropped, valueBytes: this.#valueBytes }
  }

  close(): void {
    this.#stored?.stop()
    this.#socket.close()
  }

  #read(bytes: Uint8Array, view: DataView, end: number): number {
    let at = 0
    while (end - at >= 4) {
      const next = at + 4 + view.getUint32(at)
      if (next > end) break
      const message = view.getUint32(at + 4)
      if (message < FIRST_MESSAGE) this.#value(bytes, view, at, next)
      else if (message === RESPONSE) this.#response(view, at)
      else if (message === GAP) this.#gap(view, at)
      at = next
    }
    this.#answer()
    return at
  }

  /** The end of a chunk: COMMITs go out, and it may have been the last one. */
  #answer(): void {
    const missing = this.#values - this.#received - this.#dropped
    if (missing < 0) throw new Error(`${-missing} values more than were sent`)
    if (missing > 0) {
      this.#commits.flush()
      return
    }
    this.#commits.finish()
    if (this.#commits.waiting || this.#oks < this.#commits.sent) return
    this.#stored?.stop()
    this.#done.reach()
  }

  #value(bytes: Uint8Array, view: DataView, at: number, next: number): void {
    const high = view.getUint32(at + 8)
    const low = view.getUint32(at + 12)
    if (high === 0 && low === 0) {
      // The one thing without an id that this connection asks for.
      this.#stored?.answered(bytes.subarray(at + 24, next))
      return
    }
    this.#received++
    this.#valueBytes += next - at
    if (this.#isHanded)
      this.#hand({ transaction: high * 0x100000000 + low, time: timeAt(view, at), value: view.getUint32(next - 4) })
    this.#commit(high, low)
  }

  /** The handler. */
  #hand({ transaction, time, value }: Handed): void {
    if (transaction <= this.#lastId || time === 0) throw new Error(`value ${value} came out of order`)
  }

  /** A GAP is committed as a value is. */
  #gap(view: DataView, at: number): void {
    this.#dropped += view.getUint32(at + 20) * 0x100000000 + view.getUint32(at + 24)
    this.#commit(view.getUint32(at + 8), view.getUint32(at + 12))
  }

  #commit(high: number, low: number): void {
    const id = high * 0x100000000 + low
    if (id <= this.#lastId) throw new Error(`id ${id} came after ${this.#lastId}: ids have to ascend`)
    this.#lastId = id
    this.#commits.add(id, high, low)
  }

  #response(view: DataView, at: number): void {
    const seq = view.getUint32(at + 8)
    const status = view.getUint32(at + 12)
    if (status !== 0) throw new Error(`command ${seq.toString(16)} was answered with status ${status}`)
    if (seq < FIRST_MESSAGE) this.#oks++
    else if (seq === SET_CHANNEL_SEQ) this.#seated.reach()
  }
}
