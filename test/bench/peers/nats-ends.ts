/**
 * JetStream: a publisher that counts PubAcks, and a pull consumer that sends +ACK for each message. An ACK has no answer, so
 * the run ends when the server's own account of the consumer says that nothing is left.
 */
import { type End, type Job, type Outcome, VALUE_BYTES } from '../processes/end.ts'
import { Moment } from '../processes/raw-socket.ts'
import { jetStream, type Message, NatsConnection } from './nats-connection.ts'
import { Pipeline } from './pipeline.ts'

const STREAM = { name: 'S', subjects: ['v'], storage: 'file', retention: 'limits', discard: 'old', num_replicas: 1 }
const CONSUMER = { durable_name: 'C', ack_policy: 'explicit', deliver_policy: 'all', max_ack_pending: -1 }
const UNCONFIRMED = 8192
const PULL = 5000
const PULLS_AHEAD = 2
const ASK_AGAIN_MS = 2
const BRACE = 0x7b
/** `{"error":…`, where a PubAck begins with `{"stream":…`. */
const LETTER_E = 0x65

export async function openNatsPublisher(job: Job): Promise<End> {
  const bytes = Buffer.from(`PUB v p ${VALUE_BYTES}\r\n${'v'.repeat(VALUE_BYTES)}\r\n`)
  const frame = { bytes, valueAt: bytes.length - VALUE_BYTES - 2 }
  const pipeline = new Pipeline({ frame, values: job.values, mostUnconfirmed: UNCONFIRMED })
  let acks = 0
  const connection = new NatsConnection(job.port, {
    message({ bytes: answer, payloadAt, payloadEnd }) {
      if (answer[payloadAt] !== BRACE || answer[payloadAt + 2] === LETTER_E) {
        throw new Error(`nats: ${Buffer.from(answer.subarray(payloadAt, payloadEnd)).toString()}`)
      }
      acks++
    },
    chunkRead() {
      pipeline.confirm(acks)
      acks = 0
    },
  })
  const socket = await connection.open('p')
  return {
    async run() {
      await pipeline.run(socket)
      return { dropped: 0 }
    },
    close: () => socket.close(),
  }
}

export async function openNatsConsumer(job: Job): Promise<End> {
  await jetStream(job.port, 'STREAM.CREATE.S', STREAM)
  await jetStream(job.port, 'CONSUMER.DURABLE.CREATE.S.C', { stream_name: 'S', config: CONSUMER })
  const consumer = new Consumer(job)
  await consumer.open()
  return consumer
}

class Consumer implements End {
  static readonly #head = Buffer.from('PUB ')
  static readonly #tail = Buffer.from(' 4\r\n+ACK\r\n')
  readonly #job: Job
  readonly #connection: NatsConnection
  readonly #all = new Moment()
  #acks = new Uint8Array(1 << 21)
  #length = 0
  #received = 0

  constructor(job: Job) {
    this.#job = job
    this.#connection = new NatsConnection(job.port, {
      message: (message) => this.#acknowledge(message),
      chunkRead: () => this.#flush(),
    })
  }

  async open(): Promise<void> {
    await this.#connection.open('d')
    for (let i = 0; i < PULLS_AHEAD; i++) this.#pull()
  }

  async run(): Promise<Outcome> {
    const { socket } = this.#connection
    await socket.until(this.#all.reached)
    while (!(await this.#isAcknowledged())) await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS))
    return { dropped: 0 }
  }

  close(): void {
    this.#connection.socket.close()
  }

  async #isAcknowledged(): Promise<boolean> {
    const info = await jetStream(this.#job.port, 'CONSUMER.INFO.S.C', {})
    return info['num_ack_pending'] === 0 && info['num_pending'] === 0
  }

  #pull(): void {
    const request = JSON.stringify({ batch: PULL })
    this.#connection.send(`PUB $JS.API.CONSUMER.MSG.NEXT.S.C d ${request.length}\r\n${request}\r\n`)
  }

  #acknowledge({ bytes, replyAt, replyEnd }: Message): void {
    if (replyAt === replyEnd) return
    for (const part of [Consumer.#head, bytes.subarray(replyAt, replyEnd), Consumer.#tail]) {
      this.#acks.set(part, this.#length)
      this.#length += part.length
    }
    this.#received++
    if (this.#received % PULL === 0) this.#pull()
  }

  #flush(): void {
    if (this.#length === 0) return
    this.#connection.socket.write(this.#acks.slice(0, this.#length))
    this.#length = 0
    if (this.#received === this.#job.values) this.#all.reach()
  }
}
