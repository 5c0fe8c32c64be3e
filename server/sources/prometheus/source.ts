/** The source `prometheus`: what others write by remote write, a sensor for each tenant. */
import { LabelledFamily } from '../labelled-sensor.ts'
import { Publication } from '../publication.ts'
import type { Source } from '../source.ts'
import type { prometheusSection } from './config.ts'
import { PROMETHEUS_FAMILY, WriteDoor } from './door.ts'

export const prometheus: Source<typeof prometheusSection> = {
  open({ hub, quotas, clock, intake, work, server }, config) {
    let { keepMs } = config
    const family = new LabelledFamily({
      family: PROMETHEUS_FAMILY,
      kind: 'prometheus',
      from: 'POST /api/v1/write',
      hub,
      quotas,
      clock,
      keptMs: () => keepMs,
      isPublished: true,
    })
    const publication = new Publication({ family, hub, intake, work, clock, rights: server.rights })
    return {
      published: [PROMETHEUS_FAMILY],
      doors: [new WriteDoor({ publication, work })],
      sweep: () => family.sweep(),
      reload: (config) => {
        keepMs = config.keepMs
      },
    }
  },
}
