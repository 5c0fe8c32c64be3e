/**
 * The notifiers, of the configuration and those that users have put. Each has a user of its own, to whom its channel belongs and whose
 * role says which alerts may be read: that of the table, or of whoever has put it. Nobody can log in as that user, because it has
 * neither password nor token.
 */
import { isDeepStrictEqual } from 'node:util'
import { ConfigError } from '../../kit/config.ts'
import type { Kit } from '../../kit/kit.ts'
import type { NotifierTable } from './bodies.ts'
import type { ButtonTokens } from './button-tokens.ts'
import type { NotifyTable } from './config.ts'
import { endFailuresOfOthers, tellOfFailures } from './failures.ts'
import { Heartbeat } from './heartbeat.ts'
import type { InForce } from './in-force.ts'
import type { NotificationLog } from './log.ts'
import { alertMatcher, explainNoMatcher } from './matchers.ts'
import { notifierPlace, notifierUser, PUT_ENDING, USER_PREFIX } from './names.ts'
import { StoppedNotifier } from './put/stopped.ts'
import { RecoveredGroups } from './recovered-groups.ts'
import { type IsMuted, RunningNotifier } from './running-notifier.ts'

export class Notifiers {
  readonly #kit: Kit
  readonly #log: NotificationLog
  readonly #isMuted: IsMuted
  readonly #tokens: ButtonTokens
  /** One of each; it changes with them. */
  readonly running: InForce[] = []
  readonly #recovered: RecoveredGroups
  #isFirst = true

  constructor(kit: Kit, log: NotificationLog, isMuted: IsMuted, tokens: ButtonTokens) {
    this.#kit = kit
    this.#log = log
    this.#isMuted = isMuted
    this.#tokens = tokens
    this.#recovered = new RecoveredGroups(kit.peer.stored)
  }

  /** Tells what these tables say, and nobody else: those that are as before go on. Settles when new ones are bound; never rejects. */
  async follow(tables: readonly NotifierTable[]): Promise<void> {
    const before = [...this.running]
    const byPlace = new Map<string, InForce[]>()
    for (const one of before) {
      const place = notifierPlace(one.table)
      byPlace.set(place, [...(byPlace.get(place) ?? []), one])
    }
    const next = tables.map((table) => {
      const same = byPlace.get(notifierPlace(table))?.find((notifier) => isDeepStrictEqual(notifier.table, table))
      if (same !== undefined) return same
      const problem = table.origin?.problem ?? ''
      if (problem !== '') return new StoppedNotifier(table, problem, this.#kit.clock.wallMs())
      if (table.url.protocol === 'heartbeat') return new Heartbeat(table, this.#kit)
      return new RunningNotifier(table, this.#kit, this.#log, this.#isMuted, this.#tokens, this.#recovered)
    })
    this.running.splice(0, Number.POSITIVE_INFINITY, ...next)
    if (this.#isFirst) this.#forgetOthers(tables)
    const names = new Set(tables.map(notifierPlace))
    const [wereThere, areThere] = [new Set(before), new Set(next)]
    for (const notifier of before)
      if (!areThere.has(notifier)) {
        notifier.stop()
        if (names.has(notifierPlace(notifier.table))) continue
        notifier.groups?.end()
        this.#recovered.forget(notifierPlace(notifier.table))
      }
    const hasChanged = before.length !== next.length || next.some((notifier) => !wereThere.has(notifier))
    if (hasChanged || this.#isFirst) this.#haltOthers(tables)
    this.#isFirst = false
    await Promise.all(
      next.map((notifier) => {
        const known = byPlace.get(notifierPlace(notifier.table))?.[0]
        return wereThere.has(notifier) ? undefined : notifier.start(known)
      }),
    )
    endFailuresOfOthers(this.running, this.#kit.clock.wallMs())
  }

  #haltOthers(tables: readonly NotifierTable[]): void {
    const { log, peer } = this.#kit
    const known = new Set(tables.map((table) => `${table.tenant}/${notifierUser(table)}`))
    const isKnown = (user: { readonly tenant: string; readonly name: string }): boolean =>
      known.has(`${user.tenant}/${user.name}`)
    for (const { tenant, name } of peer.delivery.haltOthers(USER_PREFIX, isKnown)) {
      // One that a user had put goes with all it has, also if the server ended before it could.
      if (name.endsWith(PUT_ENDING)) {
        void peer.delivery.endOwn({ tenant, name })
        continue
      }
      const remedy = `cinnabar user remove '${tenant}/${name}'`
      const message =
        'the channel of a notifier that is not in the configuration any more collects nothing, and keeps what waits until it expires; ' +
        `${remedy} removes it at once`
      log.warn({ tenant, user: name }, message)
    }
  }

  /** What was told by those that are not in the configuration any more is not kept. */
  #forgetOthers(tables: readonly NotifyTable[]): void {
    const known = new Set(tables.map(notifierPlace))
    for (const place of this.#recovered.places()) if (!known.has(place)) this.#recovered.forget(place)
  }

  /** Removes the user, the channel and the log of a notifier that somebody had put and that is not in force any more. */
  async endPut(tenant: string, name: string): Promise<void> {
    const place = notifierPlace({ tenant, name })
    // One of the configuration has its name.
    if (this.find(tenant, name) === undefined) this.#log.forget(place)
    await this.#kit.peer.delivery.endOwn({ tenant, name: USER_PREFIX + name + PUT_ENDING })
  }

  find(tenant: string, name: string): InForce | undefined {
    return this.running.find(({ table }) => table.tenant === tenant && table.name === name)
  }

  /** What must be told may have changed. */
  lookAgain(): void {
    for (const notifier of this.running) notifier.lookAgain()
  }

  /** To be called every second. */
  sweep(): void {
    tellOfFailures(this.running, this.#kit.clock.wallMs())
    for (const notifier of this.running) {
      notifier.endApprovals()
      const { tenant, escalateTo } = notifier.table
      const next = escalateTo === undefined ? undefined : this.find(tenant, escalateTo)
      if (next !== undefined) notifier.escalate(next)
    }
  }

  stop(): void {
    for (const notifier of this.running) notifier.stop()
  }
}

/** Throws ConfigError if a matcher of a table is none. */
export function checkMatchers(tables: readonly NotifyTable[]): void {
  const problems = tables.flatMap(({ name, match, inhibit }) =>
    [...match, ...inhibit.flatMap(({ source, target }) => [...source, ...target])]
      .filter((text) => alertMatcher(text) === undefined)
      .map((text) => ({
        source: `[[notify]] ${name}`,
        message: `${match.includes(text) ? '`match`' : '`inhibit`'}: ${explainNoMatcher(text)}`,
      })),
  )
  if (problems.length > 0) throw new ConfigError(problems)
}
