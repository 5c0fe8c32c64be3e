/**
 * What there is to see in the console of a demonstration: hosts that measure, a stream that counts, and channels of several users:
 * one is fast, one slow, one dropped something, one waits for its consumer, one is an orphan, and now and then one expires.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connect, Consumer } from '../../client/index.ts'
import type { ResolvedLogin } from '../login.ts'
import { HostFeed } from './hosts.ts'
import { DEMO_SOURCE, type DemoServer, METRIC, NumberSource } from './server.ts'

const SECOND_MS = 1_000
/** Numbers that the stream counts per second, in steps. */
const RATE = 2_000
const STEP_MS = 50
/** The slow consumer takes so long for each value. */
const SLOW_MS = 10
/** Values that may be sent to it and not yet committed. */
const SLOW_WINDOW = 256
/** The consumer that loses values rests in every minute, and its channel has room for a few seconds. */
const REST_EVERY_MS = 60_000
const REST_MS = 12_000
const SMALL_BYTES = 65_536
/** A visitor leaves a channel behind in every minute and a half, which expires. */
const VISIT_MS = 90_000
const EXPIRE_MS = 45_000

interface ShowcaseOptions {
  readonly server: DemoServer
  readonly login: () => Promise<ResolvedLogin>
  readonly connect: Connect
}

interface Guest {
  readonly user: string
  /** Of its channel. */
  readonly name?: string
  readonly metric: string
  readonly args?: Readonly<Record<string, string>>
  /** Called for each value. */
  readonly work?: () => Promise<void> | void
}

export class Showcase {
  readonly #options: ShowcaseOptions
  readonly #hosts: HostFeed
  readonly #numbers: NumberSource
  readonly #ending = new AbortController()
  readonly #consumers: Consumer[] = []
  readonly #timers: NodeJS.Timeout[] = []
  /** Of the users, made for this run. */
  readonly #password = randomBytes(18).toString('base64url')
  /** Rejects if a part cannot go on. */
  readonly failed: Promise<never>
  #fail: (error: Error) => void = () => {}

  constructor(options: ShowcaseOptions) {
    this.#options = options
    this.#hosts = new HostFeed(() => options.server.gmetricPort)
    this.#numbers = new NumberSource(() => options.server.smonPort)
    this.failed = new Promise((_resolve, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => {})
  }

  /** Starts the server; resolves when everything can be seen. Rejects with Failure. */
  async open(): Promise<void> {
    await this.#options.server.start()
    await this.#addUsers('meter', 'archive', 'view', 'report', 'visitor')
    await this.#hosts.open()
    this.#every(SECOND_MS, () => this.#hosts.send())
    await this.#numbers.open()
    this.#every(STEP_MS, () => this.#numbers.feed((RATE * STEP_MS) / SECOND_MS))
    const pause = () => this.#sleep(SLOW_MS)
    await this.#follow({ user: 'meter', name: 'billing', metric: METRIC, args: { source: DEMO_SOURCE } })
    await this.#follow({ user: 'meter', name: 'capacity', metric: 'gmetric.*' })
    const slow = await this.#follow({ user: 'archive', name: 'ops-archive', metric: 'gmetric.*', work: pause })
    await slow.execute('channel.configure', { channel: 0, window: SLOW_WINDOW })
    await this.#loseSome()
    await this.#leave({ user: 'report', name: 'nightly-report', metric: 'gmetric.cpu_*' })
    await this.#leave({ user: 'view', metric: 'host.load.one' })
    this.#every(VISIT_MS, () => this.#visit())
    await this.#visit()
  }

  async close(): Promise<void> {
    this.#ending.abort()
    for (const timer of this.#timers) clearInterval(timer)
    this.#hosts.close()
    this.#numbers.close()
    await Promise.all(this.#consumers.map((consumer) => consumer.close()))
  }

  async #addUsers(...users: readonly string[]): Promise<void> {
    const { url, credentials } = await this.#options.login()
    const admin = await this.#options.connect(url, credentials, { durable: false })
    await Promise.all(users.map((user) => admin.execute('user.add', { user, password: this.#password })))
    await admin.close()
  }

  /** A consumer that takes its values until the end. */
  async #follow(guest: Guest): Promise<Consumer> {
    const consumer = await this.#open(guest)
    this.#consumers.push(consumer)
    consumer.run().catch((error: Error) => {
      if (!this.#ending.signal.aborted) this.#fail(error)
    })
    return consumer
  }

  /** A consumer that goes away: its channel stays. */
  async #leave(guest: Guest, expireMs?: number): Promise<void> {
    const consumer = await this.#open(guest)
    if (expireMs !== undefined) await consumer.execute('channel.configure', { channel: 0, expire_ms: expireMs })
    await consumer.close()
  }

  async #open({ user, name, metric, args = {}, work = () => {} }: Guest): Promise<Consumer> {
    const { connect, login } = this.#options
    const { url } = await login()
    const consumer = await connect(url, { identity: user, password: this.#password }, { name })
    await consumer.follow(metric, args, work)
    return consumer
  }

  async #loseSome(): Promise<void> {
    let restedAt = performance.now()
    const rest = async (): Promise<void> => {
      if (performance.now() - restedAt < REST_EVERY_MS) return
      await this.#sleep(REST_MS)
      restedAt = performance.now()
    }
    const consumer = await this.#follow({ user: 'view', name: 'dashboard', metric: 'gmetric.*', work: rest })
    const small = { channel: 0, max_bytes: SMALL_BYTES, window_bytes: SMALL_BYTES / 4 }
    await consumer.execute('channel.configure', small)
  }

  #visit(): Promise<void> {
    const name = `visit-${new Date().toISOString().slice(11, 19)}`
    return this.#leave({ user: 'visitor', name, metric: 'gmetric.load_one' }, EXPIRE_MS)
  }

  #every(ms: number, act: () => Promise<void> | void): void {
    const timer = setInterval(async () => {
      try {
        await act()
      } catch (error) {
        if (!this.#ending.signal.aborted) this.#fail(error as Error)
      }
    }, ms)
    this.#timers.push(timer)
  }

  /** Ends early with everything else. */
  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#ending.signal }).catch(() => {})
  }
}
