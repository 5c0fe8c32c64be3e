/** Inhibition, as Alertmanager has it: nobody is told of an alert while another one fires that says it all. */
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import { alertMatcher, matchesAll } from './matchers.ts'

/** While an alert fires that matches `source`, nobody is told of those that match `target` and have the same texts of the labels `equal`. */
export interface InhibitRule {
  readonly source: readonly string[]
  readonly target: readonly string[]
  readonly equal: readonly string[]
}

interface Inhibition {
  readonly source: readonly LabelMatcher[]
  readonly target: readonly LabelMatcher[]
  readonly equal: readonly string[]
  /** The alerts that fire and match `source`: the texts of the labels `equal`, by fingerprint. */
  readonly firing: Map<string, string>
}

export class Inhibitions {
  readonly #inhibitions: readonly Inhibition[]

  /** `firing`: the alerts that fire now. */
  constructor(rules: readonly InhibitRule[], firing: () => Iterable<NotifiedAlert | undefined>) {
    const matchers = (texts: readonly string[]): readonly LabelMatcher[] =>
      texts.map(alertMatcher).filter((matcher) => matcher !== undefined)
    this.#inhibitions = rules.map(({ source, target, equal }) => ({
      source: matchers(source),
      target: matchers(target),
      equal,
      firing: new Map(),
    }))
    if (rules.length > 0) for (const alert of firing()) if (alert !== undefined) this.observe(alert)
  }

  /** Takes what has become of an alert; returns whether others may be told, or not be told, now. */
  observe(alert: NotifiedAlert): boolean {
    let hasChanged = false
    for (const { source, equal, firing } of this.#inhibitions) {
      if (!matchesAll(alert, source)) continue
      hasChanged = true
      if (alert.state === 'firing') firing.set(alert.fingerprint, keyOf(alert, equal))
      else firing.delete(alert.fingerprint)
    }
    return hasChanged
  }

  isInhibited(alert: NotifiedAlert): boolean {
    return this.#inhibitions.some(({ source, target, equal, firing }) => {
      if (!matchesAll(alert, target)) return false
      const key = keyOf(alert, equal)
      // What matches both does not keep itself from being told, nor others like it.
      if (matchesAll(alert, source)) return false
      for (const other of firing.values()) if (other === key) return true
      return false
    })
  }
}

function keyOf(alert: NotifiedAlert, equal: readonly string[]): string {
  return JSON.stringify(equal.map((name) => textOfLabel(alert, name)))
}
