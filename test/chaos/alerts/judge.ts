/** Compares what a consumer, the receiver and the history have with the model: what is missing, what came twice, what is in no order. */
import { createHmac } from 'node:crypto'
import type { Json } from '../../support/records.ts'
import type { AlertState, Modelled, ModelTransition } from './model.ts'
import type { Received } from './receiver.ts'

export interface Faults {
  lost: number
  twice: number
  /** Out of order, or not in the model at all. */
  unexpected: number
  /** The first ones, for people. */
  readonly examples: string[]
}

/** A value of the metric `alert`, as a consumer has it. */
export interface Reported extends ModelTransition {
  readonly alert: string
  readonly group: string
  readonly sequence: number
}

/** What somebody was told of an alert. */
interface Told {
  readonly alert: string
  readonly text: string
}

const MOST_EXAMPLES = 10
/** Before a secret in base64, as Standard Webhooks has it. */
export const SECRET_PREFIX = 'whsec_'

export class AlertsJudge {
  readonly faults: Faults = { lost: 0, twice: 0, unexpected: 0, examples: [] }
  readonly #modelled: Modelled

  constructor(modelled: Modelled) {
    this.#modelled = modelled
  }

  /** Values of the event metric, in the order in which they came first: each transition is there once. */
  values(reported: readonly Reported[]): void {
    const counts = new Map<string, number>()
    for (const { group, sequence } of reported) {
      const count = (counts.get(group) ?? 0) + 1
      counts.set(group, count)
      if (sequence !== count)
        this.#fault('unexpected', `the value ${count} of the group ${group} has the sequence ${sequence}`)
    }
    const came = reported.map((value) => ({ alert: value.alert, text: textOf(value) }))
    this.#same('a consumer', came, () => true, textOf)
  }

  /** Notifications of which each transition is one. */
  each(journal: readonly Received[]): void {
    const isTold = ({ firedMs }: ModelTransition): boolean => firedMs > 0
    const told = journal.flatMap((received) => toldOf(received))
    this.#same('the receiver', told, isTold, toldText)
  }

  /** Notifications of groups: what has become of an alert by then is told, in order, and last that it has ended. */
  grouped(journal: readonly Received[]): void {
    const by = byAlert(journal.flatMap((received) => toldOf(received)))
    for (const [alert, transitions] of this.#modelled.transitions) {
      const known = transitions.filter(({ firedMs }) => firedMs > 0).map(toldText)
      let reached = -1
      let last = ''
      for (const text of by.get(alert) ?? []) {
        // What fires still is in each notification of its group.
        const place = known.indexOf(text)
        if (place < 0) this.#fault('unexpected', `the receiver of groups has of ${alert}: ${text}`)
        else if (place < reached) this.#fault('unexpected', `the receiver of groups has too late of ${alert}: ${text}`)
        if (place === reached && text.startsWith('resolved')) this.#fault('twice', `${alert}: ${text}`)
        reached = place
        last = text
      }
      if (last.startsWith('firing')) this.#fault('lost', `nobody was told in the end that ${alert} has ended: ${last}`)
    }
  }

