/**
 * The notifiers that users have put, in memory and in the store. Each tells of what its author may read at that moment; once there is
 * no such user any more, or the token is revoked, it stops, which is shown, and is an alert.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Kit } from '../../../kit/kit.ts'
import type { SensorStatus, StatusEntry } from '../../../kit/metrics.ts'
import type { NotifierRow, Reader } from '../../../kit/peer.ts'
import type { NotifierTable } from '../bodies.ts'
import type { NotifyTable } from '../config.ts'
import { notifierPlace } from '../names.ts'
import type { Sealing } from './sealing.ts'
import {
  type Contents,
  type GivenNotifier,
  type NotifierSecrets,
  readerOfContents,
  readNotifiers,
  readStored,
  ready,
  settingsIn,
} from './tables.ts'

/** Whose authors are looked for in one step. */
const MOST_LOOKED = 500
/** Of the problems of one call. */
const MOST_SAID = 20
const METRIC = 'alert'

const NO_AUTHOR = 'whoever put it is no user any more, or the token is revoked or has expired: put it again'
const SEALED = 'its secrets were sealed with the secret of another data directory: put it again'
const CONFIGURED = 'the configuration has a notifier of this name'

/** Who puts notifiers, and with what. */
export interface Putting {
  readonly tenant: string
  readonly user: number
  readonly author: string
  readonly token: number
  readonly scope: string
}

export type PutRefusal = { readonly refused: string }

/** What a call changes, or would change. */
export interface NotifierChange {
  readonly name: string
  readonly change: 'new' | 'changed' | 'same'
  /** The keys that are other ones. */
  readonly keys: readonly string[]
}

/** One that was put, as it is shown. */
export interface ShownNotifier {
  readonly row: NotifierRow
  /** Without what may be secret. */
  readonly url: string
  /** Why it tells nobody. */
  readonly problem: string
}

interface PutNotifier {
  readonly row: NotifierRow
  /** What it is made of, whoever has put it. */
  readonly table: NotifierTable
  readonly secrets: NotifierSecrets
  /** Why it cannot be made of that; '' if it can. */
  readonly broken: string
  readonly reader: () => Reader | undefined
  /** The table that was in force last. */
  latest: NotifierTable
}

export interface PutNotifiersServices {
  readonly kit: Pick<Kit, 'clock' | 'log'> & { readonly peer: Pick<Kit['peer'], 'stored' | 'view' | 'delivery'> }
  readonly sealing: Sealing
  /** The tables of the configuration. */
  readonly configured: () => readonly NotifyTable[]
}

export class PutNotifiers {
  readonly #services: PutNotifiersServices
  /** By tenant and name. */
  readonly #notifiers = new Map<string, Map<string, PutNotifier>>()
  readonly #refused = new Map<string, number>()
  /** How many were looked at since the first. */
  #looked = 0
  /** One of each tenant that has notifiers, or whose were refused. */
  readonly #statuses = new Map<string, StatusEntry>()

  constructor(services: PutNotifiersServices) {
    this.#services = services
  }

  /** Opens what is stored. */
  async open(): Promise<void> {
    const { log, peer } = this.#services.kit
    for (const row of peer.stored.notifiers) {
      const found = await this.#opened(row)
      const { tenant, name } = row
      if (found.broken !== '') log.error({ tenant, notifier: name, detail: found.broken }, 'a notifier tells nobody')
      this.#keep(found)
      await nextTurn()
    }
  }

