/** The section [otlp]. */
import { z } from 'zod'
import { camelCased, duration, liveKey, type Section, type SectionConfig } from '../../kit/config.ts'

const type = z
  .strictObject({
    keep: liveKey(duration('1m', '7d'), '10m', 'How long a series is kept after its last value.'),
  })
  .describe('Metrics of OpenTelemetry, which programs POST to /v1/metrics of the HTTP listeners with a token.')

export const otlpSection = {
  type,
  read: ({ keep, ...rest }: z.output<typeof type>) => ({ ...camelCased(rest), keepMs: keep }),
} satisfies Section<typeof type>
export type OtlpSection = SectionConfig<typeof otlpSection>
