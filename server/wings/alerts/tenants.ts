/**
 * The rules of all tenants: those of the configuration, which are of one of them, and those that users have put. The rules of a file that
 * was put read what its author may read at that moment; once there is no such user or token any more, the file is stopped, and an alert says so.
 */
import type { RuleFileRow, StoredAlerts } from '../../kit/expressions.ts'
import type { Kit } from '../../kit/kit.ts'
import { RuleGroups } from './evaluation/groups.ts'
import type { EvaluatedFile, Outcomes } from './evaluation/running-group.ts'
import { RuleReading } from './put/reading.ts'
import { stoppedGroup } from './put/stopped.ts'
import type { RuleFileProblem, RuleGroupDefinition } from './rules/rule-file.ts'

/** Whose the rules of the configuration are. */
export const CONFIGURED_TENANT = 'default'
/** Before the name of a file that was put, so that it is not that of a file of the configuration. */
export const PUT_PREFIX = 'put:'
/** Groups and rules of a tenant. */
export const MOST_GROUPS = 2_000
export const MOST_RULES = 20_000
/** Files that users of a tenant have put, and their bytes together. */
const MOST_FILES = 100
const MOST_BYTES = 4 << 20
/** Of the problems of one file. */
const MOST_SAID = 20

const NO_AUTHOR = 'whoever put them is no user any more, or the token is revoked or has expired: put them again'
const TOO_SLOW = (limit: number): string =>
  `they took the most of the time that the rules of the tenant may take, ${limit} s in an hour: have them do less and put them again, ` +
  'or raise its quota `rule_seconds_per_hour`'
const HOUR_MS = 3_600_000

/** How long the rules of a file were worked on lately: what was an hour ago counts for a third. */
class RecentWork {
  readonly #nowMs: () => number
  #ms = 0
  #atMs: number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
    this.#atMs = nowMs()
  }

  add(ms: number): void {
    this.#ms = this.seconds * 1_000 + ms
    this.#atMs = this.#nowMs()
  }

  get seconds(): number {
    return (this.#ms * Math.exp((this.#atMs - this.#nowMs()) / HOUR_MS)) / 1_000
  }
}

/** A file that was put. */
interface PutFile {
  readonly row: RuleFileRow
  readonly groups: readonly RuleGroupDefinition[]
  /** Why its rules cannot be evaluated, whoever put them. */
  readonly problem: string | undefined
  readonly bytes: number
  readonly reader: EvaluatedFile['reader']
  readonly worked: (ms: number) => void
  readonly recent: RecentWork
  /** The quota that it has used up, for which it was stopped; undefined if it was not. */
  usedUp: number | undefined
  /** Why it was stopped, when it was looked at last. */
  stopped: string | undefined
}

/** A file that was put, as it is shown. */
export interface ShownFile {
  readonly row: RuleFileRow
  readonly groups: number
  readonly rules: number
  readonly bytes: number
  /** Why it is not evaluated. */
  readonly problem: string | undefined
}

export interface RulesOfTenantsServices {
  readonly kit: Pick<Kit, 'clock' | 'log' | 'poll' | 'expressions' | 'peer'>
  /** How often groups are evaluated that name no interval. */
  readonly intervalMs: () => number
  /** What is made of evaluations of a tenant. */
  readonly outcomes: (tenant: string) => Outcomes
}

export class RulesOfTenants {
  readonly #services: RulesOfTenantsServices
  readonly #stored: StoredAlerts
  readonly #running: RuleGroups[]
  readonly #reading: RuleReading
  /** By tenant and name. */
  readonly #files = new Map<string, Map<string, PutFile>>()
  /** Tenants whose stored files are not read yet. */
  readonly #unread: Set<string>
  /** Files that were stopped because their tenant has used up its time, by tenant. */
  readonly #usedUp = new Map<string, number>()
  #whenRead: Promise<void> | undefined
  #configured: readonly EvaluatedFile[] = []

  /** `running` gets those of each tenant that has rules. */
  constructor(services: RulesOfTenantsServices, running: RuleGroups[]) {
    this.#services = services
    this.#stored = services.kit.expressions.stored
    this.#running = running
    const { clock, poll } = services.kit
    this.#reading = new RuleReading({ clock, work: (tenant, steps) => poll.work({ tenant }, steps) })
    this.#unread = new Set(this.#stored.files.map(({ tenant }) => tenant))
  }

