/**
 * What a hostile tenant does, each deed by its name. A deed sends as fast as the server takes it, until its time is over, and
 * gives counts of what the server answered. None waits for the other tenant, and none looks at how it fares.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request as post } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { ALL, args, command, join, status, str, type, u32 } from '../../support/bytes.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { decoded, type Json } from '../../support/records.ts'
import { Seat } from '../../support/seat.ts'
import { type CostlyBody, costlyBodies } from './bodies.ts'
import { queries } from './queries.ts'
import { connectAs, dialled, dialledTls, type Reach, type TenantUser } from './wire.ts'

export interface HostileJob extends TenantUser {
  readonly deed: DeedName
  readonly seconds: number
  readonly reach: Reach
  /** Its own: where it matters, it comes from all of them, else from the first. */
  readonly addresses: readonly string[]
  /** Whose password it guesses. */
  readonly victim: string
  /** Its tokens: one that may publish, and one that may only read. */
  readonly tokens: readonly string[]
}

/** Sums; `done` is what the server did, `refused` what it answered with anything but OK, or not at all. */
export interface DeedTally {
  readonly done: number
  readonly refused: number
  readonly [more: string]: number
}

export type DeedName = keyof typeof deeds

/** What is written at once. */
const IN_ONE_WRITE = 300
const BATCH = 1_000
/** Open at once, and of these being opened. */
const MOST_SOCKETS = 10_000
const OPENING = 512
/** Connections that get values, and of these being opened. */
const SUBSCRIBERS = 300
const OPENING_AT_ONCE = 50
const GUESSERS = 100
/** Each may have its challenge before the others have failed, and whether its proof is looked at is not seen from outside. */
export const SCRAM_GUESSERS = 50
/** Of one connection: the third failure closes it [MON 11]. */
const GUESSES_EACH = 3
const FRAGMENTS = 16_000
const FRAGMENTED = 1_000
const POSTERS = 6
const SCRAPERS = 300
const CHANNELS = 40
const REST_MS = 20
const LOOK_MS = 100
const MOST_PREPARING_MS = 30_000
/** A slow machine may take longer to fill a disk. */
const MOST_FILL_MS = 30_000
const FILL_LOOK_MS = 250

/** The hostile tenant at work: its job, and when that is over. */
class Attacker {
  readonly job: HostileJob
  #end: number
  #hasBegun = false
  #connections = 0

  constructor(job: HostileJob) {
    this.job = job
    this.#end = performance.now() + MOST_PREPARING_MS
  }

