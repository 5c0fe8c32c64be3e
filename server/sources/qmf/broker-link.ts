/**
 * A connection to a Qpid broker, made again whenever it is lost, for whatever speaks on it. What a broker says is shown to
 * people only without its password.
 */
import { readFile } from 'node:fs/promises'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AmqpClient, type AmqpEvents } from '../../../protocol/amqp/client.ts'
import { forPeople } from '../../../protocol/amqp/reasons.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { QmfTable } from '../../sources/qmf/config.ts'

/** Until a connection is there; AMQP has its own time behind it. */
const CONNECT_MS = 10_000
const GOODBYE_MS = 1_000
const FIRST_MS = 1_000
const LONGEST_MS = 60_000
/** A connection that was good for so long was good: what ends earlier may go on to end. */
const STEADY_MS = 10_000
/** What waits for a broker that does not read. */
const MAX_UNSENT_BYTES = 1 << 20
const MAX_BODY_BYTES = 1 << 20
/** An idle dead peer is noticed in about 25 s [MON 15]. */
const KEEP_ALIVE_MS = 15_000
const NOTHING: Uint8Array = new Uint8Array(0)

/** What speaks on one connection. It tells the end of it by `down`, once. */
export interface Speaker {
  push(bytes: Uint8Array): void
  /** Monotonic ms, every second. */
  tick(nowMs: number): void
  /** Says goodbye. */
  end(): void
}

/** A connection that was made. */
export interface Wire {
  /** A name for its AMQP session that no other has. */
  readonly session: string
  connect(events: AmqpEvents): AmqpClient
  /** It is what it was made for: when it is lost after a while, the next one comes soon. */
  ready(): void
  down(reason: string): void
}

/** What connections are made for; it outlives them. */
export interface Party {
  /** What is logged with the name of the broker, by what happened. */
  readonly said: { readonly ready: string; readonly lost: string }
  /** What its AMQP sessions are called, a number behind it. No two at a broker may be called the same. */
  readonly session: string
  open(wire: Wire): Speaker
  /** Where what arrives is taken by, if not by the speaker as it comes. */
  readonly feed?: (speaker: Pick<Speaker, 'push' | 'end'>, socket: Socket) => Pick<Speaker, 'push' | 'end'>
  /** It is lost, or could not be made. */
  down(reason: string): void
}

export interface LinkOptions {
  readonly clock: Clock
  readonly log: Logger
  /** 0..1 */
  readonly random?: () => number
}

export class BrokerLink {
  readonly #table: QmfTable
  readonly #party: Party
  readonly #clock: Clock
  readonly #log: Logger
  readonly #random: () => number
  /** In a row. */
  #failures = 0
  /** Made so far. */
  #connections = 0
  /** Since when it is what it was made for, monotonic. */
  #readyMs: number | undefined
  #password: string | undefined
  #socket: Socket | undefined
  #speaker: Speaker | undefined
  /** Whether something arrived that the speaker was not given yet. */
  #isBehind = (): boolean => false
  /** Why the speaker is ended, where it cannot know. */
  #reason: string | undefined
  /** Until the next attempt, or for the one under way. */
  #timer: Timer | undefined
  #isClosed = false

  constructor(table: QmfTable, party: Party, { clock, log, random = Math.random }: LinkOptions) {
    this.#table = table
    this.#party = party
    this.#clock = clock
    this.#log = log
    this.#random = random
  }

  /** Never rejects. */
  async connect(): Promise<void> {
    const { host, port, isTls, ca: caFile, passwordFile, password } = this.#table
    try {
      this.#password = passwordFile === undefined ? password : await passwordIn(passwordFile)
      const ca = caFile === undefined ? undefined : await readFile(caFile)
      if (this.#isClosed) return
      const to = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }
      const socket = isTls
        ? connectTls({ ...to, ...(ca && { ca }), ...(isIP(host) === 0 && { servername: host }), minVersion: 'TLSv1.2' })
        : connect(to)
      this.#open(socket, isTls ? 'secureConnect' : 'connect')
    } catch (error) {
      this.#lost(messageOf(error as Error))
    }
  }

