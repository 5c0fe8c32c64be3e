/** A producer without a network: a transport that notes what the client sends and says what the test tells it to. */
import { Consumer, type ConsumerOptions, type Transport, type TransportListener } from '../../client/index.ts'
import { caps, response, type Sent } from './wire.ts'

export class FakeProducer implements Transport {
  readonly encrypted: boolean = false
  readonly loopback: boolean = true
  readonly sent: Sent[] = []
  /** Everything that was sent, in hex. */
  hex = ''
  isPaused = false
  isClosed = false
  #listener: TransportListener | undefined
  #taken = 0
  #waiting: (() => void) | undefined

  constructor(facts: Partial<Pick<Transport, 'encrypted' | 'loopback'>> = {}) {
    Object.assign(this, facts)
  }

  say(...frames: readonly Uint8Array[]): void {
    this.#listener?.data(Buffer.concat(frames))
  }

  hangUp(cause?: Error): void {
    this.#listener?.closed(cause)
  }

  /** The next command that was not yet taken. */
  async next(): Promise<Sent> {
    while (this.#taken === this.sent.length) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
      })
    }
    return this.sent[this.#taken++]!
  }

  open(listener: TransportListener): void {
    this.#listener = listener
  }

  send(bytes: Uint8Array): void {
    const all = Buffer.from(bytes)
    this.hex += all.toString('hex')
    for (let at = 0; at < all.length; at += 4 + all.readUInt32BE(at)) {
      const payload = all.subarray(at + 4, at + 4 + all.readUInt32BE(at))
      this.sent.push({ command: payload.readUInt32BE(0), seq: payload.readUInt32BE(4), rest: payload.subarray(8) })
    }
    this.#waiting?.()
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  close(): void {
    this.isClosed = true
  }
}

/** A consumer that is logged in on channel 9, by one AUTH of the password method. */
export async function loggedIn(options: ConsumerOptions = {}): Promise<{ producer: FakeProducer; consumer: Consumer }> {
  const producer = new FakeProducer()
  const credentials = { identity: 'tc', password: 's3' }
  const opening = Consumer.open(producer, credentials, { name: 'tcp://127.0.0.1:7650', ...options })
  producer.say(caps('password'))
  const { seq } = await producer.next()
  producer.say(response(seq, 0, 9))
  return { producer, consumer: await opening }
}