  /** Its time begins with the first thing that it does: until then a slow machine may take long. */
  begin(): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#end = performance.now() + this.job.seconds * 1_000
  }

  get isOver(): boolean {
    return performance.now() >= this.#end
  }

  get leftMs(): number {
    return Math.max(0, this.#end - performance.now())
  }

  get address(): string {
    return this.job.addresses[0] as string
  }

  get nextAddress(): string {
    return this.job.addresses[this.#connections++ % this.job.addresses.length] as string
  }

  async seat(): Promise<Seat> {
    const { peer, channel } = await connectAs(this.job.reach, this.job, { from: this.address })
    return new Seat(peer, channel)
  }

  /** A session that counts the bytes of the answers, and keeps none. */
  async session(): Promise<{ readonly stream: Duplex; readonly came: { bytes: number } }> {
    const { stream } = (await this.seat()).peer
    const came = { bytes: 0 }
    stream.removeAllListeners('data')
    stream.on('data', (chunk: Buffer) => {
      came.bytes += chunk.length
    })
    return { stream, came }
  }

  /** Writes once and then again and again, as fast as the server reads. Gives how often. */
  async flood(stream: Duplex, chunk: Uint8Array): Promise<number> {
    this.begin()
    for (let written = 0; ; written++) {
      if ((written > 0 && this.isOver) || stream.destroyed) return written
      if (!stream.write(chunk)) await this.drained(stream)
      else await new Promise(setImmediate)
    }
  }

  /** Settles when a stream takes more, at its end, and when the time is over. */
  drained(stream: Duplex): Promise<void> {
    return new Promise((resolve) => {
      const timer = globalThis.setTimeout(done, this.#end - performance.now())
      function done(): void {
        clearTimeout(timer)
        stream.off('drain', done).off('close', done)
        resolve()
      }
      stream.once('drain', done).once('close', done)
    })
  }

  async #over(): Promise<void> {
    while (!this.isOver) await setTimeout(Math.min(this.leftMs, LOOK_MS))
  }

  /** Does something again and again until its time is over, in so many places at once; what fails is tried again. */
  async repeat(places: number, act: (n: number) => Promise<void>): Promise<void> {
    let n = 0
    const over = this.#over()
    const place = async (): Promise<void> => {
      while (!this.isOver) {
        try {
          await Promise.race([act(n++), over])
        } catch {
          await setTimeout(1)
        }
      }
    }
    await Promise.all(Array.from({ length: places }, place))
  }
}

/** Lists of everything, three hundred in one write, in four sessions. */
async function lists(attacker: Attacker): Promise<DeedTally> {
  const names = ['gmetric.*z', 'gmetric.*', 'producer.metrics', 'gmetric.*1*2*3*4*5*6*7*']
  const chunk = join(
    ...Array.from({ length: IN_ONE_WRITE }, (_, seq) =>
      seq % 5 === 4 ? command.collect(seq, 'gmetric.*') : command.query(seq, names[seq % 5] as string),
    ),
  )
  const sessions = await Promise.all(Array.from({ length: 4 }, () => attacker.session()))
  const written = await Promise.all(sessions.map(({ stream }) => attacker.flood(stream, chunk)))
  return { done: sum(written) * IN_ONE_WRITE, refused: 0, bytes: sum(sessions.map(({ came }) => came.bytes)) }
}

/** Lists of everything, and not a byte of the answers is read. */
async function unread(attacker: Attacker): Promise<DeedTally> {
  const chunk = join(...Array.from({ length: IN_ONE_WRITE }, (_, seq) => command.query(seq, 'gmetric.*')))
  const sessions = await Promise.all(Array.from({ length: 20 }, () => attacker.session()))
  for (const { stream } of sessions) stream.pause()
  const written = await Promise.all(sessions.map(({ stream }) => attacker.flood(stream, chunk)))
  return { done: sum(written) * IN_ONE_WRITE, refused: 0 }
}

/** Binds patterns, each with several stars, that match nothing. */
async function patterns(attacker: Attacker): Promise<DeedTally> {
  return bind(await attacker.seat(), attacker, (n) => `gmetric.*a${n}*b*c*`)
}

/** Binds thousands of metrics on one channel. */
async function bindings(attacker: Attacker): Promise<DeedTally> {
  return bind(await attacker.seat(), attacker, (n) => `gmetric.bound${n}`)
}

async function bind(seat: Seat, attacker: Attacker, name: (n: number) => string): Promise<DeedTally> {
  const tally = { done: 0, refused: 0 }
  attacker.begin()
  for (let n = 0; !attacker.isOver; n += BATCH) {
    const collects = Array.from({ length: BATCH }, (_, at) => seat.send((seq) => command.collect(seq, name(n + at))))
    const ids: number[] = []
    for (const seq of collects) {
      const { status: found, result } = await seat.peer.response(seq)
      if (found === status.OK) ids.push(result)
      else tally.refused++
    }
    const subscribes = ids.map((id) => seat.send((seq) => command.subscribe(seq, id)))
    for (const seq of subscribes) tally[(await seat.peer.response(seq)).status === status.OK ? 'done' : 'refused']++
  }
  return tally
}

/** GETs of a pattern whose values wait, so that each releases something and measures everything. */
async function gets(attacker: Attacker): Promise<DeedTally> {
  const seat = await attacker.seat()
  const id = await seat.collect('gmetric.*')
  await seat.ok((seq) => command.buffer(seq, id))
  const { stream } = seat.peer
  stream.removeAllListeners('data')
  stream.resume()
  const chunk = join(...Array.from({ length: IN_ONE_WRITE }, (_, seq) => command.get(seq, id)))
  return { done: (await attacker.flood(stream, chunk)) * IN_ONE_WRITE, refused: 0 }
}

/** Values to hundreds of channels at once, a hundred times a second, and each is taken. */
async function subscribers(attacker: Attacker): Promise<DeedTally> {
  const often = args(['interval_ms', type.uint32, u32(10)])
  const tally = { done: 0, refused: 0, bytes: 0 }
  const open = async (): Promise<void> => {
    const seat = await attacker.seat()
    const id = await seat.collect('host.load.one', often)
    await seat.ok((seq) => command.subscribe(seq, id))
    const { stream } = seat.peer
    stream.removeAllListeners('data')
    stream.on('data', (chunk: Buffer) => {
      tally.bytes += chunk.length
    })
    tally.done++
  }
  for (let opened = 0; opened < SUBSCRIBERS; opened += OPENING_AT_ONCE) {
    await Promise.all(Array.from({ length: OPENING_AT_ONCE }, open))
  }
  attacker.begin()
  while (!attacker.isOver) await setTimeout(LOOK_MS)
  return tally
}

/** Passwords of names that nobody has, from a hundred connections: `done` are those that were looked at. */
async function passwords(attacker: Attacker): Promise<DeedTally> {
  const tally = { done: 0, refused: 0, asked: 0 }
  await attacker.repeat(GUESSERS, async () => {
    const peer = new RawPeer(await dialledTls(attacker.job.reach, attacker.address))
    for (let seq = 1; seq <= GUESSES_EACH; seq++) {
      const guess = join(str(`u${randomBytes(6).toString('hex')}`), str('guessed'))
      peer.send(command.auth(seq, 'password', guess))
      tally.asked++
      attacker.begin()
      tally[(await peer.response(seq)).status === status.AUTH_FAILED ? 'done' : 'refused']++
    }
    peer.destroy()
  })
  return tally
}

/** SCRAM guesses at one user: `done` are those that got a challenge. */
async function proofs(attacker: Attacker): Promise<DeedTally> {
  const tally = { done: 0, refused: 0 }
  const { reach, victim } = attacker.job
  await attacker.repeat(SCRAM_GUESSERS, async () => {
    const peer = new RawPeer(await dialled(reach.host, reach.tcp, attacker.nextAddress))
    for (let seq = 1; seq < 2 * GUESSES_EACH; seq += 2) {
      const nonce = randomBytes(18).toString('base64')
      peer.send(command.auth(seq, 'scram-sha-256', Buffer.from(`n,,n=${victim},r=${nonce}`)))
      const { status: found } = await peer.response(seq)
      attacker.begin()
      if (found !== status.AUTH_NEEDED) {
        tally.refused++
        continue
      }
      const [whole] = (await peer.until('auth')).data.toString().split(',')
      const proof = randomBytes(32).toString('base64')
      peer.send(command.auth(seq + 1, '', Buffer.from(`c=biws,${whole},p=${proof}`)))
      await peer.response(seq + 1)
      tally.done++
    }
    peer.destroy()
  })
  return tally
}

/** Connections without a login, opened as fast as possible and kept. */
async function connections(attacker: Attacker): Promise<DeedTally> {
  const { host, tcp } = attacker.job.reach
  return keep(attacker, async () => {
    const socket = await dialled(host, tcp, attacker.nextAddress)
    socket.resume()
    return socket
  })
}

/** HTTP connections that are kept: each asks again before it is closed for idleness. */
async function requests(attacker: Attacker): Promise<DeedTally> {
  const { host, http } = attacker.job.reach
  const request = `GET /health HTTP/1.1\r\nHost: ${authorityOf(attacker.job.reach)}\r\n\r\n`
  return keep(attacker, async () => {
    const socket = await dialled(host, http, attacker.nextAddress)
    socket.on('data', () => {
      const again = setTimeout(500, undefined, { ref: false })
      void again.then(() => socket.destroyed || socket.write(request))
    })
    socket.write(request)
    return socket
  })
}

async function keep(attacker: Attacker, open: () => Promise<Socket>): Promise<DeedTally> {
  const kept = new Set<Socket>()
  const tally = { done: 0, refused: 0, most: 0 }
  await attacker.repeat(OPENING, async () => {
    if (kept.size >= MOST_SOCKETS) return setTimeout(REST_MS)
    try {
      const socket = await open()
      attacker.begin()
      kept.add(socket)
      socket.once('close', () => kept.delete(socket))
      tally.done++
      tally.most = Math.max(tally.most, kept.size)
    } catch (error) {
      tally.refused++
      throw error
    }
  })
  return tally
}

/** WebSocket messages in thousands of one-byte fragments, never ended, before any login. */
async function fragments(attacker: Attacker): Promise<DeedTally> {
  const { host, http } = attacker.job.reach
  const tally = { done: 0, refused: 0, bytes: 0 }
  const kept: Socket[] = []
  const portion = Buffer.concat(new Array(1_000).fill(Uint8Array.of(0x00, 0x81, 0, 0, 0, 0, 0x20)))
  const upgrade =
    `GET /monitor HTTP/1.1\r\nHost: ${authorityOf(attacker.job.reach)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n' +
    'Sec-WebSocket-Protocol: monitoring.json\r\n\r\n'
  await attacker.repeat(16, async () => {
    if (kept.length >= FRAGMENTED) return setTimeout(REST_MS)
    const socket = await dialled(host, http, attacker.nextAddress)
    kept.push(socket)
    socket.resume()
    socket.write(upgrade)
    socket.write(Uint8Array.of(0x01, 0x81, 0, 0, 0, 0, 0x5b))
    for (let sent = 0; sent < FRAGMENTS && socket.writable; sent += 1_000) {
      tally.bytes += portion.length
      attacker.begin()
      if (!socket.write(portion)) await attacker.drained(socket)
    }
    tally[socket.writable ? 'done' : 'refused']++
  })
  return tally
}

/** Costly bodies, with a token that may publish and one that may not; of every third the connection ends before its answer. */
async function bodies(attacker: Attacker): Promise<DeedTally> {
  const { host, http } = attacker.job.reach
  const tally = { done: 0, refused: 0, ended: 0 }
  const all = costlyBodies()
  await attacker.repeat(POSTERS, async (n) => {
    const { path, headers, body } = all[n % all.length] as CostlyBody
    const token = attacker.job.tokens[Math.floor(n / all.length) % 2]
    attacker.begin()
    const request = post({
      host,
      port: http,
      path,
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${token}` },
    })
    request.end(body)
    if (n % 3 === 0) {
      request.on('error', () => {})
      await setTimeout(LOOK_MS)
      request.destroy()
      tally.ended++
      return
    }
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.resume()
    tally[response.statusCode === 200 || response.statusCode === 204 ? 'done' : 'refused']++
  })
  return tally
}

