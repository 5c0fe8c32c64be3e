/** Inhibition, as Alertmanager has it: nobody is told of an alert while another one fires that says it all. */
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import type { Steps } from '../../kit/running.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import { alertMatchers, matchesAll } from './matchers.ts'

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
  /** The alerts that fire and match `source`, by fingerprint. */
  readonly firing: Map<string, Inhibiting>
}

interface Inhibiting {
  /** The texts of the labels `equal`. */
  readonly key: string
  /** Whether it matches `target` as well. */
  readonly isTarget: boolean
}

type Firing = () => Iterable<NotifiedAlert | undefined>

/** Compiles rules. `firing`: the alerts that fire now. */
export function* inhibitionsOf(rules: readonly InhibitRule[], firing: Firing): Steps<Inhibitions> {
  const compiled: Inhibition[] = []
  for (const { source, target, equal } of rules)
    compiled.push({
      source: yield* alertMatchers(source),
      target: yield* alertMatchers(target),
      equal,
      firing: new Map(),
    })
  const inhibitions = new Inhibitions(compiled, firing)
  yield* inhibitions.lookAgain()
  return inhibitions
}

export class Inhibitions {
  readonly #inhibitions: readonly Inhibition[]
  readonly #firing: Firing
  /** While what fires is looked at: fingerprints of which nothing was seen yet. */
  #unseen: Set<string> | undefined

  constructor(inhibitions: readonly Inhibition[], firing: Firing) {
    this.#inhibitions = inhibitions
    this.#firing = firing
  }

  /**
   * Takes what fires now: of some alerts nobody may have said what has become of them. What was known counts until all was looked at,
   * so that nobody is told meanwhile of what is inhibited.
   */
  *lookAgain(): Steps<void> {
    if (this.#inhibitions.length === 0) return
    const unseen = new Set(this.#inhibitions.flatMap(({ firing }) => [...firing.keys()]))
    this.#unseen = unseen
    for (const alert of this.#firing()) {
      if (alert !== undefined) this.observe(alert)
      yield
    }
    // Another one that has begun since does it.
    if (this.#unseen !== unseen) return
    this.#unseen = undefined
    for (const { firing } of this.#inhibitions) for (const fingerprint of unseen) firing.delete(fingerprint)
  }

  /**
   * Takes what has become of an alert; returns whether others may be told, or not be told, now. What is known already changes nothing:
   * a transition that has to wait is given again and again.
   */
  observe(alert: NotifiedAlert): boolean {
    let hasChanged = false
    this.#unseen?.delete(alert.fingerprint)
    for (const { source, target, equal, firing } of this.#inhibitions) {
      if (!matchesAll(alert, source)) continue
      if (alert.state !== 'firing') {
        if (firing.delete(alert.fingerprint)) hasChanged = true
        continue
      }
      const [known, key, isTarget] = [firing.get(alert.fingerprint), keyOf(alert, equal), matchesAll(alert, target)]
      if (known?.key === key && known.isTarget === isTarget) continue
      firing.set(alert.fingerprint, { key, isTarget })
      hasChanged = true
    }
    return hasChanged
  }

  isInhibited(alert: NotifiedAlert): boolean {
    return this.#inhibitions.some(({ source, target, equal, firing }) => {
      if (!matchesAll(alert, target)) return false
      const wanted = keyOf(alert, equal)
      // What matches both does not keep itself from being told, nor others that match both.
      const isSource = matchesAll(alert, source)
      for (const { key, isTarget } of firing.values()) if (key === wanted && !(isSource && isTarget)) return true
      return false
    })
  }
}

function keyOf(alert: NotifiedAlert, equal: readonly string[]): string {
  return JSON.stringify(equal.map((name) => textOfLabel(alert, name)))
}
