/**
 * The notifiers, of the configuration and those that users have put. Each has a user of its own, to whom its channel belongs and whose
 * role says which alerts may be read: that of the table, or of whoever has put it. Nobody can log in as that user, because it has
 * neither password nor token.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError, type ConfigProblem } from '../../kit/config.ts'
import type { Kit } from '../../kit/kit.ts'
import type { NotifierTable } from './bodies.ts'
import type { ButtonTokens } from './button-tokens.ts'
import type { NotifyTable } from './config.ts'
import { tellOfFailures } from './failures.ts'
import { Heartbeat } from './heartbeat.ts'
import type { InForce } from './in-force.ts'
import type { NotificationLog } from './log.ts'
import { alertMatcher, explainNoMatcher } from './matchers.ts'
import { notifierPlace, notifierUser, PUT_ENDING, USER_PREFIX } from './names.ts'
import { StoppedNotifier } from './put/stopped.ts'
import { RecoveredGroups } from './recovered-groups.ts'
import { type IsMuted, type NotifierServices, RunningNotifier } from './running-notifier.ts'

export class Notifiers {
  readonly #services: NotifierServices
  /** One of each; it changes with them. */
  readonly running: InForce[] = []
  /** The same by tenant. */
  #byTenant: ReadonlyMap<string, readonly InForce[]> = new Map()
  /**
   * What is being done with the users and channels of the notifiers of a place; settled after all of it. One thing is done after the
   * other, in the order in which it was decided: a channel that ends is never that of the next notifier of its name.
   */
  readonly #turns = new Map<string, Promise<void>>()
  /** Tenants whose notifiers are being told of each other. */
  readonly #tenantsTelling = new Set<string>()
  #isFirst = true

  constructor(kit: Kit, log: NotificationLog, isMuted: IsMuted, tokens: ButtonTokens) {
    this.#services = { kit, log, isMuted, tokens, recovered: new RecoveredGroups(kit.peer.stored) }
  }

  /**
   * Tells what these tables say, and nobody else: those that are as before go on. Settles when new ones are bound, and what users had
   * put and is gone has ended; never rejects.
   */
  async follow(tables: readonly NotifierTable[]): Promise<void> {
    const { recovered } = this.#services
    const before = [...this.running]
    const byPlace = grouped(before, ({ table }) => notifierPlace(table))
    const next = tables.map((table) => this.#nextOf(table, byPlace.get(notifierPlace(table)) ?? []))
    this.running.splice(0, Number.POSITIVE_INFINITY, ...next)
    this.#byTenant = grouped(next, ({ table }) => table.tenant)
    // Those where something goes on from what was told, which a heartbeat does not.
    const places = new Set(next.filter((one) => !(one instanceof Heartbeat)).map(({ table }) => notifierPlace(table)))
    if (this.#isFirst) this.#forgetOthers(places)
    const [wereThere, areThere] = [new Set(before), new Set(next)]
    const gone = before.filter((notifier) => !areThere.has(notifier))
    for (const notifier of gone) {
      notifier.stop()
      const place = notifierPlace(notifier.table)
      if (places.has(place)) continue
      notifier.groups?.end()
      recovered.forget(place)
    }
    const hasChanged = before.length !== next.length || next.some((notifier) => !wereThere.has(notifier))
    const ended = hasChanged || this.#isFirst ? this.#endOthers(tables, gone) : []
    this.#isFirst = false
    const fresh = next.filter((notifier) => !wereThere.has(notifier))
    await Promise.all([
      ...ended,
      ...fresh.map((notifier) => this.#inTurn(notifierPlace(notifier.table), () => notifier.start())),
    ])
  }

  /** `known`: those of its place so far. */
  #nextOf(table: NotifierTable, known: readonly InForce[]): InForce {
    const { kit } = this.#services
    const problem = table.origin?.problem ?? ''
    // One that has stopped by itself, since its channel was removed, is made anew.
    const isSame = (one: InForce): boolean => one.isStopped === (problem !== '') && isDeepStrictEqual(one.table, table)
    const same = known.find(isSame)
    if (same !== undefined) return same
    if (problem !== '') return new StoppedNotifier(table, known[0], problem, kit.clock.wallMs())
    if (table.url.protocol === 'heartbeat') return new Heartbeat(table, kit)
    return new RunningNotifier(table, known[0], this.#services)
  }

  /** Whether one has stopped by itself, and can be made anew. */
  get hasStopped(): boolean {
    const isOver = ({ isStopped, table }: InForce): boolean => isStopped && (table.origin?.problem ?? '') === ''
    const stopped = this.running.filter(isOver)
    if (stopped.length === 0) return false
    const tenants = this.#services.kit.peer.view.tenants()
    return stopped.some(({ table }) => tenants.includes(table.tenant))
  }

  /** Never rejects, as long as `act` does not. */
  #inTurn(place: string, act: () => Promise<void>): Promise<void> {
    const done = (this.#turns.get(place) ?? Promise.resolve()).then(act)
    this.#turns.set(place, done)
    return done.finally(() => {
      if (this.#turns.get(place) === done) this.#turns.delete(place)
    })
  }

  /** Ends what users had put, of those that are `gone`, and halts the channels of what the configuration had. Gives what is settled then. */
  #endOthers(tables: readonly NotifierTable[], gone: readonly InForce[]): readonly Promise<void>[] {
    const { log, peer } = this.#services.kit
    const known = new Set(tables.map((table) => `${table.tenant}/${notifierUser(table)}`))
    const places = new Set(tables.map(notifierPlace))
    const isKnown = (user: { readonly tenant: string; readonly name: string }): boolean =>
      known.has(`${user.tenant}/${user.name}`)
    const put = gone.filter(
      ({ table }) => table.origin !== undefined && !isKnown({ tenant: table.tenant, name: notifierUser(table) }),
    )
    for (const { table } of put) if (!places.has(notifierPlace(table))) this.#services.log.forget(notifierPlace(table))
    const halted = peer.delivery.haltOthers(USER_PREFIX, isKnown).flatMap(({ tenant, name }) => {
      // One that a user had put goes with all it has, also if the server ended before it could.
      if (name.endsWith(PUT_ENDING)) return [this.#endUser(tenant, name)]
      const remedy = `cinnabar user remove '${tenant}/${name}'`
      const message =
        'the channel of a notifier that is not in the configuration any more collects nothing, and keeps what waits until it expires; ' +
        `${remedy} removes it at once`
      log.warn({ tenant, user: name }, message)
      return []
    })
    return [...halted, ...put.map(({ table }) => this.#endUser(table.tenant, notifierUser(table)))]
  }

  #endUser(tenant: string, user: string): Promise<void> {
    const { log, peer } = this.#services.kit
    const name = user.slice(USER_PREFIX.length, -PUT_ENDING.length)
    return this.#inTurn(notifierPlace({ tenant, name }), () =>
      peer.delivery.endOwn({ tenant, name: user }).catch((error: unknown) => {
        log.error({ err: error, tenant, user }, 'the channel of a notifier cannot be removed')
      }),
    )
  }

  /** What was told by those that are not in the configuration any more is not kept. */
  #forgetOthers(places: ReadonlySet<string>): void {
    const { recovered } = this.#services
    for (const place of recovered.places()) if (!places.has(place)) recovered.forget(place)
  }

  find(tenant: string, name: string): InForce | undefined {
    return this.#byTenant.get(tenant)?.find(({ table }) => table.name === name)
  }

  /** What must be told may have changed. */
  lookAgain(): void {
    for (const notifier of this.running) notifier.lookAgain()
  }

  /** To be called every second. */
  sweep(): void {
    const nowMs = this.#services.kit.clock.wallMs()
    for (const [tenant, all] of this.#byTenant) void this.#tellOfFailures(tenant, all, nowMs)
    for (const notifier of this.running) {
      const place = notifierPlace(notifier.table)
      if (notifier.isToStart && !this.#turns.has(place)) void this.#inTurn(place, () => notifier.start())
      notifier.sweep()
      const { tenant, escalateTo } = notifier.table
      const next = escalateTo === undefined ? undefined : this.find(tenant, escalateTo)
      if (next !== undefined) notifier.escalate(next)
    }
  }

  /** Never rejects: what a step throws is logged. */
  async #tellOfFailures(tenant: string, all: readonly InForce[], nowMs: number): Promise<void> {
    // Where that takes longer than a second, it is done again a second later.
    if (this.#tenantsTelling.has(tenant)) return
    this.#tenantsTelling.add(tenant)
    const { log, poll } = this.#services.kit
    try {
      await poll.work({ tenant }, tellOfFailures(all, nowMs))
    } catch (error) {
      log.error({ err: error, tenant }, 'the notifiers of a tenant cannot be told of those that fail')
    } finally {
      this.#tenantsTelling.delete(tenant)
    }
  }

  stop(): void {
    for (const notifier of this.running) notifier.stop()
  }
}

function grouped(all: readonly InForce[], keyOf: (one: InForce) => string): ReadonlyMap<string, readonly InForce[]> {
  const groups = new Map<string, InForce[]>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}

/** Rejects with ConfigError if a matcher of a table is none. Others have their turn after each table. */
export async function checkMatchers(tables: readonly NotifyTable[]): Promise<void> {
  const problems: ConfigProblem[] = []
  for (const { name, match, inhibit } of tables) {
    for (const text of [...match, ...inhibit.flatMap(({ source, target }) => [...source, ...target])])
      if (alertMatcher(text) === undefined)
        problems.push({
          source: `[[notify]] ${name}`,
          message: `${match.includes(text) ? '`match`' : '`inhibit`'}: ${explainNoMatcher(text)}`,
        })
    await nextTurn()
  }
  if (problems.length > 0) throw new ConfigError(problems)
}
