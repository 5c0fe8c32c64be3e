/**
 * Numbers that go to doors which answer nothing: gmetric, StatsD and smon. A number counts as acknowledged when the server has shown it
 * and has then said of the channel of the history that everything which it had accepted by then is on the disk, and that nothing was
 * dropped meanwhile, as it is where the disk is full.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { gmetricPacket } from '../../support/bytes.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

const LOOK_MS = 5
/** A datagram may be lost on its way; StatsD sums up for a second. */
const PATIENCE_MS = 3_000
/** A token of smon, by its type and name, and what stands before it. */
const TOKEN = Buffer.from('ushown')
const DEFINING = Buffer.from([0xf0, 0, TOKEN.length])

/** Where the server listens. */
export interface DoorPorts {
  readonly gmetric: number
  readonly statsd: number
  readonly smon: number
}

/** What was sent to one of them, and when; the numbers are 1, 2, 3 and so on. */
export class Door {
  /** Its metric, here and in Prometheus' terms. */
  readonly metric: string
  readonly shown: string
  /** When each number was sent, and those that were acknowledged, with the time by which the server had them. */
  readonly sentMs = new Map<number, number>()
  readonly acknowledgedMs = new Map<number, number>()
  readonly #send: (number: number) => Promise<unknown>
  #next = 1
  #lastMs = 0

  constructor(metric: string, send: (number: number) => Promise<unknown>) {
    this.metric = metric
    this.shown = metric.replace('.', '_')
    this.#send = send
  }

  /** Sends numbers until the server is gone, or `isOver`. */
  async run(server: ShownServer, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      // Two samples of one series have two times.
      while (Date.now() <= this.#lastMs) await setTimeout(1)
      const dropped = droppedOf(await server.ledger())
      const number = this.#next++
      this.sentMs.set(number, Date.now())
      await this.#send(number)
      const deadline = Date.now() + PATIENCE_MS
      while (!isOver() && !(await server.shows(this.metric, number)) && Date.now() < deadline) await setTimeout(LOOK_MS)
      this.#lastMs = Date.now()
      if (isOver() || Date.now() >= deadline) continue
      const { accepted } = await server.ledger()
      while (!isOver()) {
        const ledger = await server.ledger()
        if (droppedOf(ledger) !== dropped) break
        if (ledger.accepted - ledger.unstored >= accepted) {
          this.acknowledgedMs.set(number, this.#lastMs)
          break
        }
        await setTimeout(LOOK_MS)
      }
    }
  }
}

/** The values that a channel has dropped, of a ledger. */
function droppedOf({ dropped }: Json): number {
  return Object.values(dropped as Record<string, number>).reduce((sum, count) => sum + Number(count), 0)
}

/** What a server says, one question after the other. */
export class ShownServer {
  readonly #seat: Seat
  #turn: Promise<unknown> = Promise.resolve()

  constructor(seat: Seat) {
    this.#seat = seat
  }

  /** Whether this number is what it shows now of a metric with one series. */
  async shows(metric: string, number: number): Promise<boolean> {
    const known: Json = await this.#inTurn(async () => decoded(await this.#seat.query(metric)))
    return Array.isArray(known) && known.some(({ value }) => Number(value) === number)
  }

  /** That of the channel of the history. */
  ledger(): Promise<Json> {
    return this.#inTurn(() => this.#seat.ledger('history:'))
  }

  close(): void {
    this.#seat.peer.destroy()
  }

  #inTurn<T>(ask: () => Promise<T>): Promise<T> {
    const answer = this.#turn.then(ask)
    this.#turn = answer.catch(() => {})
    return answer
  }
}

export class Doors {
  readonly all: readonly Door[]
  readonly #udp = createSocket('udp4')
  readonly #smonPort: number
  #smon: Socket | undefined
  #isDefined = false

  constructor({ gmetric, statsd, smon }: DoorPorts) {
    this.#smonPort = smon
    const datagram = (bytes: Uint8Array | string, port: number): Promise<unknown> =>
      new Promise((resolve) => this.#udp.send(bytes, port, '127.0.0.1', resolve))
    this.all = [
      new Door('gmetric.shown', (number) => datagram(gmetricPacket('uint32', 'shown', String(number)), gmetric)),
      new Door('statsd.shown', (number) => datagram(`shown:${number}|g`, statsd)),
      new Door('smon.shown', (number) => this.#pair(number)),
    ]
  }

  /** The server has been started again. */
  async connect(): Promise<void> {
    this.#smon?.destroy()
    const socket = connect({ host: '127.0.0.1', port: this.#smonPort, noDelay: true })
    socket.on('error', () => {})
    this.#smon = socket
    this.#isDefined = false
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  }

  close(): void {
    this.#udp.close()
    this.#smon?.destroy()
  }

  /** Token 1 and its value, both absolute; the first one defines the token. */
  async #pair(number: number): Promise<void> {
    const value = Buffer.alloc(8)
    value.writeBigUInt64BE(BigInt(number))
    const definition = this.#isDefined ? Buffer.alloc(0) : Buffer.concat([DEFINING, TOKEN])
    this.#isDefined = true
    this.#smon?.write(Buffer.concat([definition, Buffer.from([0xf0, 1, 0xf7]), value]))
  }
}
