/**
 * Producers without a network: transports that record what the client sends, and send what the test wants. A network hands
 * them out one after the other; when it has none left, connecting fails.
 */
import {
  ConnectionError,
  type ConnectOptions,
  type Consumer,
  connect,
  type Followed,
  type Handler,
  type Transport,
  type TransportListener,
} from '../../client/index.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { bindingsAnswer, caps, offers, response, type Sent, type TestBinding, textOf } from './wire.ts'

export class FakeProducer implements Transport {
  readonly encrypted: boolean = false
  readonly loopback: boolean = true
  readonly sent: Sent[] = []
  /** Settles when somebody listens. */
  readonly opened: Promise<void>
  /** Everything that was sent, in hex. */
  hex = ''
  /** How often something was sent. */
  sends = 0
  /** What names the history of its transaction ids. */
  generation: readonly string[] = []
  isPaused = false
  isClosed = false
  #listener: TransportListener | undefined
  #taken = 0
  #open = () => {}
  #waiting: (() => void) | undefined

  constructor(facts: Partial<Pick<Transport, 'encrypted' | 'loopback'>> = {}) {
    Object.assign(this, facts)
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  /** In one piece. */
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

  /** The next command, which has to be `text`, as `textOf` writes it. */
  async expect(text: string): Promise<Sent> {
    const sent = await this.next()
    if (textOf(sent) === text) return sent
    throw new Error(`the client sent "${textOf(sent)}" where "${text}" was expected`)
  }

  /** Answers the next command with OK, directly followed by `frames`. */
  async grant(text: string, result = 0, ...frames: readonly Uint8Array[]): Promise<void> {
    const { seq } = await this.expect(text)
    this.say(response(seq, 0, result), ...frames)
  }

  async refuse(text: string, status: number, detail = ''): Promise<void> {
    const { seq } = await this.expect(text)
    this.say(response(seq, status, 0, detail))
  }

  /** Admits the client with a password, on a channel made for it. */
  async admit(channel = 9): Promise<void> {
    await this.opened
    this.say(caps('password'))
    // After a login the producer repeats its capabilities [MON 6.4].
    await this.grant('AUTH password', channel, offers({ auth: ['password'], generation: this.generation }))
  }

  /** Has the client take up a channel that binds this; `frames` follow the response to SET_CHANNEL directly. */
  async takeUp(
    channel: number,
    bound: Readonly<Record<number, string | TestBinding>>,
    ...frames: readonly Uint8Array[]
  ): Promise<void> {
    await this.grant(`QUERY producer.bindings channel=${channel}`, 900, bindingsAnswer(900, channel, bound))
    await this.grant(`SET_CHANNEL ${channel}`, 0, ...frames)
  }

  /** The commands that were not taken yet. */
  async rest(): Promise<string[]> {
    await settle()
    const rest = this.sent.slice(this.#taken)
    this.#taken = this.sent.length
    return rest.map(textOf)
  }

  open(listener: TransportListener): void {
    this.#listener = listener
    this.#open()
  }

  send(bytes: Uint8Array): void {
    const all = Buffer.from(bytes)
    this.hex += all.toString('hex')
    this.sends++
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

/** The results of the next attempts to connect, in their order. */
export class FakeNetwork {
  readonly #next: (FakeProducer | Error)[] = []
  calls = 0

  add(...producers: readonly (FakeProducer | Error)[]): void {
    this.#next.push(...producers)
  }

  readonly dial = async (): Promise<Transport> => {
    this.calls++
    const next = this.#next.shift() ?? new ConnectionError('UNREACHABLE', 'nobody answers')
    if (next instanceof Error) throw next
    return next
  }
}

/** Lets every promise settle that can. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export const URL = 'tcp://127.0.0.1:7650'
export const tc = { identity: 'tc', password: 's3' }

export class Setting {
  readonly clock = new FakeClock()
  readonly network = new FakeNetwork()
  readonly producer = new FakeProducer()

  connect(options: ConnectOptions = {}): Promise<Consumer> {
    const { clock, network } = this
    const opening = connect(URL, tc, { clock, dial: network.dial, ...options })
    opening.catch(() => {})
    return opening
  }

  /** The connection is lost, and the next attempt finds another producer; logged in there on a channel made for it. */
  async reconnected(lost: FakeProducer, channel = 10): Promise<FakeProducer> {
    const producer = new FakeProducer()
    this.network.add(producer)
    lost.hangUp()
    await settle()
    this.clock.advance(10_000)
    await producer.admit(channel)
    return producer
  }
}

/** A consumer that connects, and is logged in on channel 9. */
export async function connecting(options: ConnectOptions = {}) {
  const setting = new Setting()
  const { clock, network, producer } = setting
  network.add(producer)
  const opening = setting.connect(options)
  await producer.admit()
  return { setting, clock, network, producer, opening }
}

/** The same, when it is connected. */
export async function loggedIn(options: ConnectOptions = {}) {
  const { opening, ...rest } = await connecting(options)
  return { ...rest, consumer: await opening }
}

/** Follows a metric, which gets this id. */
export async function following(
  { producer, consumer }: { readonly producer: FakeProducer; readonly consumer: Consumer },
  metric: string,
  id: number,
  handler?: Handler,
): Promise<Followed> {
  const followed = consumer.follow(metric, {}, handler)
  await producer.grant(`COLLECT ${metric}`, id)
  await producer.grant(`SUBSCRIBE ${id} on 0`)
  return followed
}
