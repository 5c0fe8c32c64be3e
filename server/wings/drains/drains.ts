/**
 * The drains of the configuration. Each has a user of its own, to whom its channel belongs and whose role says what may be
 * read; nobody can log in as that user, because it has neither password nor token.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Users } from '../../kernel/accounts/users.ts'
import type { Bindings } from '../../kernel/channels/bindings.ts'
import type { Channel } from '../../kernel/channels/channel.ts'
import type { Registry } from '../../kernel/channels/registry.ts'
import type { FairWork } from '../../kernel/core/fair-work.ts'
import type { Hub } from '../../kernel/metrics/hub.ts'
import type { Instances } from '../../kernel/metrics/instances.ts'
import type { Notices } from '../../kernel/producer/notices.ts'
import type { Owner, SensorStatus } from '../../kit/metrics.ts'
import { type Clock, type Logger, StatusError, type Timer } from '../../kit/running.ts'
import type { DrainTable } from './config.ts'
import { type DrainCounts, noCounts } from './counts.ts'
import { Drain } from './drain.ts'
import { isNamedOn, sensorLabels, wireOf } from './metrics.ts'
import type { OutgoingValue } from './outgoing.ts'
import { openReceiver } from './post.ts'
import type { DeliveryProblem } from './problem.ts'

const PREFIX = 'drain:'
/** A connection that ended, because somebody took its channel, is made again after this time. */
const AGAIN_MS = 10_000
/** One notice of refused values in this time is enough. */
const NOTICE_MS = 60_000

export interface DrainsOptions {
  readonly accounts: Users
  readonly registry: Registry
  readonly instances: Instances
  readonly bindings: Bindings
  readonly hub: Pick<Hub, 'sensors'>
  readonly clock: Clock
  readonly log: Logger
  readonly notices: Pick<Notices, 'emit'>
  readonly work: FairWork
  /** 0..1 */
  readonly random: () => number
}

/** An entry of `producer.sensors`. */
export interface DrainStatus {
  readonly owner: Owner
  status(): SensorStatus
}

export class Drains {
  readonly #options: DrainsOptions
  #running: RunningDrain[] = []

  constructor(options: DrainsOptions) {
    this.#options = options
  }

  get statuses(): readonly DrainStatus[] {
    return this.#running
  }

  /**
   * Begins to deliver what these tables say, and nothing else: those that are as before go on. Called when everything is
   * recovered, and whenever the configuration has changed. Settles when new ones are bound, and never rejects.
   */
  async follow(tables: readonly DrainTable[]): Promise<void> {
    const before = this.#running
    this.#running = tables.map((table) => {
      const same = before.find((drain) => isDeepStrictEqual(drain.table, table))
      return same ?? new RunningDrain(table, this.#options)
    })
    for (const drain of before) if (!this.#running.includes(drain)) drain.stop()
    this.#warnOfOthers(tables)
    await Promise.all(this.#running.filter((drain) => !before.includes(drain)).map((drain) => drain.start()))
  }

  #warnOfOthers(tables: readonly DrainTable[]): void {
    const { accounts, registry, log } = this.#options
    const known = new Set(tables.map(({ tenant, name }) => `${tenant}/${PREFIX}${name}`))
    for (const { id, tenant, name } of accounts.list()) {
      if (!name.startsWith(PREFIX) || known.has(`${tenant}/${name}`) || registry.of(id).size === 0) continue
      const message = 'a channel waits for a drain that is not in the configuration any more, until it expires'
      log.warn({ tenant, user: name }, message)
    }
  }

  stop(): void {
    for (const drain of this.#running) drain.stop()
  }
}

class RunningDrain implements DrainStatus {
  readonly owner: Owner
  readonly table: DrainTable
  readonly #options: DrainsOptions
  readonly #counts: DrainCounts = noCounts()
  #channel: Channel | undefined
  #drain: Drain | undefined
  #problem = ''
  #timer: Timer | undefined
  #isOver = false
  /** Refusals since the last notice, and when that was. */
  #refused = 0
  #noticedMs = Number.NEGATIVE_INFINITY

  constructor(table: DrainTable, options: DrainsOptions) {
    this.table = table
    this.#options = options
    this.owner = { tenant: table.tenant }
  }

  /** Finds or makes its channel, binds what is to be delivered, and begins. Never rejects. */
  async start(): Promise<void> {
    try {
      await this.#begin()
    } catch (error) {
      this.#options.log.error({ err: error, drain: this.table.name }, 'a drain cannot begin')
    }
  }

