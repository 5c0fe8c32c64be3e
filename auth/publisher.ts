/**
 * Judges the series of requests that publish values, before any of them is taken. It decides as `judge` does for PUBLISH, but the
 * rules are put in order once, and looked through once for each name: thousands of series have few names.
 *
 * Names and labels of series are texts, never patterns: a `*` in a label is compared as the character that it is, and a name
 * that has one may not be published.
 */
import { matcher, overlaps } from './pattern.ts'
import { ADMIN_ROLE, CONSUMER_ROLE, isFor, type Owner, outranks, type Reader, type Rule } from './permissions.ts'

/** A family of metrics, as far as it matters to those who publish. */
export interface PublishedFamily {
  /** The prefix of its metric names, with the dot. */
  readonly family: string
  readonly owner: Owner
  /** Set if it takes published values. Without it only its own source has values for it, whatever rules say. */
  readonly isPublished?: true
}

interface Condition {
  readonly label: string
  readonly matches: (text: string) => boolean
}

/** A rule whose object matches a name; it decides if its conditions hold and no earlier one has decided. */
interface Candidate {
  readonly isAllowed: boolean
  readonly conditions: readonly Condition[]
}

/** A rule, or an entry of a scope, with what it needs to be compared with names. */
interface Compiled extends Candidate {
  readonly object: string
  readonly isAbout: (name: string) => boolean
}

/** Names whose rules are put together once. */
const MOST_NAMES = 1_024

const NOBODY: readonly Candidate[] = []
const EVERYBODY: readonly Candidate[] = [{ isAllowed: true, conditions: [] }]

export class Publisher {
  /** What its judgements can be remembered with: they never change, and another publisher has another stamp. */
  readonly stamp: object = {}
  readonly #family: string
  /** What the scope covers; the names of all metrics match one of these, or may not be published. */
  readonly #covered: readonly { readonly object: string; readonly covers: (name: string) => boolean }[]
  /** The rules for PUBLISH, those that outrank others first; undefined if the role needs none. */
  readonly #rules: readonly Compiled[] | undefined
  readonly #byName = new Map<string, readonly Candidate[]>()

  /**
   * For requests of an identity with the scope of its token. Nothing may be published without a scope, to a family of
   * another tenant or of the producer, or to one that does not say that it takes published values. `rules` may hold those of
   * other roles too.
   */
  constructor(
    { role, tenant, scope }: Reader,
    { family, owner, isPublished }: PublishedFamily,
    rules: readonly Rule[],
  ) {
    const isTheirs = owner !== 'producer' && owner.tenant === tenant
    const entries = isTheirs && isPublished === true ? (scope ?? []) : []
    this.#family = family
    this.#covered = entries
      .filter(({ command }) => command !== 'WATCH' && isFor({ effect: 'allow', command }, 'PUBLISH'))
      .map(({ object }) => ({ object, covers: matcher(object) }))
    this.#rules = role === ADMIN_ROLE ? undefined : role === CONSUMER_ROLE ? [] : compile(role, rules)
  }

  /**
   * Whether there may be any series that may be published: to be asked before the work for a request begins. It errs on the
   * side of yes, since it compares patterns with each other and not with names.
   */
  get mayAnything(): boolean {
    const family = `${this.#family}*`
    const rules = this.#rules
    return this.#covered.some(({ object: scoped }) => {
      if (!overlaps(scoped, family)) return false
      if (rules === undefined) return true
      return rules.some(({ isAllowed, object }, index) => {
        if (!isAllowed || !overlaps(object, family) || !overlaps(object, scoped)) return false
        // Earlier rules outrank it: a denial of everything that it could allow leaves nothing.
        const denials = rules.slice(0, index).filter((rule) => !rule.isAllowed && rule.conditions.length === 0)
        return !denials.some(({ isAbout }) => isAbout(object) || isAbout(scoped) || isAbout(family))
      })
    })
  }

  /** `label` gives the text of a label of the series; undefined if it has none of that name. */
  may(name: string, label: (name: string) => string | undefined): boolean {
    for (const { isAllowed, conditions } of this.#candidates(name)) if (hold(conditions, label)) return isAllowed
    return false
  }

  /** Whether a rule lets series of this name be published, some labels given. */
  mayWithLabels(name: string): boolean {
    return this.#candidates(name).some(({ isAllowed }) => isAllowed)
  }

  #candidates(name: string): readonly Candidate[] {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const candidates = this.#candidatesFor(name)
    if (this.#byName.size >= MOST_NAMES) this.#byName.clear()
    this.#byName.set(name, candidates)
    return candidates
  }

  #candidatesFor(name: string): readonly Candidate[] {
    if (!name.startsWith(this.#family) || name.includes('*')) return NOBODY
    if (!this.#covered.some(({ covers }) => covers(name))) return NOBODY
    if (this.#rules === undefined) return EVERYBODY
    const about = this.#rules.filter(({ isAbout }) => isAbout(name))
    const unconditional = about.findIndex(({ conditions }) => conditions.length === 0)
    return unconditional < 0 ? about : about.slice(0, unconditional + 1)
  }
}

function compile(role: string, rules: readonly Rule[]): Compiled[] {
  return rules
    .filter((rule) => rule.role === role && isFor(rule, 'PUBLISH'))
    .sort((rule, other) => Number(outranks(other, rule)) - Number(outranks(rule, other)))
    .map(({ effect, object, where }) => ({
      isAllowed: effect === 'allow',
      object,
      isAbout: matcher(object),
      conditions: Object.entries(where).map(([label, pattern]) => ({ label, matches: matcher(pattern) })),
    }))
}

function hold(conditions: readonly Condition[], label: (name: string) => string | undefined): boolean {
  for (const { label: name, matches } of conditions) {
    const text = label(name)
    if (text === undefined || !matches(text)) return false
  }
  return true
}
