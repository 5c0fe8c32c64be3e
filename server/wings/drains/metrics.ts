/** What drains know of the metrics that they deliver. */
import { byKind, type Metric, ownLabels } from '../../kit/metrics.ts'
import type { OwnView } from '../../kit/peer.ts'
import type { DeliveredChannel } from '../../kit/push.ts'
import type { Clock } from '../../kit/running.ts'
import { otlpWire } from './otlp.ts'
import type { DrainWire, Label } from './outgoing.ts'
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
    const sensor = sensors.find(({ family, owner }) => {
      return name.startsWith(family) && (owner === 'producer' || owner.tenant === tenant)
    })
    return sensor?.metric(name)
  }
}

/** What is measured here has the labels of its sensor, `host` above all. */
export function sensorLabels({ sensors }: Sensors): (name: string) => readonly Label[] {
  const known = new Map<string, readonly Label[]>()
  return (name) => {
    let labels = known.get(name)
    if (labels === undefined) {
      const sensor = byKind(sensors).polled.find(({ family }) => name.startsWith(family))
      const metric = sensor?.metric(name)
      labels = sensor !== undefined && metric !== undefined ? ownLabels(sensor.labels(metric)) : []
      known.set(name, labels)
    }
    return labels
  }
}

/** Whether a metric is the server's own, which every tenant may read. */
export function isOfServer({ sensors }: Sensors): (name: string) => boolean {
  return (name) => sensors.some(({ family, owner }) => owner === 'producer' && name.startsWith(family))
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
