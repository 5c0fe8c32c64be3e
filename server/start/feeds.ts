/**
 * The sources that take what is sent to one address: in a cluster each node takes it, wherever it is sent. All other sources reach
 * out, are heard the same everywhere, or belong to the machine, and run at the node that leads.
 */
import type { GmetricSection } from '../wings/gmetric/config.ts'
import type { MonoSection } from '../wings/mono/config.ts'
import type { PrometheusSection } from '../wings/prometheus/config.ts'
import type { SmonSection } from '../wings/smon/config.ts'
import type { StatsdTable } from '../wings/statsd/config.ts'

/** The sections of these sources. */
export interface FeedSections {
  readonly gmetric: GmetricSection
  readonly smon: SmonSection
  readonly mono: MonoSection
  readonly statsd: readonly StatsdTable[]
}

/** The prefixes of the families of their metrics, with the dot. */
export const FEED_FAMILIES: readonly string[] = ['gmetric.', 'ganglia.', 'smon.', 'mono.', 'statsd.']

/** The tenants that may be sent something; none if nothing is listened for. */
export function tenantsOfFeeds({ gmetric, smon, mono, statsd }: FeedSections): readonly string[] {
  const tenants = new Set<string>()
  const add = ({ tenant, feeds }: { readonly tenant: string; readonly feeds: readonly { tenant: string }[] }): void => {
    for (const each of [tenant, ...feeds.map((feed) => feed.tenant)]) tenants.add(each)
  }
  if (gmetric.listen !== undefined) add(gmetric)
  if (smon.tcp !== undefined || smon.udp !== undefined) add(smon)
  if (mono.listeners.length > 0) add(mono)
  for (const { tenant } of statsd) tenants.add(tenant)
  return [...tenants].sort()
}

/** The configuration with those sources alone, and without multicast and files. */
export function feedsAlone<C extends FeedSections & { readonly prometheus: PrometheusSection }>(config: C): C {
  const { gmetric, mono, prometheus } = config
  const requestMetadata = gmetric.requestMetadata === 'multicast' ? 'off' : gmetric.requestMetadata
  return {
    ...config,
    gmetric: { ...gmetric, multicast: undefined, requestMetadata },
    mono: { ...mono, files: [] },
    prometheus: { ...prometheus, scrapeConfig: undefined },
    qmf: [],
    scrape: [],
    upstream: [],
    plugin: [],
  }
}