  /**
   * Notifications of a server above, which alerts of what fires below: each alert fires and ends in turn, has ended at last, and fires no
   * more often than below. What is over before it is known above is not told.
   */
  above(journal: readonly Received[]): void {
    const by = byAlert(journal.flatMap((received) => toldOf(received, ({ alert, n }) => `${alert} ${n}`)))
    for (const [alert, texts] of by) {
      const below = (this.#modelled.transitions.get(alert) ?? []).filter(({ state }) => state === 'firing').length
      const fired = texts.filter((text) => text.startsWith('firing')).length
      if (fired > below) this.#fault('unexpected', `${alert} fired ${below} times below, and ${fired} times above`)
      for (const [at, text] of texts.entries()) {
        const before = texts[at - 1]
        const isNext = text.startsWith('firing')
          ? before?.startsWith('firing') !== true
          : before !== undefined && text.startsWith(before.replace('firing', 'resolved'))
        if (!isNext) this.#fault('unexpected', `of ${alert} there is above: ${before} and then ${text}`)
      }
      const last = texts.at(-1)
      if (last?.startsWith('firing')) this.#fault('lost', `nobody was told above that ${alert} has ended: ${last}`)
    }
  }

  /** Requests of notifiers that a user has put: each is signed with one of the secrets with which they were put. */
  signed(journal: readonly Received[], secrets: readonly string[]): void {
    const keys = secrets.map((secret) => Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64'))
    for (const { path, key, time, signature, body } of journal) {
      const wanted = keys.map((one) => {
        const hmac = createHmac('sha256', one).update(`${key}.${time}.${body}`)
        return `v1,${hmac.digest('base64')}`
      })
      if (signature === undefined || !wanted.includes(signature))
        this.#fault('unexpected', `the request ${key} to ${path} has the signature ${signature}`)
    }
  }

  /** Samples of ALERTS, by rule, series and state. */
  history(who: string, kept: ReadonlyMap<string, readonly number[]>): void {
    for (const name of new Set([...kept.keys(), ...this.#modelled.alerts.keys()])) {
      const own = kept.get(name) ?? []
      const wanted = this.#modelled.alerts.get(name) ?? []
      for (const timeMs of wanted) if (!own.includes(timeMs)) this.#fault('lost', `${who} lacks ${name} at ${timeMs}`)
      for (const timeMs of own)
        if (!wanted.includes(timeMs)) this.#fault('unexpected', `${who} has ${name} at ${timeMs}`)
    }
  }

  #same(
    who: string,
    came: readonly Told[],
    isTold: (transition: ModelTransition) => boolean,
    shown: (transition: ModelTransition) => string,
  ): void {
    const by = byAlert(came)
    for (const alert of by.keys())
      if (!this.#modelled.transitions.has(alert)) this.#fault('unexpected', `${who} has ${alert}`)
    for (const [alert, transitions] of this.#modelled.transitions) {
      const wanted = transitions.filter(isTold).map(shown)
      const own = by.get(alert) ?? []
      const there = new Set(own)
      for (const text of wanted) if (!there.has(text)) this.#fault('lost', `${who} lacks of ${alert}: ${text}`)
      for (const [at, text] of own.entries()) {
        if (!wanted.includes(text)) this.#fault('unexpected', `${who} has of ${alert}: ${text}`)
        else if (own.indexOf(text) < at) this.#fault('twice', `${who} has twice of ${alert}: ${text}`)
        else if (at > 0 && wanted.indexOf(text) < wanted.indexOf(own[at - 1] ?? ''))
          this.#fault('unexpected', `${who} has too late of ${alert}: ${text}`)
      }
    }
  }

  #fault(kind: 'lost' | 'twice' | 'unexpected', example: string): void {
    this.faults[kind]++
    if (this.faults.examples.length < MOST_EXAMPLES) this.faults.examples.push(example)
  }
}

/** The requests of one notifier. */
export interface Journal {
  /** Without those that were sent again. */
  readonly journal: readonly Received[]
  /** How many these are. */
  readonly repeats: number
}

/** What was sent again is left out. Throws if another request came in between. */
export function withoutRepeats(journal: readonly Received[]): Journal {
  const kept: Received[] = []
  const keys = new Set<string>()
  for (const received of journal) {
    const { key, body } = received
    const last = kept.at(-1)
    if (last?.key === key) {
      if (last.body !== body) throw new Error(`two notifications with the key ${key} differ: ${last.body} ${body}`)
      continue
    }
    if (keys.has(key)) throw new Error(`the notification ${key} came again after another one: ${body}`)
    keys.add(key)
    kept.push(received)
  }
  return { journal: kept, repeats: journal.length - kept.length }
}

function byAlert(told: readonly Told[]): ReadonlyMap<string, readonly string[]> {
  const by = new Map<string, string[]>()
  for (const { alert, text } of told) {
    const texts = by.get(alert) ?? []
    by.set(alert, texts)
    texts.push(text)
  }
  return by
}

function toldOf({ body }: Received, nameOf = ({ alertname, n }: Json) => `${alertname} ${n}`): Told[] {
  const { alerts } = JSON.parse(body) as Json
  return alerts.map(({ status, labels, startsAt, endsAt }: Json) => {
    const state: AlertState = status === 'firing' ? 'firing' : 'inactive'
    const endedMs = state === 'firing' ? 0 : Date.parse(endsAt)
    return {
      alert: nameOf(labels),
      text: toldText({ state, sinceMs: 0, firedMs: Date.parse(startsAt), endedMs }),
    }
  })
}

function toldText({ state, firedMs, endedMs }: ModelTransition): string {
  return state === 'firing' ? `firing from ${firedMs}` : `resolved from ${firedMs} to ${endedMs}`
}

function textOf({ state, sinceMs, firedMs, endedMs }: ModelTransition): string {
  return `${state} ${sinceMs} ${firedMs} ${endedMs}`
}
