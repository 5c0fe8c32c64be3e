/**
 * The drains of the configuration. Each has a user of its own, to whom its channel belongs and whose role says what may be
 * read; nobody can log in as that user, because it has neither password nor token.
 */
import { isDeepStrictEqual } from 'node:util'
import { ALL_TENANTS } from '../../kit/config.ts'
import { OWN_USER_PREFIXES, type OwnChannel } from '../../kit/delivery.ts'
import { openReceiver, type Receiver } from '../../kit/io/post.ts'
import { signing } from '../../kit/io/signing.ts'
import type { Kit } from '../../kit/kit.ts'
import type { Owner, SensorStatus, StatusEntry } from '../../kit/metrics.ts'
import { OwnConnection } from '../../kit/own-connection.ts'
import type { DeliveredChannel } from '../../kit/push.ts'
import type { DrainTable } from './config.ts'
import { type DrainCounts, noCounts } from './counts.ts'
import { Drain } from './drain.ts'
import { jsonWire } from './json.ts'
import { isNamedOn, isOfServer, metricsOf, sensorLabels, wireOf } from './metrics.ts'
import type { DrainWire, OutgoingValue } from './outgoing.ts'
import type { DeliveryProblem } from './problem.ts'

const PREFIX = OWN_USER_PREFIXES.drain
/** One notice of refused values, and one of lost ones, in this time is enough. */
const NOTICE_MS = 60_000
/** Of the drains of all tenants, that of this one delivers what belongs to none. */
const FIRST_TENANT = 'default'

/** What the drain of one tenant delivers, and where. */
interface TenantTable extends DrainTable {
  /** Whether its table is for all tenants. */
  readonly isOfAll: boolean
}

export class Drains {
  /** One of each drain; it changes with them. */
  readonly statuses: StatusEntry[] = []
  readonly #kit: Kit
  #tables: readonly DrainTable[] = []
  #tenants: readonly string[] = []
  #running: readonly RunningDrain[] = []
  #isFirst = true

  constructor(kit: Kit) {
    this.#kit = kit
  }

