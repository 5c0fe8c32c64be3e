/** The source `otlp`: metrics of OpenTelemetry, a sensor for each tenant. */
import { LabelledFamily } from '../../kit/labelled-sensor.ts'
import { Publication } from '../../kit/publication.ts'
import type { Source } from '../../kit/source.ts'
import type { otlpSection } from './config.ts'
import { OtlpDoor } from './door.ts'
import { OTLP_FAMILY } from './values.ts'

export const otlp: Source<typeof otlpSection> = {
  open({ hub, quotas, clock, intake, work, server }, config) {
    let { keepMs } = config
    const family = new LabelledFamily({
      family: OTLP_FAMILY,
      kind: 'otlp',
      from: 'POST /v1/metrics',
      hub,
      quotas,
      clock,
      keptMs: () => keepMs,
      isPublished: true,
    })
    const publication = new Publication({ family, hub, intake, work, clock, rights: server.rights })
    return {
      published: [OTLP_FAMILY],
      doors: [new OtlpDoor({ publication, work, clock })],
      sweep: () => family.sweep(),
      reload: (config) => {
        keepMs = config.keepMs
      },
    }
  },
}
