/** The rules of all roles, in memory and in the store. Numbers are never reused. */
import { ADMIN_ROLE, CONSUMER_ROLE, isRuleCommand, OPERATOR_ROLE, type Rule } from '../../../auth/permissions.ts'
import type { Change, RuleRow } from '../../../storage/store.ts'

/** Roles that exist without any rule. */
export const BUILT_IN_ROLES: readonly string[] = [ADMIN_ROLE, OPERATOR_ROLE, CONSUMER_ROLE]

const NONE: readonly Rule[] = []

export class Rules {
  readonly #byRole = new Map<string, Rule[]>()
  readonly #change: (change: Change) => void
  #next: number
  /** Grows whenever a rule comes or goes. */
  changes = 0

  constructor(rows: readonly RuleRow[], next: number, change: (change: Change) => void) {
    for (const row of rows) this.#keep(ruleOf(row))
    this.#next = next
    this.#change = change
  }

  /** The rules of one role, ascending by number. */
  of(role: string): readonly Rule[] {
    return this.#byRole.get(role) ?? NONE
  }

  /** All rules, ascending by role and number. */
  list(): Rule[] {
    return [...this.#byRole.keys()].sort().flatMap((role) => this.of(role))
  }

  /** Whether a role exists: it is built in, has a rule, or approves something by one. */
  hasRole(role: string): boolean {
    return BUILT_IN_ROLES.includes(role) || this.#byRole.has(role) || this.approves(role)
  }

  /** Whether a rule has the users of a role approve something. */
  approves(role: string): boolean {
    return [...this.#byRole.values()].some((rules) => rules.some(({ approval }) => approval === role))
  }

  add(rule: Omit<Rule, 'number'>): Rule {
    const added = { ...rule, number: this.#next++ }
    this.#keep(added)
    this.#change({ put: 'rule', row: rowOf(added) })
    return added
  }

  find(number: number): Rule | undefined {
    return this.list().find((rule) => rule.number === number)
  }

  remove({ role, number }: Rule): void {
    const left = this.of(role).filter((rule) => rule.number !== number)
    if (left.length === 0) this.#byRole.delete(role)
    else this.#byRole.set(role, left)
    this.changes++
    this.#change({ remove: 'rule', number })
  }

  #keep(rule: Rule): void {
    this.changes++
    const rules = this.#byRole.get(rule.role)
    if (rules) rules.push(rule)
    else this.#byRole.set(rule.role, [rule])
  }
}

type Where = Record<string, string>

function rowOf({ where, approval, ...rule }: Rule): RuleRow {
  return { ...rule, where: JSON.stringify(approval === undefined ? where : [where, approval]) }
}

function ruleOf({ command, where: text, ...row }: RuleRow): Rule {
  if (!isRuleCommand(command)) throw new Error(`rule ${row.number} names an unknown command: ${command}`)
  const stored = JSON.parse(text) as Where | [Where, string]
  if (!Array.isArray(stored)) return { ...row, command, where: stored }
  const [where, approval] = stored
  return { ...row, command, where, approval }
}