  /**
   * Begins to deliver what these tables say, and nothing else: those that are as before go on. Called when everything is
   * recovered, and whenever the configuration has changed. Settles when new ones are bound, and never rejects.
   */
  async follow(given: readonly DrainTable[]): Promise<void> {
    const before = this.#running
    this.#tables = given
    this.#tenants = this.#kit.peer.view.tenants()
    const tables = given.flatMap((table) => this.#byTenant(table))
    this.#running = tables.map((table) => {
      const same = before.find((drain) => isDeepStrictEqual(drain.table, table))
      return same ?? new RunningDrain(table, this.#kit)
    })
    this.statuses.splice(0, Number.POSITIVE_INFINITY, ...this.#running)
    const fresh = this.#running.filter((drain) => !before.includes(drain))
    const gone = before.filter((drain) => !this.#running.includes(drain))
    for (const drain of gone) drain.stop()
    if (fresh.length > 0 || gone.length > 0 || this.#isFirst) this.#haltOthers(tables)
    this.#isFirst = false
    await Promise.all(fresh.map((drain) => drain.start()))
  }

  /** A table for all tenants is one for each: none waits for another, and each loses only what does not fit into its own channel. */
  #byTenant(table: DrainTable): readonly TenantTable[] {
    const isOfAll = table.tenant === ALL_TENANTS
    return (isOfAll ? this.#tenants : [table.tenant]).map((tenant) => ({ ...table, tenant, isOfAll }))
  }

  /** Channels of drains that are not in the configuration any more collect nothing; what waits in them would be delivered yet. */
  #haltOthers(tables: readonly TenantTable[]): void {
    const { log, peer } = this.#kit
    const known = new Set(tables.map(({ tenant, name }) => `${tenant}/${PREFIX}${name}`))
    for (const { tenant, name } of peer.delivery.haltOthers(PREFIX, (user) =>
      known.has(`${user.tenant}/${user.name}`),
    )) {
      const remedy = `cinnabar user remove '${tenant}/${name}'`
      const message =
        'the channel of a drain that is not in the configuration any more collects nothing, and keeps what waits until it expires; ' +
        `${remedy} removes it at once`
      log.warn({ tenant, user: name }, message)
    }
  }

  /** To be called every second. */
  sweep(): void {
    const isForAll = this.#tables.some(({ tenant }) => tenant === ALL_TENANTS)
    // Tenants come and go.
    if (isForAll && !isDeepStrictEqual(this.#tenants, this.#kit.peer.view.tenants())) void this.follow(this.#tables)
    for (const drain of this.#running) drain.sweep()
  }

  stop(): void {
    for (const drain of this.#running) drain.stop()
  }
}

class RunningDrain implements StatusEntry {
  readonly owner: Owner
  readonly table: TenantTable
  readonly #kit: Kit
  readonly #counts: DrainCounts = noCounts()
  #channel: OwnChannel | undefined
  #connection: OwnConnection<Drain> | undefined
  #problem = ''
  /** Aborted when it is stopped. */
  readonly #over = new AbortController()
  /** Refusals since the last notice, and when that was. */
  #refused = 0
  #noticedMs = Number.NEGATIVE_INFINITY
  #isMatching = false
  /** What the channel had lost when that was logged, and when that was. */
  #dropped = 0
  #lossLoggedMs = Number.NEGATIVE_INFINITY

  constructor(table: TenantTable, kit: Kit) {
    this.table = table
    this.#kit = kit
    this.owner = { tenant: table.tenant }
  }

  /** Finds or makes its channel, binds what is to be delivered, and begins. Never rejects. */
  async start(): Promise<void> {
    const { name, tenant } = this.table
    try {
      await this.#begin()
    } catch (error) {
      this.#kit.log.error({ err: error, drain: name, tenant }, 'a drain cannot begin')
    }
  }

  async #begin(): Promise<void> {
    const { log, peer } = this.#kit
    const { tenant, role, name, metrics } = this.table
    const channel = await peer.delivery.channelOf({ tenant, role, name: PREFIX + name })
    // Another table of its name may have taken its place meanwhile.
    if (this.#over.signal.aborted) return
    this.#channel = channel
    this.#dropped = droppedBy(channel)
    // Matching a pattern may take minutes, in which values fill the channel: what is bound already is delivered.
    this.#isMatching = true
    this.#connection = new OwnConnection({
      channel,
      clock: this.#kit.clock,
      make: () => this.#connected(channel),
      deleted: () => {
        this.stop()
        this.#changed('its channel was removed: it is made anew at the next start')
      },
    })
    this.#connection.begin()
    await channel.bind({
      metrics: metrics.map((name) => ({ name, args: [] })),
      signal: this.#over.signal,
      refused: (metric, detail) => {
        this.#problem = `${metric}: ${detail}`
        log.error({ drain: name, tenant, metric, detail }, 'a metric of a drain cannot be bound')
      },
    })
    this.#isMatching = false
  }

  /** Losses are logged when they happen, at most once a minute: their GAPs come after all that waits before them. */
  sweep(): void {
    const { clock, log } = this.#kit
    const channel = this.#channel
    if (channel === undefined || channel.state === 'deleted') return
    const dropped = droppedBy(channel)
    if (dropped <= this.#dropped || clock.monotonicMs() - this.#lossLoggedMs < NOTICE_MS) return
    const { queued, queuedBytes } = channel.delivered.queue.counts
    const lost = dropped - this.#dropped
    log.warn(
      { drain: this.table.name, tenant: this.table.tenant, lost, queued, queuedBytes },
      'the channel of a drain has lost values',
    )
    this.#dropped = dropped
    this.#lossLoggedMs = clock.monotonicMs()
  }

  stop(): void {
    this.#over.abort()
    this.#connection?.end()
  }

  #connected(channel: OwnChannel): Drain {
    const { clock, poll, peer } = this.#kit
    const { tenant, tenantLabel } = this.table
    return new Drain({
      table: this.table,
      channel: channel.delivered,
      ...this.#way(channel.delivered),
      clock,
      work: poll.work,
      random: Math.random,
      isWanted: this.#isWanted(channel.delivered),
      ownLabels: sensorLabels(peer.view),
      tenantLabel: tenantLabel === '' ? undefined : [tenantLabel, tenant],
      counts: this.#counts,
      refused: (refusal, value) => this.#refuse(refusal, value),
      state: (problem) => this.#changed(problem),
      ended: (drain) => channel.detach(drain),
    })
  }

  #isWanted(channel: DeliveredChannel): (name: string) => boolean {
    const { isOfAll, tenant } = this.table
    const isNamed = isNamedOn(channel)
    if (!isOfAll || tenant === FIRST_TENANT) return isNamed
    const isOwn = isOfServer(this.#kit.peer.view, tenant)
    return (name) => isNamed(name) && !isOwn(name)
  }

  #way(channel: DeliveredChannel): { readonly wire: DrainWire; readonly destination: Receiver } {
    const { self, clock, peer } = this.#kit
    const { name, tenant, url, secretFile } = this.table
    const destination = openReceiver({ ...this.table, href: url.href }, clock)
    if (url.protocol !== 'json') return { wire: wireOf(url.protocol, peer.view, tenant, clock), destination }
    const stream = { producer: self.name, tenant, drain: name, stream: `${self.id}-${channel.id}` }
    const wire = jsonWire(stream, metricsOf(peer.view.sensors, tenant))
    return { wire, destination: signing(destination, secretFile, clock) }
  }

  #changed(problem: string): void {
    const { log } = this.#kit
    const { name, tenant, url } = this.table
    if (problem !== '' && this.#problem === '')
      log.warn({ drain: name, tenant, url: url.text, detail: problem }, 'a drain cannot deliver')
    if (problem === '' && this.#problem !== '')
      log.info({ drain: name, tenant, url: url.text }, 'a drain delivers again')
    this.#problem = problem
  }

  /** Each refusal is counted; notices come at most once a minute, with the last answer. */
  #refuse({ detail }: DeliveryProblem, { name: metric }: OutgoingValue): void {
    const { clock, log, peer } = this.#kit
    const { name, tenant } = this.table
    this.#refused++
    if (clock.monotonicMs() - this.#noticedMs < NOTICE_MS) return
    this.#noticedMs = clock.monotonicMs()
    const refused = this.#refused
    this.#refused = 0
    const text = `drain ${name}: ${refused} refused and committed, the last of ${metric}: ${detail}`
    log.warn({ drain: name, tenant, metric, refused, detail }, 'a destination has refused values')
    peer.notice({ severity: 'warning', subject: 'drain', detail: text }, { tenant })
  }

  status(): SensorStatus {
    const { name, tenant, isOfAll, url } = this.table
    const detail = this.#problem === '' ? url.text : `${url.text}: ${this.#problem}`
    return {
      name: `drain/${name}${isOfAll ? `/${tenant}` : ''}`,
      state: this.#state,
      detail,
      counters: { ...this.#counts },
    }
  }

  get #state(): string {
    if (this.#connection?.made === undefined) return 'off'
    if (this.#problem !== '') return 'failed'
    return this.#isMatching ? 'matching' : 'sending'
  }
}

/** Values that a channel has lost; what was stopped or purged somebody did not want any more. */
function droppedBy({ delivered }: OwnChannel): number {
  const { overflow, expired, damaged, full } = delivered.queue.counts.dropped
  return overflow + expired + damaged + full
}
