/**
 * Rig: a tree of three servers, the uppermost of which has what the lowest gets. Any of them is killed at random moments, and the
 * connections between them are cut or reset after any number of bytes. Every value that the lowest has said yes to arrives at the
 * consumer of the uppermost, once, and in the order of its series.
 */
import { writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { encodeWriteRequest, type OutgoingSeries } from '../../protocol/prometheus/write-request.ts'
import { finish } from '../../server/core/fair-work.ts'
import { done, newToken } from '../support/administration.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import type { RawPeer, Received } from '../support/raw-peer.ts'
import { decoded, type Json } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'
import type { Rig, RigOptions, Totals } from './rig.ts'

const METRIC = 'prometheus.feed'
const SERIES = 20
const FIRST_LIFE_MS = 300
const MORE_LIFE_MS = 1_400
const LOOK_MS = 100
/** Between two requests. */
const PAUSE_MS = 10
/** Looks without anything new, after which nothing is expected any more: two minutes. */
const MOST_LOOKS = 1_200
/** A connection is cut within so many bytes, if it is. */
const MOST_BYTES = 300_000
/** What an unclean end is reported with. */
const RESTART = 5
/** The channel of a server below was full. */
const OVERFLOW = 1

export const tree: Rig = async (options) => {
  const run = await Run.open(options)
  try {
    return await run.all()
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    throw new Error(`tree, seed ${options.seed}: ${what}`, { cause: error })
  } finally {
    await run.remove()
  }
}

class Run {
  readonly #options: RigOptions
  readonly #random: Random
  /** From the lowest to the uppermost. */
  readonly #servers: readonly ServerProcess[]
  readonly #links: readonly CutLink[]
  readonly #token: string
  readonly #url: string
  readonly #arrived = new Arrived()
  /** The greatest number of each series that was answered with 2xx, and all of them. */
  readonly #promised = new Set<number>()
  #next = 0
  #isOver = false
  #kills = 0

  private constructor(
    options: RigOptions,
    servers: readonly ServerProcess[],
    links: readonly CutLink[],
    http: number,
    token: string,
  ) {
    this.#options = options
    this.#random = new Random(options.seed)
    this.#servers = servers
    this.#links = links
    this.#url = `http://127.0.0.1:${http}/api/v1/write`
    this.#token = token
  }

  static async open(options: RigOptions): Promise<Run> {
    const random = new Random(options.seed + 1)
    const ports = [await freePort(), await freePort(), await freePort()] as const
    const http = await freePort()
    const lowest = new ServerProcess('[gmetric]\nlisten = ""\n', { tcp: ports[0], http })
    const [first, second] = [await CutLink.open(ports[0], random), await CutLink.open(ports[1], random)]
    const secret = join(lowest.directory, 'secret')
    writeFileSync(secret, PASSWORD)
    const middle = new ServerProcess(upstream('rack1', first.port, secret), { tcp: ports[1] })
    const uppermost = new ServerProcess(upstream('east', second.port, secret), { tcp: ports[2] })
    const token = await mayPublish(lowest)
    return new Run(options, [lowest, middle, uppermost], [first, second], http, token)
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    for (const server of this.#servers) await server.start()
    await this.#bind()
    const consumed = this.#consume()
    const fed = this.#feed()
    for (const link of this.#links) link.isCutting = true
    while (this.#kills < count) {
      await setTimeout(FIRST_LIFE_MS + this.#random.below(MORE_LIFE_MS))
      const victim = this.#random.pick(this.#servers)
      await victim.end('SIGKILL')
      await setTimeout(this.#random.below(MORE_LIFE_MS))
      await victim.start()
      this.#kills++
      if (this.#kills % 20 === 0) say(`${this.#kills} kills, ${this.#arrived.count} values arrived`)
    }
    for (const link of this.#links) link.isCutting = false
    this.#isOver = true
    await fed
    const lost = await this.#lost()
    this.#arrived.isOver = true
    await this.#servers[2]?.end('SIGKILL')
    await consumed
    const { count: arrived, repeated, disordered, gaps, reported } = this.#arrived
    if (disordered > 0) throw new Error(`${disordered} values came out of order`)
    const cuts = this.#links.reduce((sum, { cuts }) => sum + cuts, 0)
    return { lost: lost - reported, unexpected: gaps, reused: repeated, promised: this.#promised.size, arrived, cuts }
  }

  async remove(): Promise<void> {
    this.#isOver = true
    this.#arrived.isOver = true
    for (const link of this.#links) link.close()
    for (const server of this.#servers) await server.remove()
  }

  /** Makes the channel of the consumer, and waits until the lowest server knows of it. */
  async #bind(): Promise<void> {
    const [lowest, , uppermost] = this.#servers as [ServerProcess, ServerProcess, ServerProcess]
    const seat = await seatAt(uppermost)
    const channel = await seat.defChannel(['name', type.string, str('consumer')])
    const producer = ['producer', type.string, str('*/*')] as const
    const id = await seat.collect(METRIC, args(producer))
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    seat.peer.destroy()
    const below = await seatAt(lowest)
    await until('the lowest server knows what is wanted', async () => {
      const channels = decoded(await below.query('producer.channels')) as Json[]
      return channels.some(({ name, bound }) => String(name).startsWith('upstream:') && bound === 1)
    })
    below.peer.destroy()
  }

  /** Sends request after request. What is not answered is not sent again: each number stands for one value. */
  async #feed(): Promise<void> {
    const startMs = Date.now()
    while (!this.#isOver) {
      // More than this, and the backlog takes longer than the kills.
      await setTimeout(PAUSE_MS)
      const first = this.#next * SERIES
      const series: OutgoingSeries[] = []
      for (let n = 0; n < SERIES; n++) {
        const samples = [{ value: first + n, timeMs: startMs + this.#next }]
        series.push({ name: 'feed', labels: [['n', String(n)]], samples })
      }
      this.#next++
      try {
        const headers = {
          'content-type': 'application/x-protobuf',
          'content-encoding': 'snappy',
          'x-prometheus-remote-write-version': '0.1.0',
          authorization: `Bearer ${this.#token}`,
        }
        const body = Uint8Array.from(finish(encodeWriteRequest(series)))
        const { ok } = await fetch(this.#url, { method: 'POST', headers, body })
        if (ok) for (let n = 0; n < SERIES; n++) this.#promised.add(first + n)
      } catch {
        await setTimeout(20)
      }
    }
  }

  /** Takes what comes at the uppermost server, over all its lives. */
  async #consume(): Promise<void> {
    const uppermost = this.#servers[2] as ServerProcess
    while (!this.#arrived.isOver) {
      try {
        const { peer, seat } = await consumerAt(uppermost)
        await this.#take(peer, seat)
      } catch {
        await setTimeout(50)
      }
    }
  }

  async #take(peer: RawPeer, seat: Seat): Promise<void> {
    for (;;) {
      const message: Received = await peer.next()
      if (message.kind === 'closed') return
      if (message.kind !== 'value' && message.kind !== 'gap') continue
      this.#arrived.take(message)
      if (message.transaction > 0) seat.send((seq) => command.commit(seq, message.transaction))
    }
  }

  /** Waits until everything has come, or as long as more comes. */
  async #lost(): Promise<number> {
    let [missing, since] = [Number.POSITIVE_INFINITY, 0]
    while (missing > 0 && since++ < MOST_LOOKS) {
      await setTimeout(LOOK_MS)
      let left = 0
      for (const number of this.#promised) if (!this.#arrived.has(number)) left++
      if (left < missing) since = 0
      missing = left
    }
    return missing
  }
}

/** What has come at the consumer. A value that was sent again has the transaction id that it had. */
class Arrived {
  isOver = false
  repeated = 0
  disordered = 0
  /** GAPs of other reasons than an unclean end and a full channel, and the values that were lost in full channels. */
  gaps = 0
  reported = 0
  readonly #numbers = new Set<number>()
  /** The last number of each series. */
  readonly #last = new Map<number, number>()
  #transaction = 0

  get count(): number {
    return this.#numbers.size
  }

  has(number: number): boolean {
    return this.#numbers.has(number)
  }

  take(message: Extract<Received, { kind: 'value' | 'gap' }>): void {
    if (message.transaction <= this.#transaction) return
    this.#transaction = message.transaction
    if (message.kind === 'gap') {
      if (message.reason === OVERFLOW) this.reported += message.count
      else if (message.reason !== RESTART) this.gaps++
      return
    }
    const { value } = decoded(message) as { value: number }
    if (this.#numbers.has(value)) this.repeated++
    this.#numbers.add(value)
    const series = value % SERIES
    if (value < (this.#last.get(series) ?? -1)) this.disordered++
    this.#last.set(series, value)
  }
}

/** A way to a port that is cut or reset after a random number of bytes, while it is cutting. */
class CutLink {
  readonly port: number
  isCutting = false
  cuts = 0
  readonly #server: Server
  readonly #random: Random
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, target: number, random: Random) {
    this.#server = server
    this.#random = random
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (near) => this.#pass(near, connect({ host: '127.0.0.1', port: target })))
  }

  static async open(target: number, random: Random): Promise<CutLink> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new CutLink(server, target, random)
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #pass(near: Socket, far: Socket): void {
    let left = this.#random.below(MOST_BYTES)
    const both = [near, far]
    for (const socket of both) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        for (const one of both) one.destroy()
      })
    }
    const pump = (from: Socket, to: Socket): void => {
      from.on('data', (chunk: Buffer) => {
        const whole = !this.isCutting || chunk.length <= left
        to.write(whole ? chunk : chunk.subarray(0, left))
        if (this.isCutting) left -= Math.min(left, chunk.length)
        if (whole) return
        this.cuts++
        // The bytes that were handed over go on, and then it ends as a network ends.
        setImmediate(() => {
          for (const one of both) one[this.#random.below(2) === 0 ? 'destroy' : 'resetAndDestroy']()
        })
      })
    }
    pump(near, far)
    pump(far, near)
  }
}

function upstream(name: string, port: number, secret: string): string {
  const login = `user = "admin"\nsecret_file = "${secret}"\n`
  return `[gmetric]\nlisten = ""\n[[upstream]]\nname = "${name}"\nurl = "tcp://127.0.0.1:${port}"\n${login}`
}

async function seatAt(server: ServerProcess): Promise<Seat> {
  const { peer, channel } = await server.login()
  return new Seat(peer, channel)
}

/** A connection that has taken up the channel of the consumer. */
async function consumerAt(server: ServerProcess): Promise<{ readonly peer: RawPeer; readonly seat: Seat }> {
  const seat = await seatAt(server)
  const channel = await seat.defChannel(['name', type.string, str('consumer')])
  seat.send((seq) => command.setChannel(seq, channel))
  return { peer: seat.peer, seat }
}

/** Makes a user whose token may publish; the server has ended then. */
async function mayPublish(server: ServerProcess): Promise<string> {
  await server.start()
  const seat = await seatAt(server)
  await done(seat, 'role.allow', { role: 'operator', command: 'PUBLISH', object: 'prometheus.*' })
  await done(seat, 'user.add', { user: 'app', role: 'operator', password: PASSWORD })
  const { token, hash } = newToken()
  await done(seat, 'token.add', { user: 'app', hash, scope: 'PUBLISH prometheus.*' })
  seat.peer.destroy()
  await server.end('SIGTERM')
  return token
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await holds()); looks++) {
    if (looks === MOST_LOOKS) throw new Error(`waited in vain until ${what}`)
    await setTimeout(LOOK_MS)
  }
}