  /** A broker is not silent whose bytes wait here. */
  tick(nowMs: number): void {
    if (this.#isBehind()) this.#speaker?.push(NOTHING)
    this.#speaker?.tick(nowMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#clock.clear(this.#timer)
    const socket = this.#socket
    if (socket === undefined) return
    // It may be gone already, with bytes that were not taken yet.
    const closed = socket.closed || new Promise((resolve) => socket.once('close', resolve))
    if (this.#speaker === undefined) socket.destroy()
    else this.#end('the server ends')
    await closed
  }

  #open(socket: Socket, event: 'connect' | 'secureConnect'): void {
    this.#socket = socket
    let reason = 'the broker closed the connection'
    const timer = this.#clock.setTimeout(() => {
      socket.destroy(new Error(`no connection within ${CONNECT_MS / 1000} s`))
    }, CONNECT_MS)
    this.#timer = timer
    socket.on('error', (error) => {
      reason = messageOf(error)
    })
    const before = (): void => this.#lost(reason)
    socket.once('close', before)
    socket.once(event, () => {
      this.#clock.clear(timer)
      socket.off('close', before)
      const speaker = this.#party.open(this.#wire(socket))
      this.#speaker = speaker
      const end = (): void => {
        if (this.#speaker === speaker) this.#end(reason)
      }
      let waiting = 0
      this.#isBehind = () => waiting > 0
      const push = (bytes: Uint8Array): void => {
        waiting -= bytes.length
        speaker.push(bytes)
      }
      const feed = this.#party.feed?.({ push, end }, socket) ?? { push, end }
      socket.on('data', (chunk: Uint8Array) => {
        waiting += chunk.length
        feed.push(chunk)
      })
      // What came before the end counts: the rest is taken.
      socket.once('close', () => feed.end())
    })
  }

  #wire(socket: Socket): Wire {
    const { name, user, virtualHost } = this.#table
    const session = `${this.#party.session}-${++this.#connections}`
    const write = (bytes: Uint8Array): void => {
      if (!socket.writable) return
      socket.write(bytes)
      if (socket.writableLength > MAX_UNSENT_BYTES)
        socket.destroy(new Error('the broker does not read what it is sent'))
    }
    const login = user === undefined ? {} : { user, password: this.#password ?? '' }
    return {
      session,
      connect: (events) => {
        return new AmqpClient({ ...login, virtualHost, session, maxBodyBytes: MAX_BODY_BYTES, write, events })
      },
      ready: () => {
        this.#readyMs = this.#clock.monotonicMs()
        this.#log.info({ broker: name }, this.#party.said.ready)
      },
      down: (reason) => this.#lost(this.#reason ?? reason),
    }
  }

  #end(reason: string): void {
    this.#reason = reason
    this.#speaker?.end()
  }

  /** The connection is over, or could not be made: another one, later. */
  #lost(reason: string): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#speaker = undefined
    this.#reason = undefined
    this.#isBehind = () => false
    this.#clock.clear(this.#timer)
    if (socket !== undefined) this.#close(socket)
    const detail = this.#said(reason)
    if (this.#readyMs !== undefined && this.#clock.monotonicMs() - this.#readyMs >= STEADY_MS) this.#failures = 0
    this.#readyMs = undefined
    const waitMs = Math.min(FIRST_MS * 2 ** Math.min(this.#failures, 16), LONGEST_MS) * (1 - this.#random() / 2)
    this.#party.down(detail)
    if (this.#isClosed) return
    const level = this.#failures === 0 ? 'warn' : 'debug'
    this.#log[level]({ broker: this.#table.name, detail }, this.#party.said.lost)
    this.#failures++
    this.#timer = this.#clock.setTimeout(() => void this.connect(), waitMs)
  }

  /** What was written last goes out, if the broker takes it. */
  #close(socket: Socket): void {
    if (socket.closed) return
    const timer = this.#clock.setTimeout(() => socket.destroy(), GOODBYE_MS)
    socket.once('close', () => this.#clock.clear(timer))
    socket.resume()
    socket.destroySoon()
  }

  /** A broker may repeat what it was told. */
  #said(reason: string): string {
    return forPeople(reason, this.#password)
      .replaceAll(/\p{Cc}+/gu, ' ')
      .toWellFormed()
  }
}

/** A name with several addresses (localhost) fails with an error for each of them and no words of its own. */
function messageOf(error: Error): string {
  const all: readonly Error[] = error instanceof AggregateError ? error.errors : [error]
  return all.map(({ message }) => message).join(', ')
}

/** Without the end of its line. Rejects in words, with the path. */
async function passwordIn(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    throw new Error(`the password file cannot be read: ${(error as Error).message}`)
  }
}
