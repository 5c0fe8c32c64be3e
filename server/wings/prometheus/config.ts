/** The section [prometheus]. */
import { z } from 'zod'
import { camelCased, duration, liveKey, pathOrOff, type Section, type SectionConfig, tenant } from '../../kit/config.ts'

const type = z
  .strictObject({
    keep: liveKey(duration('1m', '7d'), '10m', 'How long a series is kept after its last value.'),
    scrape_config: liveKey(
      pathOrOff(),
      '',
      'A `prometheus.yml` whose `scrape_configs` are scraped, besides `[[scrape]]`: [sources/scrape.md](sources/scrape.md#a-prometheusyml).',
    ),
    scrape_tenant: liveKey(tenant(), 'default', 'The tenant that these metrics belong to.'),
  })
  .describe(
    'Series that Prometheus and others write to /api/v1/write of the HTTP listeners with a token (remote write).',
  )

export const prometheusSection = {
  type,
  read: ({ keep, ...rest }: z.output<typeof type>) => ({ ...camelCased(rest), keepMs: keep }),
} satisfies Section<typeof type>
export type PrometheusSection = SectionConfig<typeof prometheusSection>
