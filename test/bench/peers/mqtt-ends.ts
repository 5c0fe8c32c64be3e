/**
 * MQTT 3.1.1 by hand. All packets here have a remaining length below 128, which is one byte.
 *
 *   PUBLISH  0x32 | length | uint16 1 'v' | uint16 packet id | value          PUBACK  0x40 | 2 | uint16 packet id
 */
import { type End, type Job, type Outcome, VALUE_BYTES } from '../processes/end.ts'
import { Moment, RawSocket } from '../processes/raw-socket.ts'
import { Pipeline } from './pipeline.ts'

const CONNACK = 2
const PUBLISH = 3
const PUBACK = 4
const SUBACK = 9
const PINGRESP = 13
const CLEAN_SESSION = 0x02
const TOPIC = [0x00, 0x01, 0x76]
/** Behind the packet's two bytes of header. */
const ID_AT = 2 + TOPIC.length
const PUBACK_BYTES = 4
/** Packet ids are 1 to 65,535 and must be free again when they come round. */
const UNCONFIRMED = 16_384
const IDS = 0xffff
/** The broker uses no id anew before it is acknowledged. */
const MAX_ACK_BYTES = IDS * PUBACK_BYTES

type Packet = (type: number, bytes: Uint8Array, at: number) => void

class Mqtt {
  readonly socket: RawSocket
  readonly #connected = new Moment()

  constructor(port: number, packet: Packet, chunkRead: () => void) {
    this.socket = new RawSocket(port, (bytes, _view, end) => {
      let at = 0
      while (end - at >= 2) {
        const next = at + 2 + (bytes[at + 1] as number)
        if (next > end) break
        const type = (bytes[at] as number) >> 4
        if (type === CONNACK) this.#accepted(bytes[at + 3] as number)
        else packet(type, bytes, at)
        at = next
      }
      chunkRead()
      return at
    })
  }

  async open(client: string, flags: number): Promise<RawSocket> {
    await this.socket.connected()
    const id = Buffer.from(client)
    const rest = Buffer.concat([
      Buffer.from([0, 4]),
      Buffer.from('MQTT'),
      Buffer.from([4, flags, 0, 0, 0, id.length]),
      id,
    ])
    this.socket.write(Buffer.concat([Buffer.from([0x10, rest.length]), rest]))
    await this.socket.until(this.#connected.reached)
    return this.socket
  }

  #accepted(code: number): void {
    if (code !== 0) throw new Error(`CONNACK says ${code}`)
    this.#connected.reach()
  }
}

export async function openMqttPublisher(job: Job): Promise<End> {
  const bytes = new Uint8Array(ID_AT + 2 + VALUE_BYTES)
  bytes.set([0x32, bytes.length - 2, ...TOPIC])
  const number = (batch: Uint8Array, at: number, count: number): void => {
    const id = 1 + (count % IDS)
    batch[at + ID_AT] = id >> 8
    batch[at + ID_AT + 1] = id & 0xff
  }
  const frame = { bytes, valueAt: ID_AT + 2, number }
  const pipeline = new Pipeline({ frame, values: job.values, mostUnconfirmed: UNCONFIRMED })
  let acks = 0
  const mqtt = new Mqtt(
    job.port,
    (type) => {
      if (type === PUBACK) acks++
    },
    () => {
      pipeline.confirm(acks)
      acks = 0
    },
  )
  const socket = await mqtt.open('publisher', CLEAN_SESSION)
  return {
    async run() {
      await pipeline.run(socket)
      return { dropped: 0 }
    },
    close: () => socket.close(),
  }
}

export async function openMqttConsumer(job: Job): Promise<End> {
  const consumer = new Consumer(job)
  await consumer.open()
  return consumer
}

class Consumer implements End {
  readonly #mqtt: Mqtt
  readonly #values: number
  readonly #subscribed = new Moment()
  readonly #done = new Moment()
  readonly #acks = new Uint8Array(MAX_ACK_BYTES)
  #length = 0
  #flushing = false
  #received = 0

  constructor(job: Job) {
    this.#values = job.values
    this.#mqtt = new Mqtt(
      job.port,
      (type, bytes, at) => this.#packet(type, bytes, at),
      () => this.#flushSoon(),
    )
  }

  async open(): Promise<void> {
    const socket = await this.#mqtt.open('consumer', 0)
    const rest = [0x00, 0x01, ...TOPIC, 0x01]
    socket.write(Uint8Array.from([0x82, rest.length, ...rest]))
    await socket.until(this.#subscribed.reached)
  }

  async run(): Promise<Outcome> {
    await this.#mqtt.socket.until(this.#done.reached)
    return { dropped: 0 }
  }

  close(): void {
    this.#mqtt.socket.close()
  }

  #packet(type: number, bytes: Uint8Array, at: number): void {
    if (type === SUBACK) this.#subscribed.reach()
    else if (type === PINGRESP) this.#done.reach()
    else if (type === PUBLISH) this.#acknowledge(bytes[at + ID_AT] as number, bytes[at + ID_AT + 1] as number)
  }

  #acknowledge(high: number, low: number): void {
    this.#received++
    const acks = this.#acks
    acks[this.#length] = PUBACK << 4
    acks[this.#length + 1] = 2
    acks[this.#length + 2] = high
    acks[this.#length + 3] = low
    this.#length += PUBACK_BYTES
  }

  /** The broker sends in small pieces: the PUBACKs of one turn of the loop leave together. */
  #flushSoon(): void {
    if (this.#flushing || this.#length === 0) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  /** A PINGREQ after the last PUBACK: its answer says that the broker has read them all. */
  #flush(): void {
    this.#mqtt.socket.write(this.#acks.slice(0, this.#length))
    this.#length = 0
    if (this.#received === this.#values) this.#mqtt.socket.write(Uint8Array.from([0xc0, 0]))
  }
}
