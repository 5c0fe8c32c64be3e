/**
 * Peers that want to hurt, one after the other and some at once, against a server in a process of its own. Beside them a
 * good consumer follows a metric and commits: after each hostile deed its values have to come and its commands have to be
 * answered. That is counted, not timed; what is hostile is sent without waiting for anything.
 */

import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { memoryMiB } from '../rig/process-costs.ts'
import { type Course, type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { args, command, gmetricPacket, join, status, str, type, u32 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { decoded } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'

/** `limits.patterns_per_identity`. */
export const QUOTA = 1_000
const MIB = 1 << 20
/** COLLECTs and QUERYs for each half-open connection. */
export const COMMANDS_EACH = 200
const MOST_COMMANDS = 100_000
/** [MON 11], with the second in which the system closes what the server has ended. */
const LOGIN_MS = 10_000
const WAIT_MS = 60_000
/** A machine may be slow; but what Node does by itself takes a minute, and would prove nothing. */
const MOST_OPEN_MS = 50_000
/** Sent at once before the good consumer is looked at. */
const PORTION = 1_000

/** `count`: half-open connections. The server takes 10,000 by default, and both ends of each need a file descriptor. */
export const hostile: Rig = async (options) => runCourse('hostile', options, await Attack.start(options))

function commandsOf(halfOpen: number): number {
  return Math.min(MOST_COMMANDS, halfOpen * COMMANDS_EACH)
}

class Attack implements Course {
  /** The deed that is under way. */
  moment = 'before the first deed'
  /** What the good consumer got, all of it asked for. */
  readonly #good = { values: 0, commands: 0 }
  readonly #options: RigOptions
  readonly #server: ServerProcess
  readonly #random: Random
  readonly #udp: UdpSocket
  readonly #port: number
  readonly #seat: Seat
  readonly #idle: Socket[] = []
  #closed = 0
  #longestMs = 0
  #next = 1

  private constructor(options: RigOptions, server: ServerProcess, port: number, seat: Seat) {
    this.#options = options
    this.#server = server
    this.#random = new Random(options.seed)
    this.#port = port
    this.#seat = seat
    this.#udp = createSocket('udp4')
  }

  static async start(options: RigOptions): Promise<Attack> {
    const port = await freePort()
    const limit = Math.max(10_000, options.count + 1_000)
    const server = new ServerProcess(
      `[gmetric]\nlisten = "127.0.0.1:${port}"\n[limits]\nconnections = ${limit}\n[log]\nlevel = "error"\n`,
    )
    await server.start()
    const seat = await server.seat()
    for (const name of ['mallory', 'eve']) {
      const outcome = await seat.execute(
        'user.add',
        ['user', type.string, str(name)],
        ['password', type.string, str(passwordOf(name))],
      )
      if (outcome.outcome !== 'ok') throw new Error(`user.add: ${outcome.detail}`)
    }
    const id = await seat.collect('gmetric.good', args(['host', type.string, str('127.0.0.1')]))
    await seat.ok((seq) => command.subscribe(seq, id))
    return new Attack(options, server, port, seat)
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    const deeds: readonly (readonly [string, () => Promise<number>])[] = [
      ['halfOpen', () => this.#halfOpen(count)],
      ['neverEnding', () => this.#neverEndingFrames()],
      ['fragments', () => this.#fragments()],
      ['longMessages', () => this.#longMessages()],
      ['guesses', () => this.#guesses()],
      ['collectsRefused', () => this.#collects(commandsOf(count))],
      ['queries', () => this.#queries(commandsOf(count))],
      ['neverReading', () => this.#neverReading()],
      ['closedAfter10s', () => this.#halfOpenAreClosed()],
    ]
    const totals: Record<string, number> = { lost: 0, unexpected: 0, reused: 0, rssBeforeMiB: this.#rssMiB() }
    for (const [name, deed] of deeds) {
      this.moment = name
      totals[name] = await deed()
      await this.#beat()
      say(`${name.padEnd(16)}${String(totals[name]).padStart(8)}   ${this.#rssMiB()} MiB`)
    }
    return { ...totals, rssAfterMiB: this.#rssMiB(), rssMostMiB: this.#rssMostMiB(), ...this.#good }
  }

  async remove(): Promise<void> {
    for (const socket of this.#idle) socket.destroy()
    this.#seat.peer.destroy()
    this.#udp.close()
    await this.#server.remove()
  }

  #rssMiB(): number {
    return memoryMiB(this.#server.pid)
  }

  #rssMostMiB(): number {
    return memoryMiB(this.#server.pid, 'VmHWM')
  }

  /** The good consumer: a value comes, is committed, and a command is answered. */
  async #beat(): Promise<void> {
    const number = this.#next++
    const packet = gmetricPacket('uint32', 'good', String(number))
    this.#udp.send(packet, this.#port, '127.0.0.1')
    for (;;) {
      const value = await this.#seat.value()
      if (value.type !== type.uint32) continue
      const came = value.value.readUInt32BE(0)
      if (came !== number) throw new Error(`lost: the good consumer was to get ${number}, and got ${came}`)
      await this.#seat.ok((seq) => command.commit(seq, value.transaction))
      break
    }
    await this.#seat.ok((seq) => command.nop(seq))
    this.#good.values++
    this.#good.commands += 2
  }

  /** Connections that send nothing, a part of a length, of a frame of 64 KiB, or of a request; `#halfOpenAreClosed` counts them. */
  async #halfOpen(count: number): Promise<number> {
    const part = join(u32(1 << 16), u32(6), new Uint8Array(4_000))
    const request = Buffer.from('GET /monitor HTTP/1.1\r\nHost: 127.0.0.1\r\n')
    for (let open = 0; open < count; open++) {
      const { tcpPort, httpPort } = this.#server
      const [port, bytes] = this.#random.pick([
        [tcpPort, undefined],
        [tcpPort, part.subarray(0, 3)],
        [tcpPort, part],
        [httpPort, undefined],
        [httpPort, request],
      ] as const)
      const socket = await this.#dial(port)
      socket.resume()
      const opened = performance.now()
      socket.on('close', () => {
        this.#closed++
        this.#longestMs = Math.max(this.#longestMs, performance.now() - opened)
      })
      this.#idle.push(socket)
      if (bytes !== undefined) socket.write(bytes)
      if (open % PORTION === 0) await this.#beat()
    }
    return this.#idle.length
  }

  /** All of them, by the server, and by nothing that they did. */
  async #halfOpenAreClosed(): Promise<number> {
    const end = performance.now() + LOGIN_MS + WAIT_MS
    while (this.#closed < this.#idle.length && performance.now() < end) await setTimeout(50)
    if (this.#closed < this.#idle.length) throw new Error(`${this.#idle.length - this.#closed} are still open`)
    if (this.#longestMs > MOST_OPEN_MS) throw new Error(`one was open for ${Math.round(this.#longestMs / 1_000)} s`)
    return this.#closed
  }

  /** Lengths above the limit, before AUTH and after: closed at once, from the length alone. */
  async #neverEndingFrames(): Promise<number> {
    const lengths = [0xffffffff, 0x7ffffffc, (1 << 16) + 4, (1 << 16) + 1, 7, 0]
    for (const length of lengths) {
      const peer = new RawPeer(await this.#dial(this.#server.tcpPort))
      peer.send(u32(length))
      await closed(peer, `a frame of ${length} bytes before AUTH`)
    }
    for (const length of [0xffffffff, MIB + 4]) {
      const seat = await this.#login('mallory')
      seat.peer.send(u32(length))
      await closed(seat.peer, `a frame of ${length} bytes`)
    }
    return lengths.length + 2
  }

  /** A WebSocket message of 1-byte fragments, before AUTH and after: closed long before it is a message. */
  async #fragments(): Promise<number> {
    let sent = 0
    const fragment = Uint8Array.of(0x00, 0x81, 0, 0, 0, 0, 0x20)
    for (let peers = 0; peers < 20; peers++) {
      const socket = await this.#upgrade()
      let open = true
      socket.on('close', () => {
        open = false
      })
      socket.write(Uint8Array.of(0x01, 0x81, 0, 0, 0, 0, 0x5b))
      for (; open && sent < 10 * MIB; sent += 100) {
        await new Promise<void>((written) => socket.write(join(...new Array(100).fill(fragment)), () => written()))
        if (!socket.writable) break
      }
      if (sent >= 10 * MIB) throw new Error('a message of 1-byte fragments never comes to an end')
      socket.destroy()
    }
    return sent
  }

  /** A WebSocket message of 1 MiB before AUTH, where 64 KiB are the most: closed before it is whole. Gives what was sent. */
  async #longMessages(): Promise<number> {
    let sent = 0
    for (let peers = 0; peers < 20; peers++) {
      const socket = await this.#upgrade()
      const over = new Promise((done) => socket.once('close', done))
      const start = join(Uint8Array.of(0x81, 0xff, 0, 0, 0, 0), u32(MIB), u32(0))
      socket.write(start)
      // All but the last byte, so that it is never a message.
      for (let left = MIB - 1; left > 0 && socket.writable; left -= 1 << 12) {
        const piece = Buffer.alloc(Math.min(left, 1 << 12), 0x20)
        await new Promise<void>((written) => socket.write(piece, () => written()))
        sent += piece.length
      }
      // Within the 10 s before AUTH the end would come anyway, and prove nothing.
      if (!(await isWithin(over, LOGIN_MS / 2))) throw new Error('1 MiB was held for a peer before AUTH')
    }
    return sent
  }

  /** Guessing a password: never admitted, three on a connection; another user still gets in. */
  async #guesses(): Promise<number> {
    let refused = 0
    for (let peers = 0; peers < 10; peers++) {
      const peer = new RawPeer(await this.#dial(this.#server.tcpPort))
      const data = (guess: number) => join(str('eve'), str(`guess ${guess}`))
      peer.send(...Array.from({ length: 10 }, (_, guess) => command.auth(guess, 'password', data(guess))))
      await closed(peer, 'guessing')
      const statuses = peer.log.flatMap((message) => (message.kind === 'response' ? [message.status] : []))
      if (statuses.some((found) => found !== status.AUTH_FAILED) || statuses.length > 3) {
        throw new Error(`guesses were answered with ${statuses}`)
      }
      refused += statuses.length
    }
    ;(await this.#login('mallory')).peer.destroy()
    return refused
  }

  /** COLLECTs far above the quota; gives how many were refused. */
  async #collects(count: number): Promise<number> {
    const { peer } = await this.#login('mallory')
    const found = new Map<number, number>()
    for (let seq = 0; seq < count; seq += PORTION) {
      peer.send(...Array.from({ length: PORTION }, (_, at) => command.collect(seq + at, 'gmetric.*')))
      for (let at = 0; at < PORTION; at++) {
        const one = (await peer.until('response')).status
        found.set(one, (found.get(one) ?? 0) + 1)
      }
      await this.#beat()
    }
    const refused = found.get(status.QUOTA_EXCEEDED) ?? 0
    if (found.get(status.OK) !== QUOTA || refused !== count - QUOTA) {
      throw new Error(`${count} COLLECTs were answered with ${JSON.stringify(Object.fromEntries(found))}`)
    }
    peer.destroy()
    return refused
  }

  /** QUERYs whose answers nobody reads for a while: then all of them are there. */
  async #queries(count: number): Promise<number> {
    const { peer } = await this.#login('mallory')
    peer.stream.pause()
    for (let seq = 0; seq < count; seq += PORTION) {
      peer.send(...Array.from({ length: PORTION }, (_, at) => command.query(seq + at, 'producer.stats')))
      await this.#beat()
    }
    const most = this.#rssMiB()
    peer.stream.resume()
    for (let answered = 0; answered < count; answered++) {
      const { status: found } = await peer.until('response')
      if (found !== status.OK) throw new Error(`QUERY ${answered} of ${count} was answered with status ${found}`)
    }
    peer.destroy()
    if (most > 1_024) throw new Error(`${most} MiB while nobody read`)
    return count
  }

  /** Follows a metric of many large values and reads none of them; gives by how many MiB the server grew. */
  async #neverReading(): Promise<number> {
    const seat = await this.#login('mallory')
    const id = await seat.collect('gmetric.large', args(['host', type.string, str('127.0.0.1')]))
    await seat.ok((seq) => command.subscribe(seq, id))
    seat.peer.stream.pause()
    const before = this.#rssMiB()
    const packet = gmetricPacket('string', 'large', 'x'.repeat(4_000))
    let accepted = 0
    for (let round = 0; accepted < 30_000 && round < 5_000; round++) {
      for (let i = 0; i < 32; i++) this.#udp.send(packet, this.#port, '127.0.0.1')
      if (round % 100 === 0) await this.#beat()
      accepted = decoded(
        await this.#seat.query('producer.channels', args(['channel', type.string, str(String(seat.channel))])),
      )[0].accepted
    }
    if (accepted < 30_000) throw new Error(`only ${accepted} values were taken`)
    const grown = this.#rssMiB() - before
    seat.peer.destroy()
    // 120 MB were taken: a window of 8 MiB, 256 KiB for the link, and what a collector leaves for later.
    if (grown > 100) throw new Error(`the server grew by ${grown} MiB for a peer that does not read`)
    return grown
  }

  async #dial(port: number): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }

  async #login(name: string): Promise<Seat> {
    const peer = new RawPeer(await this.#dial(this.#server.tcpPort))
    await peer.until('caps')
    peer.send(command.auth(0xfff00000, 'password', join(str(name), str(passwordOf(name)))))
    const { status: found, result } = await peer.response(0xfff00000)
    if (found !== status.OK) throw new Error(`AUTH of ${name} was answered with status ${found}`)
    return new Seat(peer, result)
  }

  /** A WebSocket by hand: the library cuts no message into pieces of one byte. */
  async #upgrade(): Promise<Socket> {
    const socket = await this.#dial(this.#server.httpPort)
    socket.write(
      'GET /monitor HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n' +
        'Sec-WebSocket-Protocol: monitoring.json\r\n\r\n',
    )
    const [answer] = (await once(socket, 'data')) as [Buffer]
    if (!answer.toString('latin1').startsWith('HTTP/1.1 101'))
      throw new Error(`no WebSocket: ${answer.toString('latin1')}`)
    socket.resume()
    return socket
  }
}

async function isWithin(event: Promise<unknown>, ms: number): Promise<boolean> {
  return Promise.race([event.then(() => true), setTimeout(ms, false, { ref: false })])
}

async function closed(peer: RawPeer, why: string): Promise<void> {
  const end = performance.now() + WAIT_MS
  while (!peer.closed && performance.now() < end) await setTimeout(5)
  if (!peer.closed) throw new Error(`${why} did not close the connection`)
  peer.destroy()
}

function passwordOf(name: string): string {
  return `the password of ${name}`
}
