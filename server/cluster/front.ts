/**
 * The front of a node that follows: it listens where the node that leads listens for consumers, and passes each connection on to
 * that node, bytes untouched. A consumer therefore may connect to any node, and is not told which one leads. While none is
 * known, or it cannot be reached, connections wait unread; so an attempt to pass one on can be repeated.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { isLoopback } from '../../auth/network.ts'
import type { ListenerName } from '../edge/passed-on.ts'
import { type Address, formatAddress } from '../kernel/core/address.ts'
import type { Clock, Timer } from '../kernel/core/clock.ts'
import { bindTcp } from '../kernel/core/listen.ts'
import type { RareWarnings } from '../kernel/core/rare-warnings.ts'
import { isSameLeader, type Leader, type Leadership } from './leadership.ts'
import type { NodeCertificates } from './node-certificates.ts'
import { dialNode, NODE_SOCKET_OPTIONS, passingHeader, TAKEN } from './node-stream.ts'
import { PassedConnection } from './passed-connection.ts'

/** How long a consumer's connection waits for a node that takes it; a login has as long, and begins there. */
const HOLD_MS = 10_000
/** An attempt to connect to the node that leads, until it has taken the connection. */
const ATTEMPT_MS = 3_000
/** Attempts at the same time: handshakes of TLS would be too much work if all consumers of a node come at once. */
const MAX_ATTEMPTS = 64
/** After an attempt that failed, unless another node leads by then. */
const PAUSE_MS = 250

/**
 * `passed`: connections that went on to the node that leads; `expired`: those for which no node was found in time; `refused`: those
 * for which there was no room; `failed`: attempts to pass one on.
 */
export interface FrontCounters {
  passed: number
  expired: number
  refused: number
  failed: number
}

export interface FrontOptions {
  /** Where to listen; a listener without an address is not opened. */
  readonly listen: { readonly [N in ListenerName]: Address | undefined }
  readonly leadership: Leadership
  /** The address of this node that it connects from, as others take it for a node by that; undefined: whichever fits. */
  readonly from: string | undefined
  /** Undefined only if all nodes are on this machine. */
  readonly certificates: NodeCertificates | undefined
  /** Connections that may be open, and those of them that may wait. Each that is passed on takes two of the process's files. */
  readonly limits: { readonly connections: number; readonly held: number }
  /** They go on counting from what they are. */
  readonly counters: FrontCounters
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly warnings: RareWarnings
}

/** A consumer's connection that waits. */
interface Held {
  readonly consumer: Socket
  readonly listener: ListenerName
  /** Whether that is bound to loopback. */
  readonly isOfLoopback: boolean
  readonly end: Timer
}

/** An attempt to pass a connection on. */
interface Attempt {
  readonly held: Held
  readonly socket: Socket
}

export class Front {
  readonly #options: FrontOptions
  readonly #servers: Server[] = []
  readonly #stopFollowing: () => void
  /** Those without an attempt under way. */
  readonly #held = new Set<Held>()
  readonly #attempts = new Set<Attempt>()
  readonly #passed = new Set<PassedConnection>()
  #leader: Leader | undefined
  #pause: Timer | undefined
  #isClosed = false
  readonly counters: FrontCounters

  constructor(options: FrontOptions) {
    this.#options = options
    const { leadership, counters } = options
    this.counters = counters
    this.#leader = leadership.leader
    this.#stopFollowing = leadership.onChange(() => this.#follow(leadership.leader))
  }

  /** Connections that wait. */
  get held(): number {
    return this.#held.size + this.#attempts.size
  }

  /** Connections that are passed on now. */
  get passing(): number {
    return this.#passed.size
  }

  /** Opens the listeners, and resolves to the addresses that were bound. Rejects with ListenError; then nothing is open. */
  async open(): Promise<FrontOptions['listen']> {
    const bound = { tcp: undefined, tls: undefined, http: undefined, https: undefined } as {
      [N in ListenerName]: Address | undefined
    }
    try {
      for (const name of Object.keys(bound) as ListenerName[]) {
        const address = this.#options.listen[name]
        if (address !== undefined) bound[name] = await this.#listen(name, address)
      }
    } catch (error) {
      await this.close()
      throw error
    }
    return bound
  }

