/**
 * Connections to Qpid brokers: each broker of the configuration has one, made again whenever it is lost. A newcomer would
 * read what a broker sends as it comes: here it waits as any feed does, for storage and for the tenant's quota. What a
 * broker says is shown to people only without its password.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AmqpClient } from '../../protocol/qmf/amqp/client.ts'
import { forPeople } from '../../protocol/qmf/amqp/reasons.ts'
import type { Clock, Timer } from '../clock.ts'
import { formatBroker } from '../config/broker-url.ts'
import type { QmfTable } from '../config.ts'
import type { Logger } from '../log.ts'
import type { QmfBroker } from '../sensors/qmf/broker.ts'
import { Console, type ConsoleEvents } from '../sensors/qmf/console.ts'
import { consoleLimits } from '../sensors/qmf/console-options.ts'
import { SchemaCache } from '../sensors/qmf/schemas.ts'
import type { QmfSensor } from '../sensors/qmf/sensor.ts'
import type { Pacer } from './pacer.ts'
import { type PacingOptions, pacersOf } from './pacers.ts'

const TICK_MS = 1_000
/** Until a connection is there; AMQP has its own time behind it. */
const CONNECT_MS = 10_000
const GOODBYE_MS = 1_000
const FIRST_MS = 1_000
const LONGEST_MS = 60_000
/** What waits for a broker that does not read. */
const MAX_UNSENT_BYTES = 1 << 20
const MAX_BODY_BYTES = 1 << 20
/** An idle dead peer is noticed in about 25 s [MON 15]. */
const KEEP_ALIVE_MS = 15_000

export interface QmfConnecting extends PacingOptions {
  readonly clock: Clock
  readonly log: Logger
  /** 0..1 */
  readonly random?: () => number
}

/** Begins at once; `sensors`: of each tenant that has brokers. */
export function connectQmf(
  sensors: readonly QmfSensor[],
  tables: readonly QmfTable[],
  options: QmfConnecting,
): { close(): Promise<void> } {
  const pacerOf = pacersOf(sensors, options)
  const links = tables.flatMap((table) => {
    const sensor = sensors.find(({ owner }) => owner.tenant === table.tenant)
    return sensor === undefined ? [] : [new BrokerLink(table, sensor, pacerOf(sensor), options)]
  })
  for (const link of links) void link.connect()
  const { clock } = options
  const ticking = clock.setInterval(() => {
    for (const link of links) link.tick(clock.monotonicMs())
  }, TICK_MS)
  return {
    async close() {
      clock.clear(ticking)
      await Promise.all(links.map((link) => link.close()))
    },
  }
}

class BrokerLink {
  readonly #table: QmfTable
  readonly #sensor: QmfSensor
  readonly #broker: QmfBroker
  readonly #pacer: Pacer
  readonly #clock: Clock
  readonly #log: Logger
  readonly #random: () => number
  readonly #cache = new SchemaCache()
  /** In a row. */
  #failures = 0
  #password: string | undefined
  #socket: Socket | undefined
  #console: Console | undefined
  /** Why the console is ended, where it cannot know. */
  #reason: string | undefined
  /** Until the next attempt, or for the one under way. */
  #timer: Timer | undefined
  #isClosed = false

  constructor(table: QmfTable, sensor: QmfSensor, pacer: Pacer, { clock, log, random = Math.random }: QmfConnecting) {
    this.#table = table
    this.#sensor = sensor
    this.#broker = sensor.broker(table.name) as QmfBroker
    this.#pacer = pacer
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
      this.#lost((error as Error).message)
    }
  }

  tick(nowMs: number): void {
    this.#console?.tick(nowMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#clock.clear(this.#timer)
    const socket = this.#socket
    if (socket === undefined) return
    const closed = new Promise((resolve) => socket.once('close', resolve))
    if (this.#console === undefined) socket.destroy()
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
      reason = error.message
    })
    const before = (): void => this.#lost(reason)
    socket.once('close', before)
    socket.once(event, () => {
      this.#clock.clear(timer)
      socket.off('close', before)
      const console = this.#newConsole(socket)
      const end = (): void => {
        if (this.#console === console) this.#end(reason)
      }
      const feed = this.#pacer.feed({ push: (bytes) => console.push(bytes), end }, socket)
      socket.on('data', (chunk: Uint8Array) => feed.push(chunk))
      // What came before the end counts: the rest is taken.
      socket.once('close', () => feed.end())
    })
  }

  #newConsole(socket: Socket): Console {
    const { user, virtualHost, intervalMs, maxObjects } = this.#table
    const session = `cinnabar-${randomUUID()}`
    const write = (bytes: Uint8Array): void => {
      if (!socket.writable) return
      socket.write(bytes)
      if (socket.writableLength > MAX_UNSENT_BYTES)
        socket.destroy(new Error('the broker does not read what it is sent'))
    }
    const login = user === undefined ? {} : { user, password: this.#password ?? '' }
    this.#sensor.counters.connections++
    this.#broker.detail = `connected to ${formatBroker(this.#table)}, learning what there is`
    const console = new Console({
      session,
      intervalMs,
      cache: this.#cache,
      limits: { ...consoleLimits, objects: maxObjects },
      counters: this.#sensor.counters,
      clock: this.#clock,
      events: this.#events(),
      connect: (events) => {
        return new AmqpClient({ ...login, virtualHost, session, maxBodyBytes: MAX_BODY_BYTES, write, events })
      },
    })
    this.#console = console
    this.#broker.connected(console)
    return console
  }

  #events(): ConsoleEvents {
    const broker = this.#broker
    return {
      learned: (schema) => broker.learned(schema),
      ready: () => {
        this.#failures = 0
        broker.detail = `connected to ${formatBroker(this.#table)}`
        this.#log.info({ broker: broker.name }, 'a broker is connected')
        broker.ready()
      },
      object: (agent, sample) => broker.object(agent, sample),
      gone: (id) => broker.gone(id),
      event: (key, event) => broker.event(key, event),
      heartbeat: (time) => broker.heartbeat(time),
      down: (reason) => this.#lost(this.#reason ?? reason),
    }
  }

  #end(reason: string): void {
    this.#reason = reason
    this.#console?.end()
  }

  /** The connection is over, or could not be made: another one, later. */
  #lost(reason: string): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#console = undefined
    this.#reason = undefined
    this.#clock.clear(this.#timer)
    if (socket !== undefined) this.#close(socket)
    const said = this.#said(reason)
    const waitMs = Math.min(FIRST_MS * 2 ** Math.min(this.#failures, 16), LONGEST_MS) * (1 - this.#random() / 2)
    this.#broker.down(`waiting, ${said}`)
    if (this.#isClosed) return
    const level = this.#failures === 0 ? 'warn' : 'debug'
    this.#log[level]({ broker: this.#broker.name, detail: said }, 'a broker is not connected')
    this.#failures++
    this.#timer = this.#clock.setTimeout(() => void this.connect(), waitMs)
  }

  /** What was written last goes out, if the broker takes it. */
  #close(socket: Socket): void {
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

/** Without the end of its line. Rejects in words, with the path. */
async function passwordIn(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    throw new Error(`the password file cannot be read: ${(error as Error).message}`)
  }
}
