/** The source `otlp`: metrics of OpenTelemetry, a sensor for each tenant. */
import type { Source } from '../../kit/source.ts'
import type { otlpSection } from './config.ts'
import { OtlpDoor } from './door.ts'
import { OTLP_FAMILY } from './values.ts'

export const otlp: Source<typeof otlpSection> = {
  open({ door, clock }, config) {
    let { keepMs } = config
    const family = door.http(
      { family: OTLP_FAMILY, kind: 'otlp', from: 'POST /v1/metrics', keptMs: () => keepMs },
      (publication) => new OtlpDoor({ publication, clock }),
    )
    return {
      sweep: () => family.sweep(),
      reload: (config) => {
        keepMs = config.keepMs
      },
    }
  },
}