/** Three hundred scrapes of everything at once, again and again. */
async function scrapes(attacker: Attacker): Promise<DeedTally> {
  const { host, http } = attacker.job.reach
  const tally = { asked: 0, done: 0, refused: 0, bytes: 0 }
  const authorization = `Bearer ${attacker.job.tokens[1]}`
  await attacker.repeat(SCRAPERS, async () => {
    attacker.begin()
    const request = post({ host, port: http, path: '/metrics?metric=gmetric.*', headers: { authorization } })
    request.end()
    tally.asked++
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    for await (const chunk of response) tally.bytes += (chunk as Buffer).length
    tally[response.statusCode === 200 ? 'done' : 'refused']++
  })
  return tally
}

/** Commands that leave a record in the audit log: settings, rehearsals, and one key again and again. */
async function records(attacker: Attacker): Promise<DeedTally> {
  const own = ['channel', type.uint32, u32(0)] as const
  const extra = [[], [['dry_run', type.boolean, u32(1)]], [['idempotency_key', type.string, str('the same')]]] as const
  const tally = { done: 0, refused: 0 }
  const flood = async (list: Uint8Array): Promise<void> => {
    const seat = await attacker.seat()
    attacker.begin()
    while (!attacker.isOver) {
      const seqs = Array.from({ length: 64 }, () => seat.send((seq) => command.execute(seq, 'channel.configure', list)))
      for (const seq of seqs) tally[(await seat.peer.response(seq)).status === status.OK ? 'done' : 'refused']++
    }
  }
  await Promise.all(extra.map((more) => flood(args(own, ...more))))
  return tally
}

