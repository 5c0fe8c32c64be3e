/** The tables `[[statsd]]`: where StatsD is listened for, each for one tenant. */
import { z } from 'zod'
import {
  addressOrOff,
  duration,
  integer,
  key,
  networks,
  type SectionConfig,
  tableList,
  tenant,
} from '../../kit/config.ts'

const table = z
  .strictObject({
    udp: key(addressOrOff(), '', 'The UDP address for datagrams of lines.'),
    tcp: key(addressOrOff(), '', 'The TCP address for streams of lines.'),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    allow: key(networks(), ['127.0.0.0/8', '::1/128'], 'Addresses from which lines are accepted.'),
    flush: key(duration('1s', '10m'), '10s', 'How often what has come in is summed up and becomes values.'),
    keep: key(
      duration('1m', '7d'),
      '10m',
      'How long a metric is kept after its last line; a counter then begins anew.',
    ),
    max_metrics: key(integer(1, 10_000_000), 100_000n, 'The largest number of names with their tags.'),
  })
  .superRefine(({ udp, tcp }, context) => {
    if (udp === undefined && tcp === undefined) {
      context.addIssue({ code: 'custom', message: 'it listens nowhere: set `udp` or `tcp`' })
    }
  })
  .transform(({ udp, tcp, tenant, allow, flush, keep, max_metrics }) => {
    return { udp, tcp, tenant, allow, flushMs: flush, keepMs: keep, maxMetrics: max_metrics }
  })

export const statsdSection = tableList(
  z
    .array(table)
    .max(100)
    .default([])
    .describe(
      'Where StatsD is listened for, one table each; only in the file. What becomes of its lines: ' +
        '[sources/statsd.md](sources/statsd.md).',
    ),
)
export type StatsdTable = SectionConfig<typeof statsdSection>[number]
