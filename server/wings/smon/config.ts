/** The section [smon]. */
import { z } from 'zod'
import {
  addressOrOff,
  camelCased,
  feed,
  feeds,
  integer,
  key,
  liveKey,
  networks,
  peers,
  type Section,
  type SectionConfig,
  tenant,
} from '../../kit/config.ts'

const type = z
  .strictObject({
    tcp: key(addressOrOff(), '', 'The TCP address for smon streams; several sources may connect.'),
    udp: key(addressOrOff(), '', 'The UDP address for smon datagrams, each of which is a complete stream.'),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    feed: key(
      feeds(feed()),
      [],
      'Sources of other tenants, by the networks they send from; the first match counts. Only in the file.',
    ),
    allow: liveKey(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses from which streams are accepted.'),
    max_sources: key(
      integer(1, 100_000),
      1_000n,
      'The largest number of open streams and senders of datagrams together.',
    ),
    max_tokens: key(integer(1, 1_000_000), 10_000n, 'The largest number of tokens that one stream may define.'),
    max_metrics: key(integer(1, 16_777_216), 100_000n, 'The largest number of metrics of all sources together.'),
    source: key(peers(), [], 'Names for sources, which are otherwise named by address and port. Only in the file.'),
  })
  .describe('smon streams. Off unless an address is set, which must then be free.')

export const smonSection = {
  type,
  read: ({ feed, source, ...rest }: z.output<typeof type>) => ({ ...camelCased(rest), feeds: feed, sources: source }),
} satisfies Section<typeof type>
export type SmonSection = SectionConfig<typeof smonSection>
