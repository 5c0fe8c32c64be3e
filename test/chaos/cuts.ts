/**
 * One conversation with every kind of command, hurt at a byte: what was answered is done, what was not is done or not but
 * never half, and whoever comes back with SET_CHANNEL gets everything it has not committed, under the same ids. The server
 * is whole and in this process, with TCP and our proxy between it and the consumer; its clock stands still.
 */
import { ScramClient } from '../../auth/scram/client.ts'
import { located, type RigOptions, type Totals } from '../rig/rig.ts'
import { args, command, type, u32 } from '../support/bytes.ts'
import { TestProducer } from '../support/producer.ts'
import { Random } from '../support/random.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { balance, decoded, type Json } from '../support/records.ts'
import { atH1, Seat } from '../support/seat.ts'
import { type Counts, type Facts, judge } from './cut-judge.ts'
import { type Direction, type Fault, type Handling, type Passage, TcpProxy } from './proxy.ts'

const USER = 'cut'
const PASSWORD = 'a password that is cut'
/** Looks at the ledger before something is given up as lost: far more than ever needed. */
const MOST_LOOKS = 10_000

export interface CutOptions extends RigOptions {
  /** Every how many bytes; 1: at every byte. `count` bounds the number of cuts. */
  readonly step: number
}

export async function cuts({ seed, count, step, say }: CutOptions): Promise<Totals> {
  const stage = await Stage.open()
  try {
    const { up, down } = (await stage.play({})).passed
    say(`the conversation: ${up} bytes up, ${down} bytes down; seed ${seed}`)
    const random = new Random(seed)
    const faults: Fault[] = []
    const add = (direction: Direction, bytes: number): void => {
      for (let after = 0; after <= bytes; after += step) {
        faults.push({ direction, after, how: random.pick(['cut', 'reset']) })
      }
    }
    add('up', up)
    add('down', down)
    for (const fault of faults.slice(0, count)) {
      try {
        await stage.play({ fault })
      } catch (error) {
        throw located(error, `seed ${seed}, ${fault.how} after ${fault.after} bytes ${fault.direction}`)
      }
    }
    return { cuts: Math.min(count, faults.length), bytesUp: up, bytesDown: down, ...stage.totals }
  } finally {
    await stage.close()
  }
}

export interface Played {
  /** Nothing was missing. */
  readonly whole: boolean
  readonly passed: Passage['passed']
}

/** The server, the proxy before it, and somebody who looks on over a connection that nobody hurts. */
export class Stage {
  readonly producer: TestProducer
  readonly totals = { sent: 0, delivered: 0, again: 0, lost: 0, unexpected: 0, reused: 0 }
  readonly #proxy: TcpProxy
  readonly #watcher: Seat
  /** Controls that were begun. */
  #runs = 0
  #next = 1

  private constructor(producer: TestProducer, proxy: TcpProxy, watcher: Seat) {
    this.producer = producer
    this.#proxy = proxy
    this.#watcher = watcher
    const { executor } = producer.server.parts.producer
    const execute = executor.execute.bind(executor)
    executor.execute = async (...given) => {
      const { id, run } = await execute(...given)
      const counted = (): void => {
        this.#runs++
        run()
      }
      return { id, run: counted }
    }
  }

  static async open(): Promise<Stage> {
    const producer = await TestProducer.start({ config: { listen: { tcp: { host: '127.0.0.1', port: 0 } } } })
    await producer.addUser(USER, { password: PASSWORD })
    const port = producer.server.tcp?.port ?? 0
    return new Stage(producer, await TcpProxy.open(port), await producer.seat(USER))
  }

  async close(): Promise<void> {
    await this.#proxy.close()
    await this.producer.stop()
  }

