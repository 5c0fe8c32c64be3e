/** Notifiers that fail, among the alerts of those who ask by HTTP: as a group with one rule, which is there while one of them fails. */
import { fromForeign } from '../../kit/metrics.ts'
import type { OwnView } from '../../kit/peer.ts'
import type { ShownAlert, ShownRuleGroups } from '../../kit/rules.ts'
import type { Clock } from '../../kit/running.ts'
import type { NotifiedAlert } from './alert.ts'
import { FAILING_NOTIFIER, failureOf, NOTIFIERS_GROUP } from './failures.ts'
import type { InForce } from './in-force.ts'

type Shown = Parameters<typeof failureOf>[0] & { readonly table: Pick<InForce['table'], 'tenant'> }

export class ShownFailures implements ShownRuleGroups {
  readonly #running: readonly Shown[]
  readonly #view: Pick<OwnView, 'readRights'>
  readonly #clock: Pick<Clock, 'wallMs'>

  constructor(running: readonly Shown[], view: Pick<OwnView, 'readRights'>, clock: Pick<Clock, 'wallMs'>) {
    this.#running = running
    this.#view = view
    this.#clock = clock
  }

  /** An alert is judged like a value of the metric `alert` with its labels. */
  *groupsFor(reader: Parameters<ShownRuleGroups['groupsFor']>[0]): ReturnType<ShownRuleGroups['groupsFor']> {
    const { tenant } = reader
    const nowMs = this.#clock.wallMs()
    const rights = this.#view.readRights(reader)
    const mayRead = ({ labels }: NotifiedAlert): boolean => {
      const texts = new Map(labels.map(([name, text]) => [fromForeign(name), text]))
      return rights.mayReadRemembered({ tenant }, 'alert', (name) => texts.get(name))
    }
    const alerts: ShownAlert[] = []
    for (const one of this.#running) {
      const failure = one.table.tenant === tenant ? failureOf(one, nowMs) : undefined
      if (failure !== undefined && mayRead(failure)) alerts.push(shown(failure))
      yield
    }
    if (alerts.length === 0) return []
    const about = { file: 'notify', intervalMs: 0, limit: 0, tookMs: 0, evaluatedMs: nowMs }
    const rule = { kind: 'alert', name: FAILING_NOTIFIER, query: 'vector(1)', threshold: undefined } as const
    const state = { health: 'ok', problem: '', tookMs: 0, evaluatedMs: nowMs } as const
    const none = { labels: {}, annotations: {}, forMs: 0, keepFiringForMs: 0 }
    return [{ ...about, name: NOTIFIERS_GROUP, rules: [{ ...rule, ...none, ...state, alerts }] }]
  }
}

function shown({ labels, annotations, sinceMs }: NotifiedAlert): ShownAlert {
  return {
    labels: Object.fromEntries(labels),
    annotations: Object.fromEntries(annotations),
    state: 'firing',
    value: 1,
    activeMs: sinceMs,
    keptSinceMs: undefined,
  }
}