/** Fills the disk with values that nobody commits until some are refused, and then deletes all channels in one command. */
async function disk(attacker: Attacker): Promise<DeedTally> {
  const seat = await attacker.seat()
  const tally = { done: 0, refused: 0, deletedAfterMs: -1 }
  const id = await seat.collect('host.*', args(['interval_ms', type.uint32, u32(10)]))
  attacker.begin()
  const fillMs = attacker.leftMs * 0.75
  const count = async (seq: number): Promise<number> => {
    const { status: found, result } = await seat.peer.response(seq)
    tally[found === status.OK ? 'done' : 'refused']++
    return result
  }
  const channels: number[] = []
  const defined = Array.from({ length: CHANNELS }, () => seat.send((seq) => command.defChannel(seq)))
  for (const seq of defined) channels.push(await count(seq))
  const bound = channels.map((channel) => seat.send((seq) => command.subscribe(seq, id, channel)))
  for (const seq of bound) await count(seq)
  const filled = performance.now() + fillMs
  while (performance.now() < filled + MOST_FILL_MS) {
    await setTimeout(FILL_LOOK_MS)
    if (performance.now() > filled && (await isAtItsLimit(seat))) break
  }
  const at = performance.now()
  await seat.ok((seq) => command.delChannel(seq, ALL))
  tally.deletedAfterMs = Math.round(performance.now() - at)
  return tally
}

/** Whether values of its channels were dropped, since there was no more room for them. */
async function isAtItsLimit(seat: Seat): Promise<boolean> {
  const channels: Json[] = decoded(await seat.query('producer.channels'))
  return channels.some(
    ({ dropped }) => dropped !== undefined && Object.values<number>(dropped).some((count) => count > 0),
  )
}

function authorityOf({ host, http }: Reach): string {
  return host.includes(':') ? `[${host}]:${http}` : `${host}:${http}`
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

export const deeds = {
  lists,
  unread,
  patterns,
  bindings,
  gets,
  subscribers,
  passwords,
  proofs,
  connections,
  requests,
  fragments,
  bodies,
  scrapes,
  queries,
  records,
  disk,
} as const

export async function perform(job: HostileJob): Promise<DeedTally> {
  return deeds[job.deed](new Attacker(job))
}
