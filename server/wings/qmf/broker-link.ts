/**
 * A connection to a Qpid broker, made again whenever it is lost. A factory makes a handler for each connection: a
 * console or an agent. Texts of the broker are shown to people without its password.
 */
import { readFile } from 'node:fs/promises'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AmqpClient, type AmqpEvents, redactReason } from '../../../protocol/amqp/client.ts'
import type { FieldTable } from '../../../protocol/amqp/field-table.ts'
import { TO_PEER } from '../../../protocol/kept/backoff.ts'
import { type ConnectionAttempt, KeptConnection } from '../../../protocol/kept/kept-connection.ts'
import type { PausableReader, StreamTaker } from '../../kit/io/pacer.ts'
import type { Poll } from '../../kit/poll.ts'
import { type Clock, guarded, type Logger } from '../../kit/running.ts'
import type { QmfTable } from './config.ts'

/** The limit for making a connection; afterwards AMQP has its own. */
const CONNECT_MS = 10_000
const GOODBYE_MS = 1_000
/** The limit for bytes that a broker has not read. */
const MAX_UNSENT_BYTES = 1 << 20
const MAX_BODY_BYTES = 1 << 20
/** An idle dead peer is noticed in about 25 s [MON 15]. */
const KEEP_ALIVE_MS = 15_000
const UNEXPECTED = 'an unexpected error in the server; see its log'
const NOTHING: Uint8Array = new Uint8Array(0)

/** Handles the bytes of one connection. It reports the end by `down`, once. */
export interface BrokerHandler {
  push(bytes: Uint8Array): void
  /** Does a step of what was pushed, if that is not done at once. Returns whether more is left. */
  work?(): boolean
  /** Called every second with the monotonic time. */
  tick(nowMs: number): void
  /** Closes the connection in order. */
  end(): void
}

/** What TLS needs of the authorities and of this client, as far as it is configured. */
type TlsFiles = Partial<Record<'ca' | 'cert' | 'key', Buffer>>

/** A connection that was made. */
export interface BrokerConnection {
  /** A unique name for its AMQP session. */
  readonly session: string
  connect(events: AmqpEvents): AmqpClient
  /** The connection works: if it is lost after a while, the next attempt comes soon. */
  ready(): void
  /** `isProgress`: the next connection will get further, and is made soon. */
  down(reason: string, isProgress?: boolean): void
}

/** Makes the handlers of connections, and outlives them. */
export interface BrokerHandlerFactory {
  /** Log messages, shown with the name of the broker. */
  readonly messages: { readonly ready: string; readonly lost: string }
  /** The names of its AMQP sessions without their number. No two sessions at a broker may have the same name. */
  readonly session: string
  open(connection: BrokerConnection): BrokerHandler
  /** Wraps the handler, for example to slow down the reading. */
  readonly feed?: (handler: StreamTaker, reading: PausableReader) => Pick<StreamTaker, 'push' | 'end'>
  /** The connection was lost, or could not be made. */
  down(reason: string): void
}

export interface BrokerLinkOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly faults: { readonly report: Poll['failed'] }
  /** `<product>/<version>`, as the broker shows it. */
  readonly software: string
  /** 0..1 */
  readonly random?: () => number
}

export class BrokerLink {
  readonly #table: QmfTable
  readonly #factory: BrokerHandlerFactory
  readonly #clock: Clock
  readonly #faults: BrokerLinkOptions['faults']
  readonly #software: string
  readonly #kept: KeptConnection
  /** Connections made so far. */
  #connections = 0
  #password: string | undefined
  #socket: Socket | undefined
  #handler: BrokerHandler | undefined
  /** Whether bytes have arrived that the handler has not received yet. */
  #isBehind = (): boolean => false
  /** The reason for ending the handler, which it cannot know itself. */
  #reason: string | undefined
  /** Ends the current attempt, with the reason for people. */
  #ended: (reason: Error) => void = () => {}

