/** Rules and their alerts as they are shown to those who ask by HTTP: the wing of the alerts gives them, and the edge answers. */
import type { Reader } from '../../auth/permissions.ts'
import type { Steps } from '../kernel/core/fair-work.ts'

export type ShownTexts = Readonly<Record<string, string>>

export interface ShownAlert {
  readonly labels: ShownTexts
  readonly annotations: ShownTexts
  readonly state: 'pending' | 'firing'
  readonly value: number
  /** Milliseconds since 1970. */
  readonly activeMs: number
  /** Since when it fires although its expression holds no more. */
  readonly keptSinceMs: number | undefined
}

export interface ShownRule {
  readonly kind: 'alert' | 'record'
  readonly name: string
  readonly query: string
  /** What the query compares with a number, as a chart draws it; undefined if it does not. */
  readonly threshold: { readonly expr: string; readonly value: number } | undefined
  /** As they stand in the file. */
  readonly labels: ShownTexts
  readonly annotations: ShownTexts
  readonly forMs: number
  readonly keepFiringForMs: number
  readonly alerts: readonly ShownAlert[]
  /** `unknown` before the first evaluation. */
  readonly health: 'ok' | 'err' | 'unknown'
  readonly problem: string
  readonly tookMs: number
  /** Milliseconds since 1970; undefined before the first evaluation. */
  readonly evaluatedMs: number | undefined
}

/** What is shown of a group besides its rules. */
export interface ShownGroup {
  readonly name: string
  readonly file: string
  readonly intervalMs: number
  readonly limit: number
  readonly tookMs: number
  readonly evaluatedMs: number | undefined
}

export interface ShownRuleGroup extends ShownGroup {
  readonly rules: readonly ShownRule[]
}

/** Takes a rule, whose number is 1, 2, 3 ... in the order of the files; returns whether it takes another one. */
export type TakeRule = (rule: ShownRule, group: ShownGroup, number: number) => boolean

/** Groups of rules of one wing. */
export interface ShownRuleGroups {
  /** The groups of the tenant of a reader, and of their alerts those that he may read. */
  groupsFor(reader: Reader): Steps<readonly ShownRuleGroup[]>
}

export interface ShownRules extends ShownRuleGroups {
  /** Those of the same rules that have higher numbers than `after`, of groups with this name, or of all: no others are worked out. */
  rulesFor(
    reader: Reader,
    from: { readonly after: number; readonly group: string | undefined },
    take: TakeRule,
  ): Steps<void>
}
