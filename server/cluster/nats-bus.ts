/**
 * The bus of a cluster over core NATS: one subject, nothing stored. It has a small connection of its own, so that what it says does
 * not wait for the records of the log.
 */
import type { NatsConnection } from '@nats-io/transport-node'
import type { NatsOptions } from '../../storage/replicated/nats.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { Bus } from './alive.ts'

/** The time between two attempts to connect for the first time. */
const RETRY_MS = 250

export interface NatsBusOptions {
  /** The name of the cluster, and of this node. */
  readonly cluster: string
  readonly node: string
  readonly nats: NatsOptions
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly log: Logger
}

export class NatsBus implements Bus {
  readonly #options: NatsBusOptions
  readonly #subject: string
  #connection: NatsConnection | undefined
  /** Whether that connection is there just now: while it is not, the client of NATS would keep what is published. */
  #isConnected = false
  #isClosed = false
  #running: Promise<void> = Promise.resolve()
  #endPause: () => void = () => {}
  /** Why the nats-servers cannot be used, as the log has it. */
  #problem: string | undefined
  #hasWarned = false

  constructor(options: NatsBusOptions) {
    this.#options = options
    this.#subject = `cin.${options.cluster}.alive`
  }

  open(receive: (bytes: Uint8Array) => void): void {
    this.#running = this.#run(receive)
  }

  publish(bytes: Uint8Array): void {
    if (this.#isConnected) this.#connection?.publish(this.#subject, bytes)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#endPause()
    const connection = this.#connection
    // What was published last says that this node leaves.
    if (this.#isConnected) await connection?.flush().catch(() => {})
    await connection?.close()
    await this.#running
  }

  /** Connects, and again if the client of NATS should give up. */
  async #run(receive: (bytes: Uint8Array) => void): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#connect(receive)
      } catch (error) {
        this.#report(error instanceof Error ? error.message : String(error))
      }
      await this.#pause()
    }
  }

  /** Resolves when the connection has ended for good. */
  async #connect(receive: (bytes: Uint8Array) => void): Promise<void> {
    const { cluster, node, nats } = this.#options
    // Only here, so that nothing of NATS is loaded by a server that is alone.
    const { connectNats, knownFault } = await import('../../storage/replicated/nats.ts')
    const connection = await connectNats(nats, `cinnabar ${cluster} ${node} alive`)
    if (this.#isClosed) return connection.close()
    this.#warn(knownFault(connection.info?.version ?? ''))
    this.#connection = connection
    this.#isConnected = true
    this.#report(undefined)
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
    if (reason instanceof Error) throw reason
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

  #pause(): Promise<void> {
    const { clock } = this.#options
    if (this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = clock.setTimeout(resolve, RETRY_MS)
      this.#endPause = () => {
        clock.clear(timer)
        resolve()
      }
    })
  }
}
