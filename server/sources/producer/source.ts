/** `producer.*`: what the server says of itself. It has no section of its own, so it is no line of the table. */
import { QuotaNotices } from '../over-quota.ts'
import type { OpenedSource, SourceContext, StatusEntry } from '../source.ts'
import { AuditSensor } from './audit.ts'
import { channelsView } from './channels.ts'
import { controlsView } from './controls.ts'
import { metricsView } from './metrics.ts'
import { ProducerSensor } from './sensor.ts'
import { sensorsView } from './sensors.ts'
import { statsView } from './stats.ts'

/** `statuses`: the entries of `producer.sensors`. */
export function openProducer(
  { hub, clock, log, quotas, notices, server }: SourceContext,
  statuses: () => readonly StatusEntry[],
): OpenedSource {
  const views = [
    metricsView(() => hub.sensors, server.rights),
    controlsView((identity) => server.controls(identity)),
    channelsView(() => server.channels()),
    sensorsView(statuses, hub.fences),
    statsView((identity) => server.stats(identity)),
  ]
  const overQuota = new QuotaNotices(quotas, notices, clock)
  return {
    sensors: [new ProducerSensor(views, clock), new AuditSensor(server.audit, log)],
    sweep: () => overQuota.report(),
  }
}