  /** Evaluates these rules of the configuration from now on, and whatever users have put. */
  configure(files: readonly EvaluatedFile[]): void {
    this.#configured = files
    const { alerts, groups } = this.#stored
    const stored = [...alerts.map(({ rule }) => rule), ...groups.map(({ name }) => name)]
    const tenants = new Set(stored.map((place) => (JSON.parse(place) as string[])[0] ?? ''))
    for (const tenant of [CONFIGURED_TENANT, ...tenants, ...this.#files.keys()]) this.#follow(tenant)
    this.#whenRead ??= this.#readStored()
  }

  /** Settles when the stored files are read: nothing of them may be asked for or changed before. */
  async whenRead(): Promise<void> {
    await this.#whenRead
  }

  async #readStored(): Promise<void> {
    for (const tenant of [...this.#unread]) {
      for (const row of this.#stored.files) {
        if (row.tenant !== tenant) continue
        const read = await this.#reading.readAgain(tenant, row.rules)
        // The tenant was removed meanwhile.
        if (!this.#unread.has(tenant)) break
        const problem = 'groups' in read ? undefined : `they cannot be read: ${read.problems[0]?.message}`
        this.#keep(this.#fileOf(row, 'groups' in read ? read.groups : [], problem))
      }
      if (this.#unread.delete(tenant)) this.#follow(tenant)
    }
  }

  /** Puts a file in force. Resolves to why it is not, or to what it has; never rejects. */
  async put(row: RuleFileRow): Promise<ShownFile | { readonly refused: string }> {
    const { tenant, name, rules: text } = row
    const bytes = Buffer.byteLength(text)
    const wrong = this.#sizeProblem(row, bytes)
    if (wrong !== undefined) return { refused: wrong }
    const read = await this.#reading.read(tenant, text)
    if ('problems' in read) return { refused: problemsText(name, read.problems) }
    const file = this.#fileOf(row, read.groups)
    // Its author may have been removed meanwhile, and the tenant, too: another one of its name must not find the file.
    if (file.reader() === undefined) return { refused: 'whoever puts it is no user any more, or the token is revoked' }
    // Others may have put files meanwhile.
    const tooMuch = this.#sizeProblem(row, bytes) ?? this.#roomProblem(file)
    if (tooMuch !== undefined) return { refused: tooMuch }
    this.#keep(file)
    this.#stored.journal.change({ put: 'rule file', row })
    this.#follow(tenant)
    return shown(file)
  }

  /** Returns whether there was one. */
  remove(tenant: string, name: string): boolean {
    const files = this.#files.get(tenant)
    if (files?.delete(name) !== true) return false
    this.#stored.journal.change({ remove: 'rule file', tenant, name })
    this.#count(tenant)
    this.#follow(tenant)
    return true
  }

  /** Ends everything of a tenant that was removed. */
  endTenant(tenant: string): void {
    const names = new Set(this.#files.get(tenant)?.keys())
    if (this.#unread.delete(tenant))
      for (const row of this.#stored.files) if (row.tenant === tenant) names.add(row.name)
    for (const name of names) this.#stored.journal.change({ remove: 'rule file', tenant, name })
    this.#files.delete(tenant)
    this.#count(tenant)
    if (this.#running.some((groups) => groups.tenant === tenant)) this.#follow(tenant)
  }

  /** Those of a tenant, by name. */
  filesOf(tenant: string): readonly ShownFile[] {
    const files = [...(this.#files.get(tenant)?.values() ?? [])]
    return files.sort((one, other) => (one.row.name < other.row.name ? -1 : 1)).map(shown)
  }

  /** How many files of a tenant were stopped because it has used up its time. */
  usedUpOf(tenant: string): number {
    return this.#usedUp.get(tenant) ?? 0
  }

  /** Stops what has no author any more, and what takes too much time. To be called every second. */
  sweep(): void {
    for (const [tenant, files] of this.#files) {
      this.#stopCostliest(tenant, [...files.values()])
      const changed = [...files.values()].filter((file) => file.stopped !== this.#problemOf(file))
      for (const file of changed) {
        const { row, stopped } = file
        const problem = this.#problemOf(file)
        if (stopped === undefined && problem !== undefined)
          this.#services.kit.log.warn({ tenant, file: row.name, author: row.author }, `rules stop: ${problem}`)
      }
      if (changed.length > 0) this.#follow(tenant)
    }
    for (const groups of this.#running) groups.sweep()
  }

  /** Where the rules of a tenant have used up its time, the file is stopped that took the most of it. */
  #stopCostliest(tenant: string, files: readonly PutFile[]): void {
    const quota = this.#services.kit.peer.view.use(tenant).ruleSeconds
    for (const file of files) if (file.usedUp !== undefined && quota.limit > file.usedUp) file.usedUp = undefined
    if (quota.hasRoom) return
    const [costliest] = files
      .filter((file) => this.#problemOf(file) === undefined)
      .toSorted((one, other) => other.recent.seconds - one.recent.seconds)
    if (costliest === undefined) return
    costliest.usedUp = quota.limit
    quota.giveBack(costliest.recent.seconds)
    this.#usedUp.set(tenant, this.usedUpOf(tenant) + 1)
  }

  #fileOf(row: RuleFileRow, groups: PutFile['groups'], problem?: string): PutFile {
    const { clock, peer } = this.#services.kit
    const recent = new RecentWork(() => clock.monotonicMs())
    return {
      ...{ row, groups, problem, recent },
      bytes: Buffer.byteLength(row.rules),
      reader: () => peer.view.readerOf(row.user, row.scope, row.token),
      worked(ms) {
        recent.add(ms)
        peer.view.use(row.tenant).ruleSeconds.take(ms / 1_000)
      },
      usedUp: undefined,
      stopped: undefined,
    }
  }

  #keep(file: PutFile): void {
    const { tenant, name } = file.row
    const files = this.#files.get(tenant) ?? new Map<string, PutFile>()
    this.#files.set(tenant, files.set(name, file))
    this.#count(tenant)
  }

  #count(tenant: string): void {
    const files = [...(this.#files.get(tenant)?.values() ?? [])]
    this.#services.kit.peer.view.use(tenant).rules.used = files.reduce((sum, file) => sum + rulesIn(file), 0)
  }

  #follow(tenant: string): void {
    if (this.#unread.has(tenant)) return
    const files = [...(this.#files.get(tenant)?.values() ?? [])].map((file) => this.#evaluated(file))
    const configured = tenant === CONFIGURED_TENANT ? this.#configured : []
    this.#groupsOf(tenant).follow([...configured, ...files], this.#services.intervalMs())
  }

  #groupsOf(tenant: string): RuleGroups {
    const known = this.#running.find((groups) => groups.tenant === tenant)
    if (known !== undefined) return known
    const { kit, outcomes } = this.#services
    const { clock, log, poll, expressions } = kit
    const groups = new RuleGroups({
      ...{ tenant, expressions, stored: this.#stored, clock, log },
      work: (steps) => poll.work({ tenant }, steps),
      ...outcomes(tenant),
    })
    this.#running.push(groups)
    return groups
  }

  #evaluated(file: PutFile): EvaluatedFile {
    const { row, groups, reader, worked } = file
    const path = PUT_PREFIX + row.name
    const problem = this.#problemOf(file)
    file.stopped = problem
    if (problem === undefined) return { path, groups, reader, worked }
    return { path, groups: [stoppedGroup(row.name, problem)], reader: () => nobodyOf(row.tenant) }
  }

  #problemOf({ problem, reader, usedUp }: PutFile): string | undefined {
    if (problem !== undefined) return problem
    if (reader() === undefined) return NO_AUTHOR
    return usedUp === undefined ? undefined : TOO_SLOW(usedUp)
  }

  #sizeProblem({ tenant, name }: RuleFileRow, bytes: number): string | undefined {
    const others = [...(this.#files.get(tenant)?.values() ?? [])].filter(({ row }) => row.name !== name)
    if (others.length >= MOST_FILES)
      return `the tenant has ${others.length} files, and may have ${MOST_FILES}: remove one`
    const all = others.reduce((sum, file) => sum + file.bytes, bytes)
    return all > MOST_BYTES ? `the files of the tenant would have ${all} bytes, and may have ${MOST_BYTES}` : undefined
  }

  #roomProblem(file: PutFile): string | undefined {
    const { tenant, name } = file.row
    const others = [...(this.#files.get(tenant)?.values() ?? [])].filter(({ row }) => row.name !== name)
    const own = [...others, file]
    const rules = own.reduce((sum, one) => sum + rulesIn(one), 0)
    const quota = this.#services.kit.peer.view.use(tenant).rules
    if (rules > quota.limit) {
      quota.refused++
      return `the files of the tenant would have ${rules} rules, and its quota is ${quota.limit}`
    }
    const all = tenant === CONFIGURED_TENANT ? [...this.#configured, ...own] : own
    const count = all.reduce((sum, one) => sum + rulesIn(one), 0)
    const groups = all.reduce((sum, one) => sum + one.groups.length, 0)
    if (groups <= MOST_GROUPS && count <= MOST_RULES) return undefined
    return `the tenant would have ${groups} groups with ${count} rules, and may have ${MOST_GROUPS} and ${MOST_RULES}`
  }
}

/** Reads nothing. */
function nobodyOf(tenant: string): NonNullable<ReturnType<EvaluatedFile['reader']>> {
  return { userId: 0, tenant, name: 'alerts:', role: 'consumer', scope: [] }
}

function shown(file: PutFile): ShownFile {
  const { row, groups, bytes, stopped } = file
  return {
    row,
    groups: groups.length,
    rules: rulesIn(file),
    bytes,
    problem: stopped,
  }
}

function rulesIn({ groups }: Pick<PutFile, 'groups'>): number {
  return groups.reduce((sum, { rules }) => sum + rules.length, 0)
}

/** A line for each problem, as far as they fit. */
function problemsText(name: string, problems: readonly RuleFileProblem[]): string {
  const lines = problems
    .slice(0, MOST_SAID)
    .map(({ message, line }) => `${name}${line === undefined ? '' : `:${line}`}: ${message}`)
  const left = problems.length - lines.length
  return [...lines, ...(left > 0 ? [`${left} more problems are not shown`] : [])].join('\n')
}