  /**
   * The conversation, hurt as said; then what is left of it is taken up again and judged. Throws at what must not be.
   * A stall has to be released by `meanwhile`.
   */
  async play(handling: Handling, meanwhile: (passage: Passage) => Promise<void> = async () => {}): Promise<Played> {
    const passage = await this.#proxy.connect(handling)
    const peer = new RawPeer(passage.client)
    const facts = { asked: new Map<string, number>(), sent: { a: [], b: [] }, first: peer.log }
    const runs = this.#runs
    const talk = this.#converse(peer, facts).then(
      () => true,
      (error: unknown) => {
        if (!peer.closed) throw error
        return false
      },
    )
    await meanwhile(passage)
    const whole = await talk
    passage.client.end()
    await passage.over
    await this.producer.settle()
    await this.#takeUp(facts, () => this.#runs - runs)
    return { whole, passed: passage.passed }
  }

  #emit(facts: Pick<Facts, 'sent'>, metric: 'a' | 'b', count: number): void {
    for (let i = 0; i < count; i++) {
      const value = this.#next++
      this.totals.sent++
      facts.sent[metric].push(value)
      this.producer.emit(value, `test.${metric}`)
    }
  }

  async #converse(peer: RawPeer, facts: Pick<Facts, 'asked' | 'sent'>): Promise<void> {
    await login(peer)
    const seat = new Seat(peer, 0)
    const ask = (label: string, make: (seq: number) => Uint8Array): Promise<number> =>
      seat.ok((seq) => {
        facts.asked.set(label, seq)
        return make(seq)
      })
    const channel = await ask('define', (seq) => command.defChannel(seq))
    await ask('take', (seq) => command.setChannel(seq, channel))
    const a = await ask('collect a', (seq) => command.collect(seq, 'test.a', atH1))
    await ask('subscribe a', (seq) => command.subscribe(seq, a))
    this.#emit(facts, 'a', 6)
    const ids = (await seat.values(6)).map(({ transaction }) => transaction)
    const commits = [0, 2].map((at) => ask(`commit ${ids[at]}`, (seq) => command.commit(seq, ids[at] as number)))
    const done = await Promise.allSettled(commits)
    for (const one of done) if (one.status === 'rejected') throw one.reason
    await ask(`through ${ids[3]}`, (seq) => command.commitThrough(seq, ids[3] as number))
    const b = await ask('collect b', (seq) => command.collect(seq, 'test.b', atH1))
    await ask('buffer b', (seq) => command.buffer(seq, b))
    this.#emit(facts, 'b', 3)
    this.#emit(facts, 'a', 2)
    await ask('get b', (seq) => command.get(seq, b))
    const list = args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(1000)])
    const result = await ask('execute', (seq) => command.execute(seq, 'channel.configure', list))
    // Two of a, three of b, the result.
    const values = await seat.values(6)
    const { transaction } = values.find(({ metric }) => metric === result) ?? { transaction: 0 }
    await ask(`commit ${transaction}`, (seq) => command.commit(seq, transaction))
    await ask('stop b', (seq) => command.stop(seq, b))
    this.#emit(facts, 'b', 1)
    this.#emit(facts, 'a', 1)
    await seat.value()
  }

  /** What is there of the channel is read by SET_CHANNEL and GET, judged, committed and deleted. */
  async #takeUp(facts: Omit<Facts, 'second' | 'runs'>, runs: () => number): Promise<void> {
    const shown: Json[] = decoded(await this.#watcher.query('producer.channels'))
    const rows = shown.filter(({ channel }) => channel !== this.#watcher.channel)
    if (rows.length > 1) throw new Error(`the conversation left ${rows.length} channels`)
    const [row] = rows
    if (row === undefined) this.#count(judge({ ...facts, second: [], runs: runs() }, row))
    else await this.#takeUpChannel(row, facts, runs)
    const { instances, accounts } = this.producer.server.parts.producer
    const left = instances.of(accounts.find('default', USER)?.id ?? 0)
    if (left.length > 0) throw new Error(`${left.length} metric ids are left of a channel that is gone`)
  }

  async #takeUpChannel(row: Json, facts: Omit<Facts, 'second' | 'runs'>, runs: () => number): Promise<void> {
    if (balance(row) !== 0) throw new Error(`the ledger does not balance: ${JSON.stringify(row)}`)
    // Values come while nobody is there.
    this.#emit(facts, 'a', 2)
    this.#emit(facts, 'b', 2)
    const { client } = await this.#proxy.connect()
    const peer = new RawPeer(client)
    await login(peer)
    const seat = new Seat(peer, 0)
    await seat.setChannel(row.channel)
    const buffered = row.bindings.find(({ mode }: Json) => mode === 'buffer')
    if (buffered !== undefined) await seat.ok((seq) => command.get(seq, buffered.metric))
    const last = await this.#whenSent(row.channel, peer)
    this.#count(judge({ ...facts, second: peer.log, runs: runs() }, row))
    await seat.ok((seq) => command.commitThrough(seq, last))
    const end = await this.#watcher.ledger(row.channel)
    if (end.in_flight !== 0 || end.queued !== 0 || balance(end) !== 0) {
      throw new Error(`everything was committed, and the ledger says ${JSON.stringify(end)}`)
    }
    peer.destroy()
    await this.#watcher.ok((seq) => command.delChannel(seq, row.channel))
    await this.producer.settle()
  }

  /** Waits until everything in the sending order has come; gives the last transaction id. */
  async #whenSent(channel: number, peer: RawPeer): Promise<number> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      const row = await this.#watcher.ledger(channel)
      const ids = peer.log.flatMap((message) => (message.kind === 'value' ? [message.transaction] : []))
      if (row.queued === 0 && ids.filter((id) => id > 0).length >= row.in_flight) return Math.max(0, ...ids)
      await this.producer.settle()
    }
    throw new Error(`lost: the ledger counts what did not come: ${JSON.stringify(await this.#watcher.ledger(channel))}`)
  }

  #count(counts: Counts): void {
    this.totals.delivered += counts.delivered
    this.totals.again += counts.again
  }
}

async function login(peer: RawPeer): Promise<void> {
  await peer.until('caps')
  const scram = new ScramClient({ identity: USER, password: PASSWORD })
  peer.send(command.auth(0xfff00000, 'scram-sha-256', scram.first()))
  const first = await peer.until('auth')
  peer.send(command.auth(0xfff00001, '', await scram.final(first.data)))
  scram.verify((await peer.until('auth')).data)
  peer.send(command.auth(0xfff00002, '', new Uint8Array(0)))
  const { status } = await peer.response(0xfff00002)
  if (status !== 0) throw new Error(`AUTH was answered with status ${status}`)
  await peer.until('caps')
}
