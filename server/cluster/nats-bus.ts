/**
 * The bus of a cluster over core NATS: one subject, nothing stored. It has a small connection of its own, so that what it says does
 * not wait for the records of the log.
 */
import type { NatsConnection } from '@nats-io/transport-node'
import { TO_NATS } from '../../protocol/kept/backoff.ts'
import { type ConnectionAttempt, KeptConnection } from '../../protocol/kept/kept-connection.ts'
import type { NatsOptions } from '../../storage/replicated/options.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { Bus } from './alive.ts'

export interface NatsBusOptions {
  /** The name of the cluster, and of this node. */
  readonly cluster: string
  readonly node: string
  readonly nats: NatsOptions
  readonly clock: Pick<Clock, 'setTimeout' | 'monotonicMs'>
  readonly log: Logger
}

export class NatsBus implements Bus {
  readonly #options: NatsBusOptions
  readonly #subject: string
  #connection: NatsConnection | undefined
  /** Whether that connection is there just now: while it is not, the client of NATS would keep what is published. */
  #isConnected = false
  #isClosed = false
  #kept: KeptConnection | undefined
  /** Why the nats-servers cannot be used, as the log has it. */
  #problem: string | undefined
  #hasWarned = false

  constructor(options: NatsBusOptions) {
    this.#options = options
    this.#subject = `cin.${options.cluster}.alive`
  }

  open(receive: (bytes: Uint8Array) => void): void {
    this.#kept = new KeptConnection({
      clock: this.#options.clock,
      intervals: TO_NATS,
      run: (attempt) => this.#connect(attempt, receive),
      changed: (state) => {
        if (state.is === 'connected') this.#report(undefined)
        if (state.is === 'waiting') this.#report(state.lost.message)
      },
    })
    this.#kept.start()
  }

  publish(bytes: Uint8Array): void {
    if (this.#isConnected) this.#connection?.publish(this.#subject, bytes)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const stopped = this.#kept?.stop(new Error('this node leaves'))
    const connection = this.#connection
    // What was published last says that this node leaves.
    if (this.#isConnected) await connection?.flush().catch(() => {})
    await connection?.close()
    await stopped
  }

  /** Resolves when the client of NATS has given the connection up, or it was closed. */
  async #connect({ signal, connected }: ConnectionAttempt, receive: (bytes: Uint8Array) => void): Promise<Error> {
    const { cluster, node, nats } = this.#options
    // Only here, so that nothing of NATS is loaded by a server that is alone.
    const { connectNats, knownFault } = await import('../../storage/replicated/nats.ts')
    const connection = await connectNats(nats, `cinnabar ${cluster} ${node} alive`)
    if (signal.aborted) {
      await connection.close()
      throw signal.reason
    }
    this.#warn(knownFault(connection.info?.version ?? ''))
    this.#connection = connection
    this.#isConnected = true
    connected()
    connection.subscribe(this.#subject, {
      callback: (error, message) => {
        if (error === null && !this.#isClosed) receive(message.data)
        else if (error !== null) this.#report(error.message)
      },
    })
    void this.#watch(connection)
    const reason = await connection.closed()
    this.#isConnected = false
    this.#connection = undefined
    return reason ?? new Error('the connection was closed')
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') {
        this.#isConnected = false
        this.#report('the connection was lost')
      } else if (status.type === 'reconnect') {
        this.#isConnected = true
        this.#report(undefined)
      } else if (status.type === 'error') this.#report(status.error.message)
    }
  }

  /** Once, of the server that is reached first: all of them should be of one version. */
  #warn(fault: string | undefined): void {
    if (fault === undefined || this.#hasWarned) return
    this.#hasWarned = true
    this.#options.log.warn(fault)
  }

  #report(problem: string | undefined): void {
    if (problem === this.#problem || this.#isClosed) return
    this.#problem = problem
    const { log, nats } = this.#options
    if (problem === undefined) log.info({ servers: nats.servers }, 'the nats-servers are reached again')
    else log.warn({ servers: nats.servers }, `the nats-servers cannot be used: ${problem}`)
  }
}