  /**
   * Frees the addresses, because this node is about to lead, and listens to nobody: connections that wait go on waiting, for
   * `passTo`. Connections that are passed on stay with the last node, which may lead still.
   */
  retire(): void {
    this.#stopFollowing()
    this.#follow(undefined)
    for (const server of this.#servers) server.close()
  }

  /** From now on this node leads, or none; for a front that has retired. */
  passTo(leader: Leader | undefined): void {
    this.#follow(leader)
  }

  /** Ends all connections, and resolves when the addresses are free. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopFollowing()
    this.#options.clock.clear(this.#pause)
    for (const attempt of this.#attempts) this.#abandon(attempt)
    for (const held of this.#held) this.#end(held)
    for (const connection of this.#passed) connection.destroy()
    // After it has retired, a server says that it is closed already.
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }

  async #listen(name: ListenerName, address: Address): Promise<Address> {
    const server = createServer({ ...NODE_SOCKET_OPTIONS, pauseOnConnect: true })
    const bound = await bindTcp(server, address, `listen.${name}`)
    const isOfLoopback = isLoopback(bound.host)
    server.on('connection', (socket) => this.#arrived(socket, name, isOfLoopback))
    this.#servers.push(server)
    return bound
  }

  #arrived(consumer: Socket, listener: ListenerName, isOfLoopback: boolean): void {
    const { clock, limits } = this.#options
    consumer.on('error', () => consumer.destroy())
    const isFull = this.held >= limits.held || this.held + this.#passed.size >= limits.connections
    if (this.#isClosed || isFull) {
      if (isFull) this.counters.refused++
      consumer.destroy()
      return
    }
    const end = clock.setTimeout(() => this.#expired(held), HOLD_MS)
    const held: Held = { consumer, listener, isOfLoopback, end }
    this.#held.add(held)
    this.#advance()
  }

  #expired(held: Held): void {
    this.counters.expired++
    for (const attempt of this.#attempts) if (attempt.held === held) this.#abandon(attempt)
    this.#end(held)
  }

  #end(held: Held): void {
    this.#options.clock.clear(held.end)
    this.#held.delete(held)
    held.consumer.destroy()
  }

  /** Another node leads, or none is known. Without one, connections stay with the last: it may lead still. */
  #follow(leader: Leader | undefined): void {
    if (isSameLeader(leader, this.#leader)) return
    this.#leader = leader
    for (const attempt of this.#attempts) this.#abandon(attempt)
    if (leader !== undefined) {
      for (const connection of this.#passed) if (!isSameLeader(connection.leader, leader)) connection.destroy()
    }
    this.#options.clock.clear(this.#pause)
    this.#pause = undefined
    this.#advance()
  }

  /** Begins attempts for those that wait, as many as may be under way. */
  #advance(): void {
    const leader = this.#leader
    if (leader === undefined || this.#pause !== undefined) return
    for (const held of this.#held) {
      if (this.#attempts.size >= MAX_ATTEMPTS) return
      this.#attempt(held, leader)
    }
  }

  #attempt(held: Held, leader: Leader): void {
    const { clock } = this.#options
    this.#held.delete(held)
    const [socket, connected] = dialNode(leader, this.#options)
    const attempt = { held, socket }
    this.#attempts.add(attempt)
    let reason = `it did not take the connection within ${ATTEMPT_MS / 1000} s`
    const fail = (why: string): void => {
      reason = why
      socket.destroy()
    }
    const late = clock.setTimeout(() => socket.destroy(), ATTEMPT_MS)
    socket.on('error', ({ message }) => fail(message))
    const closed = (): void => {
      clock.clear(late)
      // Otherwise it was abandoned.
      if (this.#attempts.has(attempt)) this.#failed(attempt, leader, reason)
    }
    const ended = (): void => fail('it did not take the connection: it may not lead, or not accept this node')
    const read = (): void => {
      const answer: Buffer | null = socket.read(1)
      if (answer === null) return
      if (answer[0] === TAKEN) taken()
      else fail('it does not answer as a node does')
    }
    const taken = (): void => {
      clock.clear(late)
      socket.off('close', closed).off('end', ended).off('readable', read)
      this.#attempts.delete(attempt)
      this.#pass(held, socket, leader)
      this.#advance()
    }
    socket.once('close', closed)
    socket.once(connected, () => {
      const header = passingHeader(held.consumer, held.listener, held.isOfLoopback)
      if (header === undefined) {
        this.#endWith(attempt)
        return
      }
      socket.write(header)
      if (leader.isSilent) taken()
      else socket.on('readable', read).once('end', ended)
    })
  }

  /** The consumer of an attempt has gone meanwhile. */
  #endWith(attempt: Attempt): void {
    this.#abandon(attempt)
    this.#end(attempt.held)
    this.#advance()
  }

  /** Ends an attempt; its connection waits for another one. */
  #abandon(attempt: Attempt): void {
    this.#attempts.delete(attempt)
    this.#held.add(attempt.held)
    attempt.socket.destroy()
  }

  #failed(attempt: Attempt, { name, address }: Leader, reason: string): void {
    this.counters.failed++
    this.#options.warnings.warn('the node that leads cannot be reached', {
      node: name,
      address: formatAddress(address),
      reason,
    })
    this.#abandon(attempt)
    this.#pause ??= this.#options.clock.setTimeout(() => this.#resume(), PAUSE_MS)
  }

  #resume(): void {
    this.#pause = undefined
    this.#advance()
  }

  #pass({ consumer, end }: Held, socket: Socket, leader: Leader): void {
    this.#options.clock.clear(end)
    if (consumer.destroyed) {
      socket.destroy()
      return
    }
    this.counters.passed++
    const connection = new PassedConnection({ consumer, socket, leader, clock: this.#options.clock })
    this.#passed.add(connection)
    connection.onEnd(() => this.#passed.delete(connection))
  }
}