  async #begin(): Promise<void> {
    const { accounts, registry } = this.#options
    const { tenant, role, name: own } = this.table
    const name = PREFIX + own
    const known = accounts.find(tenant, name)
    const account =
      known ?? accounts.add({ tenant, name, role, bcrypt: undefined, scram: undefined, loopbackOnly: false })
    if (account.role !== role) accounts.setRole(account, role)
    const identity = accounts.identity(account)
    const channel = registry.named(identity.userId, name) ?? registry.create(identity, true, { name })
    this.#channel = channel
    channel.onConnectionChange = () => this.#connectAgain()
    await this.#bind(channel)
    this.#connect()
  }

  stop(): void {
    this.#isOver = true
    this.#options.clock.clear(this.#timer)
    this.#drain?.end()
  }

  /** Binds what the configuration names, and nothing else. */
  async #bind(channel: Channel): Promise<void> {
    const { instances, bindings, work, log } = this.#options
    const { metrics, name } = this.table
    const wanted = new Set(metrics)
    for (const { instance } of [...channel.bindings.values()]) {
      if (wanted.delete(instance.selection.name)) continue
      await bindings.stop(instance, channel)
      bindings.endUnbound(instance)
    }
    for (const metric of wanted) {
      try {
        const instance = await work.run(channel.owner, instances.collect(channel.owner, metric, []))
        await work.run(channel.owner, bindings.requireRoom(instance, [channel]))
        const { barrier, matched } = bindings.subscribe(instance, channel)
        barrier?.release()
        await matched
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        this.#problem = `${metric}: ${error.message}`
        log.error({ drain: name, metric, detail: error.message }, 'a metric of a drain cannot be bound')
      }
    }
  }

  #connect(): void {
    const channel = this.#channel as Channel
    if (this.#isOver || channel.deleted || channel.connection !== undefined) return
    const { registry, clock, work, random, hub } = this.#options
    this.#drain = new Drain({
      table: this.table,
      channel,
      wire: wireOf(this.table.url.protocol, hub, this.table.tenant),
      destination: openReceiver({ ...this.table, href: this.table.url.href }, clock),
      clock,
      work,
      random,
      isWanted: isNamedOn(channel),
      ownLabels: sensorLabels(hub),
      counts: this.#counts,
      refused: (refusal, value) => this.#refuse(refusal, value),
      state: (problem) => this.#changed(problem),
      ended: (drain) => registry.detach(channel, drain),
    })
    registry.attach(channel, this.#drain)
    this.#drain.start()
  }

  #connectAgain(): void {
    const { clock } = this.#options
    // With its user or by an admin; it is made anew at the next start.
    if (this.#channel?.deleted === true) this.#drain?.end()
    if (this.#isOver || this.#channel?.deleted === true || this.#channel?.connection !== undefined) return
    clock.clear(this.#timer)
    this.#timer = clock.setTimeout(() => this.#connect(), AGAIN_MS)
  }

  #changed(problem: string): void {
    const { log } = this.#options
    const { name, url } = this.table
    if (problem !== '' && this.#problem === '')
      log.warn({ drain: name, url: url.text, detail: problem }, 'a drain cannot deliver')
    if (problem === '' && this.#problem !== '') log.info({ drain: name, url: url.text }, 'a drain delivers again')
    this.#problem = problem
  }

  /** Each refusal is counted; notices come at most once a minute, with the last answer. */
  #refuse({ detail }: DeliveryProblem, { name: metric }: OutgoingValue): void {
    const { clock, log, notices } = this.#options
    const { name, tenant } = this.table
    this.#refused++
    if (clock.monotonicMs() - this.#noticedMs < NOTICE_MS) return
    this.#noticedMs = clock.monotonicMs()
    const refused = this.#refused
    this.#refused = 0
    const text = `drain ${name}: ${refused} refused and committed, the last of ${metric}: ${detail}`
    log.warn({ drain: name, metric, refused, detail }, 'a destination has refused values')
    notices.emit({ severity: 'warning', subject: 'drain', detail: text }, { tenant })
  }

  status(): SensorStatus {
    const { name, url } = this.table
    const state = this.#drain === undefined ? 'off' : this.#problem === '' ? 'sending' : 'failed'
    const detail = this.#problem === '' ? url.text : `${url.text}: ${this.#problem}`
    return { name: `drain/${name}`, state, detail, counters: { ...this.#counts } }
  }
}
