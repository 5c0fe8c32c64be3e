/** What drains know of the metrics that they deliver. */
import type { Label } from '../../kit/delivered-values.ts'
import { byKind, type Metric, ownLabels } from '../../kit/metrics.ts'
import type { OwnView } from '../../kit/peer.ts'
import type { DeliveredChannel } from '../../kit/push.ts'
import type { Clock } from '../../kit/running.ts'
import { otlpWire } from './otlp.ts'
import type { DrainWire } from './outgoing.ts'
import { remoteWrite } from './prometheus.ts'

/** Families that others have brought in over the same protocols: a drain that does not name them would send them in circles. */
const NAMED_ONLY = ['prometheus.', 'otlp.']

type Sensors = Pick<OwnView, 'sensors'>

export function wireOf(
  protocol: 'prometheus' | 'otlp',
  { sensors }: Sensors,
  tenant: string,
  clock: Pick<Clock, 'monotonicMs'>,
): DrainWire {
  const metricOf = metricsOf(sensors, tenant)
  return protocol === 'prometheus' ? remoteWrite(metricOf, () => clock.monotonicMs()) : otlpWire(metricOf)
}

/** What is known of a metric of a tenant, by its name. */
export function metricsOf(sensors: OwnView['sensors'], tenant: string): (name: string) => Metric | undefined {
  return (name) => {
    for (const sensor of sensors) {
      const { family, owner } = sensor
      if (!name.startsWith(family) || (owner !== 'producer' && owner.tenant !== tenant)) continue
      const metric = sensor.metric(name)
      if (metric !== undefined) return metric
    }
    return undefined
  }
}

/** Names whose labels are remembered; with more, all are looked up again. */
const MAX_LABELLED = 10_000

/** What is measured here has the labels of its sensor, `host` above all. */
export function sensorLabels({ sensors }: Sensors): (name: string) => readonly Label[] {
  const known = new Map<string, readonly Label[]>()
  return (name) => {
    let labels = known.get(name)
    if (labels === undefined) {
      const sensor = byKind(sensors).polled.find(({ family }) => name.startsWith(family))
      const metric = sensor?.metric(name)
      labels = sensor !== undefined && metric !== undefined ? ownLabels(sensor.labels(metric)) : []
      if (known.size >= MAX_LABELLED) known.clear()
      known.set(name, labels)
    }
    return labels
  }
}

/**
 * Whether a metric is the server's own, which every tenant may read. If a sensor of the tenant has the same family, as a plug-in
 * may, only the server's may know the metric: otherwise the tenant would lose values.
 */
export function isOfServer({ sensors }: Sensors, tenant: string): (name: string) => boolean {
  return (name) => {
    let ofServer = false
    let ofTenant = false
    let isOwn = false
    let isTheirs = false
    for (const sensor of sensors) {
      const { family, owner } = sensor
      if (!name.startsWith(family)) continue
      if (owner === 'producer') {
        ofServer = true
        isOwn ||= sensor.metric(name) !== undefined
      } else if (owner.tenant === tenant) {
        ofTenant = true
        isTheirs ||= sensor.metric(name) !== undefined
      }
    }
    return ofServer && (!ofTenant || (isOwn && !isTheirs))
  }
}

/** Whether values of a metric are delivered: where a family has to be named, a binding of the channel does so. */
export function isNamedOn({ bindings }: DeliveredChannel): (name: string) => boolean {
  return (name) => {
    const family = NAMED_ONLY.find((prefix) => name.startsWith(prefix))
    if (family === undefined) return true
    for (const { instance } of bindings.values()) if (instance.selection.name.startsWith(family)) return true
    return false
  }
}