  constructor(
    table: QmfTable,
    factory: BrokerHandlerFactory,
    { clock, log, faults, software, random }: BrokerLinkOptions,
  ) {
    this.#table = table
    this.#factory = factory
    this.#clock = clock
    this.#faults = faults
    this.#software = software
    this.#kept = new KeptConnection({
      clock,
      intervals: TO_PEER,
      random,
      run: (attempt) => this.#run(attempt),
      changed: (state) => {
        if (state.is === 'connected') log.info({ broker: table.name }, factory.messages.ready)
        if (state.is !== 'waiting') return
        const level = state.failures === 1 ? 'warn' : 'debug'
        log[level]({ broker: table.name, detail: state.lost.message }, factory.messages.lost)
      },
    })
  }

  connect(): void {
    this.#kept.start()
  }

  /** One connection, from the attempt to its end. */
  async #run(attempt: ConnectionAttempt): Promise<Error> {
    const ended = new Promise<Error>((resolve) => {
      this.#ended = resolve
    })
    attempt.signal.addEventListener('abort', () => this.#abort(attempt.signal.reason))
    try {
      const { passwordFile, password } = this.#table
      this.#password = passwordFile === undefined ? password : await readPassword(passwordFile)
      const files = await this.#tlsFiles()
      attempt.signal.throwIfAborted()
      this.#open(attempt, files)
    } catch (error) {
      if (attempt.signal.aborted) throw error
      this.#lost(messageOf(error as Error))
    }
    return ended
  }

  async #tlsFiles(): Promise<TlsFiles> {
    const { ca, cert, key } = this.#table
    const paths = Object.entries({ ca, cert, key }).filter(([, path]) => path !== undefined)
    return Object.fromEntries(
      await Promise.all(paths.map(async ([name, path]) => [name, await readFile(path as string)])),
    )
  }

  /** A broker is not silent while bytes of it wait here. */
  readonly tick = guarded(
    (nowMs: number) => {
      if (this.#isBehind()) this.#handler?.push(NOTHING)
      this.#handler?.tick(nowMs)
    },
    (error) => this.#failed(error),
  )

  /** Something of this connection has thrown: it is made again. */
  #failed(error: unknown, socket = this.#socket): void {
    this.#faults.report({ family: 'qmf.', owner: { tenant: this.#table.tenant } }, error)
    if (socket === this.#socket) this.#lost(UNEXPECTED)
  }

  async close(): Promise<void> {
    const socket = this.#socket
    // It may be closed already, with bytes that were not handled yet.
    const closed = socket && !socket.closed && new Promise((resolve) => socket.once('close', resolve))
    await this.#kept.stop(new Error('the server ends'))
    await closed
  }

  #abort({ message }: Error): void {
    if (this.#handler === undefined) this.#socket?.destroy()
    else this.#end(message)
  }

  #open(attempt: ConnectionAttempt, files: TlsFiles): void {
    const { host, port, isTls } = this.#table
    const to = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }
    const socket = isTls
      ? connectTls({
          ...to,
          ...files,
          ...(isIP(host) === 0 && { servername: host }),
          // Otherwise an environment variable could switch it off.
          rejectUnauthorized: true,
          minVersion: 'TLSv1.2',
        })
      : connect(to)
    this.#socket = socket
    let reason = 'the broker closed the connection'
    const timer = this.#clock.setTimeout(() => {
      socket.destroy(new Error(`no connection within ${CONNECT_MS / 1000} s`))
    }, CONNECT_MS)
    socket.on('error', (error) => {
      reason = messageOf(error)
    })
    const before = (): void => {
      this.#clock.clear(timer)
      this.#lost(reason)
    }
    socket.once('close', before)
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      this.#clock.clear(timer)
      socket.off('close', before)
      const handler = this.#factory.open(this.#connection(socket, attempt))
      this.#handler = handler
      const end = (): void => {
        if (this.#handler === handler) this.#end(reason)
      }
      let waiting = 0
      this.#isBehind = () => waiting > 0
      const push = (bytes: Uint8Array): void => {
        waiting -= bytes.length
        if (this.#handler === handler) handler.push(bytes)
      }
      const reading = {
        pause: () => socket.pause(),
        resume: () => socket.resume(),
        destroy: () => {
          if (this.#socket === socket) this.#lost(UNEXPECTED)
        },
      }
      const work = (): boolean => this.#handler === handler && handler.work?.() === true
      const feed = this.#factory.feed?.({ push, work, end }, reading) ?? { push, end }
      const failed = (error: unknown): void => this.#failed(error, socket)
      const arrived = (chunk: Uint8Array): void => {
        waiting += chunk.length
        feed.push(chunk)
      }
      socket.on('data', guarded(arrived, failed))
      // Everything that came before the end is still handled.
      socket.once(
        'close',
        guarded(() => feed.end(), failed),
      )
    })
  }

  #connection(socket: Socket, attempt: ConnectionAttempt): BrokerConnection {
    const { user, cert, virtualHost } = this.#table
    const session = `${this.#factory.session}-${++this.#connections}`
    const write = (bytes: Uint8Array): void => {
      if (!socket.writable) return
      socket.write(bytes)
      if (socket.writableLength > MAX_UNSENT_BYTES) socket.destroy(new Error('the broker does not read'))
    }
    const login = user === undefined ? { hasCertificate: cert !== undefined } : { user, password: this.#password ?? '' }
    const options = { ...login, virtualHost, session, properties: clientProperties(this.#software) }
    return {
      session,
      connect: (events) => new AmqpClient({ ...options, maxBodyBytes: MAX_BODY_BYTES, write, events }),
      ready: () => attempt.connected(),
      down: (reason, isProgress) => {
        if (isProgress) attempt.progressed()
        this.#lost(this.#reason ?? reason)
      },
    }
  }

  #end(reason: string): void {
    this.#reason = reason
    this.#handler?.end()
  }

  /** The connection has ended, or could not be made; another attempt follows later. */
  #lost(reason: string): void {
    const socket = this.#socket
    this.#socket = undefined
    this.#handler = undefined
    this.#reason = undefined
    this.#isBehind = () => false
    if (socket !== undefined) this.#close(socket)
    const detail = this.#shown(reason)
    this.#factory.down(detail)
    this.#ended(new Error(detail))
  }

  /** Lets the last bytes go out, if the broker takes them. */
  #close(socket: Socket): void {
    if (socket.closed) return
    const timer = this.#clock.setTimeout(() => socket.destroy(), GOODBYE_MS)
    socket.once('close', () => this.#clock.clear(timer))
    socket.resume()
    socket.destroySoon()
  }

  /** A broker may repeat the password, or send anything. */
  #shown(reason: string): string {
    return redactReason(reason, this.#password)
      .replaceAll(/\p{Cc}+/gu, ' ')
      .toWellFormed()
  }
}

/** What `qpid-stat -c` and the event clientConnect show about a connection. */
function clientProperties(software: string): FieldTable {
  const [product = '', version = ''] = software.split('/')
  return new Map<string, string | number>([
    ['product', product],
    ['version', version],
    ['platform', process.platform],
    ['qpid.client_process', product],
    ['qpid.client_pid', process.pid],
  ])
}

/** A name with several addresses (localhost) fails with one error for each of them and no message of its own. */
function messageOf(error: Error): string {
  const all: readonly Error[] = error instanceof AggregateError ? error.errors : [error]
  return all.map(({ message }) => message).join(', ')
}

/** Drops the end of the line. */
async function readPassword(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    throw new Error(`the password file cannot be read: ${(error as Error).message}`)
  }
}
