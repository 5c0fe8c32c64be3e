/**
 * Connections to main monitors that cannot reach this server [MON 9.13]. This server makes the connections and says who it is;
 * from then on a session is as any other: the main monitor logs in, and asks for what it wants.
 */
import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { parseIdentityOrNone } from '../../../auth/login-attempt.ts'
import type { Account } from '../../../auth/mechanism.ts'
import { TO_MAIN_MONITOR } from '../../../protocol/kept/backoff.ts'
import { type ConnectionAttempt, KeptConnection } from '../../../protocol/kept/kept-connection.ts'
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import type { Users } from '../../kernel/accounts/users.ts'
import type { AuthProvider, IncomingConnection } from '../../kernel/sessions/incoming-connection.ts'
import type { Owner, SensorStatus } from '../../kit/metrics.ts'
import type { Clock, Logger } from '../../kit/running.ts'
import { channelAuth, secretVerifier } from '../outbound/channel-auth.ts'
import { parseDestination } from '../outbound/destination.ts'
import { openConnection } from '../outbound/open-connection.ts'
import type { Resolver } from '../outbound/resolve.ts'
import type { AnnounceTable } from './config.ts'

/** A main monitor has one for channels that are durable, and one for everything else. */
const CONNECTIONS = 2
/** From resolving the name to the end of the handshake of TLS. */
const OPEN_MS = 10_000
/** Whoever answers at the address of this server could try out shorter ones. */
const MIN_SECRET_BYTES = 16

export interface AnnouncerOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly accounts: Pick<Users, 'find'>
  readonly self: ProducerName
  readonly serverSecret: Uint8Array
  readonly resolve: Resolver
  /** Takes a connection that was made. */
  readonly accept: (connection: IncomingConnection) => void
  /** 0..1 */
  readonly random: () => number
}

export class Announcer {
  readonly #options: AnnouncerOptions
  #running: Announcement[] = []

  constructor(options: AnnouncerOptions) {
    this.#options = options
  }

  /** Entries of `producer.sensors`. */
  get statuses(): readonly Announcement[] {
    return this.#running
  }

  /** Announces this server where the tables say, and nowhere else; connections of tables that are as before stay. */
  follow(tables: readonly AnnounceTable[]): void {
    const before = this.#running
    this.#running = tables.map((table) => {
      const same = before.find((one) => isDeepStrictEqual(one.table, table))
      return same ?? new Announcement(table, this.#options)
    })
    for (const one of before) if (!this.#running.includes(one)) one.stop()
    for (const one of this.#running) if (!before.includes(one)) one.start()
  }

  stop(): void {
    for (const one of this.#running) one.stop()
  }
}

class Announcement {
  readonly owner: Owner
  readonly table: AnnounceTable
  readonly #options: AnnouncerOptions
  readonly #kept: readonly KeptConnection[]
  readonly #counters = { attempts: 0, connections: 0 }
  /** Connections over which the main monitor has logged in. */
  #open = 0
  #problem = 'connecting'

  constructor(table: AnnounceTable, options: AnnouncerOptions) {
    const { clock, random } = options
    this.table = table
    this.#options = options
    this.owner = { tenant: parseIdentityOrNone(table.user)?.tenant ?? '' }
    this.#kept = Array.from(
      { length: CONNECTIONS },
      () =>
        new KeptConnection({
          clock,
          intervals: TO_MAIN_MONITOR,
          random,
          run: (attempt) => this.#connection(attempt),
          changed: (state) => {
            if (state.is === 'waiting') this.#lost(state.lost.message)
          },
        }),
    )
  }

  start(): void {
    for (const one of this.#kept) one.start()
  }

  stop(): void {
    for (const one of this.#kept) void one.stop(new Error('the server does not announce itself any more'))
  }

  status(): SensorStatus {
    const { url } = this.table
    const isUp = this.#open > 0
    return {
      name: `announce/${new URL(url).host}`,
      state: isUp ? 'ok' : 'failed',
      detail: isUp ? url : `${url}; ${this.#problem}`,
      counters: { ...this.#counters, open: this.#open },
    }
  }

  get #name(): string {
    return this.table.name === '' ? this.#options.self.name : this.table.name
  }

  #lost(problem: string): void {
    if (this.#open > 0 || this.#problem === problem) return
    this.#problem = problem
    this.#options.log.warn({ url: this.table.url, problem }, 'not announced to a main monitor')
  }

  /** One connection, from its beginning to its end. Resolves with the reason of that, and rejects if there was none. */
  async #connection(attempt: ConnectionAttempt): Promise<Error> {
    const { clock, log, resolve, accept, self } = this.#options
    const { url, ca } = this.table
    const count = this.#counters.attempts++
    const auth = await this.#auth()
    const destination = parseDestination(url)
    const addresses = destination.isAddress ? [destination.host] : await resolve(destination.host)
    const address = addresses[count % addresses.length]
    if (address === undefined) throw new Error(`${destination.host} has no address`)
    const late = new AbortController()
    const timer = clock.setTimeout(() => late.abort(new Error(`no connection after ${OPEN_MS / 1000} s`)), OPEN_MS)
    const signal = AbortSignal.any([attempt.signal, late.signal])
    const opened = await openConnection(destination, address, { clock, ca }, signal).finally(() => clock.clear(timer))
    let isLoggedIn = false
    await new Promise<void>((resolve) => {
      opened.socket.once('close', () => resolve())
      opened.handOver((connection) =>
        accept({
          ...connection,
          announced: { auth, producer: { id: self.id, name: this.#name } },
          admitted: () => {
            connection.admitted?.()
            isLoggedIn = true
            attempt.connected()
            this.#counters.connections++
            if (this.#open++ === 0) log.info({ url }, 'announced to a main monitor')
          },
        }),
      )
    })
    if (isLoggedIn) this.#open--
    if (isLoggedIn) return new Error('the main monitor has closed the connection')
    throw new Error(
      `the main monitor has closed the connection without a login: it knows no upstream ${this.#name} that announces ` +
        'itself there, or its user or secret is another one',
    )
  }

  /** Lets the user of the table log in with the secret that the file has now. Rejects with Error, without the secret. */
  async #auth(): Promise<AuthProvider> {
    const { clock, serverSecret } = this.#options
    const { user, secretFile } = this.table
    const [line = ''] = (await readFile(secretFile, 'utf8')).split(/\r?\n/)
    const secret = new TextEncoder().encode(line)
    if (secret.length < MIN_SECRET_BYTES) throw new Error(`${secretFile}: its first line has less than 16 characters`)
    if (this.#account() === undefined) throw new Error(`there is no user ${user}`)
    return channelAuth({
      owner: () => this.#account(),
      verifier: await secretVerifier(secret),
      serverSecret,
      now: () => clock.monotonicMs(),
    })
  }

  #account(): Account | undefined {
    const who = parseIdentityOrNone(this.table.user)
    return who && this.#options.accounts.find(who.tenant, who.name)
  }
}
