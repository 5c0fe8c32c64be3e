/** `producer.*`: metrics about the server itself. They have no section in the configuration, so table.ts does not list them. */

import type { OpenedSource, SourceContext } from '../../kit/source.ts'
import { AuditSensor } from './audit.ts'
import { bindingsView, type FindChannel } from './bindings.ts'
import { controlsView, metricsView } from './catalogue.ts'
import { CatalogueChanges } from './catalogue-changes.ts'
import { connectionsView } from './connections.ts'
import { QuotaNotices } from './notices.ts'
import { recentView } from './recent.ts'
import { ProducerSensor } from './sensor.ts'
import { seriesView } from './series.ts'
import { channelsView, type StatusEntry, sensorsView, statsView } from './status.ts'

/** `statuses` returns the entries of `producer.sensors`. */
export function openProducer(
  { hub, clock, log, quotas, notices, server }: SourceContext,
  statuses: () => readonly StatusEntry[],
): Omit<OpenedSource, 'reload'> {
  const find: FindChannel = (identity, id) => server.channel(identity, id)
  const views = [
    metricsView(() => hub.sensors, server.rights),
    controlsView(
      (identity) => server.controls(identity),
      (producers, identity) => server.remoteControls(producers, identity),
    ),
    channelsView((identity) => server.channelsOf(identity), find),
    bindingsView(find),
    connectionsView((identity) => server.channelsOf(identity)),
    sensorsView(statuses, hub),
    statsView((identity) => server.stats(identity)),
    recentView({ hub, rights: server.rights, clock }),
    seriesView({ hub, rights: server.rights }),
  ]
  const catalogue = new CatalogueChanges(() => hub.sensors, clock)
  const overQuota = new QuotaNotices(quotas, notices, clock)
  return {
    sensors: [new ProducerSensor(views, clock), new AuditSensor(server.audit, log, server.createdOf), catalogue],
    sweep: () => {
      overQuota.report()
      catalogue.sweep()
      hub.recent.sweep()
    },
  }
}