  /** What is to be in force now of all tenants. */
  tables(): readonly NotifierTable[] {
    return this.#all().map((one) => {
      const problem = this.#problemOf(one)
      const role = one.reader()?.role ?? one.latest.role
      const { origin } = one.latest
      if (origin?.problem !== problem || one.latest.role !== role)
        one.latest = { ...one.table, role, origin: this.#originOf(one, problem) }
      return one.latest
    })
  }

  /** Whether that differs from what it was. Looks at some of them, and at the next ones when it is called again. */
  get hasChanged(): boolean {
    const all = this.#all()
    const from = this.#looked < all.length ? this.#looked : 0
    this.#looked = from + MOST_LOOKED
    return all.slice(from, this.#looked).some((one) => {
      const { origin, role } = one.latest
      return origin?.problem !== this.#problemOf(one) || role !== (one.reader()?.role ?? role)
    })
  }

  /** What would change. Resolves to why nothing may; never rejects. */
  async changes(tenant: string, text: string, contents: string): Promise<readonly NotifierChange[] | PutRefusal> {
    const given = await this.#checked(tenant, text, contents)
    if ('refused' in given) return given
    return given.map(({ notifier }) => changeOf(this.#of(tenant).get(notifier.table.name), notifier))
  }

  /** Puts notifiers in force, all of them or none. Resolves to why not; never rejects. */
  async put(who: Putting, text: string, contents: string): Promise<readonly NotifierChange[] | PutRefusal> {
    const { kit, sealing } = this.#services
    const { tenant, user, token, scope } = who
    const given = await this.#checked(tenant, text, contents)
    if ('refused' in given) return given
    // Its author may have been removed meanwhile, and the tenant, too: another one of its name must not find the notifiers.
    const reader = kit.peer.view.readerOf(user, scope, token)
    if (reader === undefined) return this.#refuse(tenant, 'whoever puts them is no user any more')
    if (!kit.peer.view.readRights(reader).covers(METRIC))
      return this.#refuse(tenant, 'the token does not cover `COLLECT alert`, of which notifiers tell')
    const changes = given.map(({ notifier }) => changeOf(this.#of(tenant).get(notifier.table.name), notifier))
    for (const { notifier, table } of given) {
      const { settings, secrets } = notifier
      const { name } = table
      const sealed = sealing.seal(notifierPlace({ tenant, name }), JSON.stringify(secrets))
      const row: NotifierRow = { ...who, name, put: kit.clock.wallMs(), settings, sealed }
      this.#keep(this.#notifierOf(row, table, secrets, ''))
      kit.peer.stored.journal.change({ put: 'notifier', row })
    }
    return changes
  }

  /** Returns whether there was one. */
  remove(tenant: string, name: string): boolean {
    if (this.#notifiers.get(tenant)?.delete(name) !== true) return false
    this.#services.kit.peer.stored.journal.change({ remove: 'notifier', tenant, name })
    this.#count(tenant)
    return true
  }

  /** Removes those of a tenant that was removed. Returns whether there were any. */
  endTenant(tenant: string): boolean {
    const names = [...this.#of(tenant).keys()]
    for (const name of names) this.remove(tenant, name)
    this.#notifiers.delete(tenant)
    this.#refused.delete(tenant)
    this.#statuses.delete(tenant)
    return names.length > 0
  }

  /** Those of a tenant, by name. */
  shown(tenant: string): readonly ShownNotifier[] {
    const found = [...this.#of(tenant).values()].sort((one, other) => (one.row.name < other.row.name ? -1 : 1))
    return found.map((one) => {
      const missing = this.#missingTarget(one)
      return { row: one.row, url: one.table.url.shown, problem: this.#problemOf(one) || missing }
    })
  }

  get statuses(): readonly StatusEntry[] {
    return [...this.#statuses.values()]
  }

  #statusOf(tenant: string): SensorStatus {
    const all = [...this.#of(tenant).values()]
    const stopped = all.filter((one) => this.#problemOf(one) !== '').length
    const counters = { put: all.length, stopped, refused: this.#refused.get(tenant) ?? 0 }
    return { name: 'notify', state: 'on', detail: 'notifiers that users have put', counters }
  }

  /** What may be put of a text; or why nothing of it may, which is counted. */
  async #checked(
    tenant: string,
    text: string,
    contents: string,
  ): Promise<readonly { readonly notifier: GivenNotifier; readonly table: NotifierTable }[] | PutRefusal> {
    const read = readNotifiers(tenant, text, contents)
    if ('problems' in read)
      return this.#refuse(
        tenant,
        ...read.problems.map(
          ({ source, line, message }) => `${source}${line === undefined ? '' : `:${line}`}: ${message}`,
        ),
      )
    const tables = read.map(({ table }) => table)
    // What may not be put is not worth the work of making it ready.
    const early = this.#problemsOf(tenant, tables)
    if (early.length > 0) return this.#refuse(tenant, ...early)
    const found: { readonly notifier: GivenNotifier; readonly table: NotifierTable }[] = []
    const problems: string[] = []
    for (const notifier of read) {
      try {
        found.push({ notifier, table: await ready(notifier, this.#services.kit.clock.wallMs()) })
      } catch (error) {
        problems.push(`${notifier.table.name}: ${(error as Error).message}`)
      }
      await nextTurn()
    }
    // What others have put meanwhile counts.
    const all = [...problems, ...this.#problemsOf(tenant, tables)]
    return all.length > 0 ? this.#refuse(tenant, ...all) : found
  }

  /** What speaks against these tables beside all others of the tenant. */
  #problemsOf(tenant: string, given: readonly NotifyTable[]): string[] {
    const { kit, configured } = this.#services
    const ofConfiguration = configured().filter((table) => table.tenant === tenant)
    const names = new Set(given.map(({ name }) => name))
    const others = [...this.#of(tenant).values()].map(({ table }) => table).filter(({ name }) => !names.has(name))
    const targets = [...ofConfiguration, ...others, ...given].filter(({ url }) => url.protocol !== 'heartbeat')
    const problems = given.flatMap(({ name, url, escalateTo }) => {
      const say = (isWrong: boolean, what: string): string[] => (isWrong ? [`${name}: ${what}`] : [])
      const isTarget =
        escalateTo === undefined || targets.some((other) => other.name === escalateTo && other.name !== name)
      return [
        ...say(
          ofConfiguration.some((other) => other.name === name),
          `\`name\`: ${CONFIGURED}: choose another one`,
        ),
        ...say(
          !kit.peer.delivery.permits(url.shown),
          `\`url\`: \`dial.allow\` of the server does not permit ${url.shown}`,
        ),
        ...say(!isTarget, `\`escalate_to\` has to name another notifier of the tenant: ${escalateTo} is none`),
      ]
    })
    const quota = kit.peer.view.use(tenant).notifiers
    const count = others.length + given.length
    // A tenant that has more than it may have by now may change what it has.
    if (count <= Math.max(quota.limit, this.#of(tenant).size)) return problems
    quota.refused++
    return [...problems, `the tenant would have ${count} notifiers, and its quota is ${quota.limit}: remove some`]
  }

  #refuse(tenant: string, ...problems: readonly string[]): PutRefusal {
    this.#refused.set(tenant, (this.#refused.get(tenant) ?? 0) + 1)
    this.#count(tenant)
    const left = problems.length - MOST_SAID
    const more = left > 0 ? [`${left} more problems are not shown`] : []
    return { refused: [...problems.slice(0, MOST_SAID), ...more].join('\n') }
  }

  async #opened(row: NotifierRow): Promise<PutNotifier> {
    const { kit, sealing } = this.#services
    const { tenant, settings } = row
    const opened = sealing.open(notifierPlace(row), row.sealed)
    if (opened === undefined) return this.#brokenOf(row, SEALED)
    const secrets = JSON.parse(opened) as NotifierSecrets
    const read = readStored(tenant, settings, secrets)
    if ('problems' in read) return this.#brokenOf(row, `${read.problems[0]?.message}: put it again`)
    try {
      const [notifier] = read as readonly [GivenNotifier]
      return this.#notifierOf(row, await ready(notifier, kit.clock.wallMs()), secrets, '')
    } catch (error) {
      return this.#brokenOf(row, `${(error as Error).message}: put it again`)
    }
  }

  #brokenOf(row: NotifierRow, broken: string): PutNotifier {
    const shown = String(settingsIn(row.settings)['url'] ?? '')
    // Nothing of it is used but its name.
    const [any] = readStored(row.tenant, '[[notify]]\nname = "x"\n', { url: 'webhook+https://x/', contents: {} }) as [
      GivenNotifier,
    ]
    const table: NotifierTable = { ...any.table, name: row.name, url: { ...any.table.url, shown }, body: '' }
    return this.#notifierOf(row, table, { url: shown, contents: {} }, broken)
  }

  #notifierOf(row: NotifierRow, table: NotifierTable, secrets: NotifierSecrets, broken: string): PutNotifier {
    const reader = () => this.#services.kit.peer.view.readerOf(row.user, row.scope, row.token)
    return { row, table, secrets, broken, reader, latest: table }
  }

  #originOf({ row, secrets, reader }: PutNotifier, problem: string): NonNullable<NotifierTable['origin']> {
    const { delivery } = this.#services.kit.peer
    return {
      author: row.author,
      user: row.user,
      problem,
      reader,
      read: readerOfContents(secrets.contents),
      addressFor: (origin) => delivery.addressFor(origin),
    }
  }

  #problemOf({ row, broken, reader }: PutNotifier): string {
    const { tenant, name } = row
    if (this.#services.configured().some((table) => table.tenant === tenant && table.name === name)) return CONFIGURED
    return broken || (reader() === undefined ? NO_AUTHOR : '')
  }

  #missingTarget({ row, table }: PutNotifier): string {
    const { escalateTo } = table
    const isThere = [...this.#services.configured(), ...this.#all().map((one) => one.table)].some(
      (other) => other.tenant === row.tenant && other.name === escalateTo,
    )
    return escalateTo === undefined || isThere ? '' : `nobody is told by escalation: there is no notifier ${escalateTo}`
  }

  #keep(one: PutNotifier): void {
    const { tenant, name } = one.row
    const notifiers = this.#notifiers.get(tenant) ?? new Map<string, PutNotifier>()
    this.#notifiers.set(tenant, notifiers.set(name, one))
    this.#count(tenant)
  }

  #count(tenant: string): void {
    this.#services.kit.peer.view.use(tenant).notifiers.used = this.#of(tenant).size
    if (!this.#statuses.has(tenant))
      this.#statuses.set(tenant, { owner: { tenant }, status: () => this.#statusOf(tenant) })
  }

  #of(tenant: string): ReadonlyMap<string, PutNotifier> {
    return this.#notifiers.get(tenant) ?? NONE
  }

  #all(): readonly PutNotifier[] {
    return [...this.#notifiers.values()].flatMap((notifiers) => [...notifiers.values()])
  }
}

const NONE: ReadonlyMap<string, PutNotifier> = new Map()

function changeOf(known: PutNotifier | undefined, { table, settings, secrets }: GivenNotifier): NotifierChange {
  const { name } = table
  if (known === undefined) return { name, change: 'new', keys: [] }
  const [before, after] = [partsOf(known.row.settings, known.secrets), partsOf(settings, secrets)]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changed = keys.filter((key) => !isDeepStrictEqual(before[key], after[key]))
  // One that has stopped is put again.
  const isSame = changed.length === 0 && known.broken === '' && known.reader() !== undefined
  return { name, change: isSame ? 'same' : 'changed', keys: changed }
}

function partsOf(settings: string, { url, contents }: { readonly url: string; readonly contents: Contents }) {
  return { ...settingsIn(settings), url, ...contents } as Readonly<Record<string, unknown>>
}
