/** The section [gmetric]: Ganglia, as a replacement for a gmond that only listens. */
import { z } from 'zod'
import {
  addressOrOff,
  camelCased,
  duration,
  feed,
  feeds,
  integer,
  ipv4OrOff,
  key,
  liveKey,
  multicastOrOff,
  networks,
  oneOf,
  type Section,
  type SectionConfig,
  tenant,
  toggle,
  wireName,
} from '../../kit/config.ts'

/** The XML of a feed is that of its tenant alone. */
const feedWithXml = feed()
  .extend({
    xml: addressOrOff().type.prefault(''),
    xml_allow: networks().type.prefault(['127.0.0.0/8', '::1/128']),
    cluster: wireName().type.optional(),
  })
  .transform(({ xml_allow, cluster, ...rest }) => ({ ...rest, xmlAllow: xml_allow, cluster: cluster ?? rest.tenant }))

const type = z
  .strictObject({
    listen: key(addressOrOff(), '127.0.0.1:8649', 'The UDP address for gmetric packets.'),
    multicast: key(
      multicastOrOff(),
      '',
      "A multicast group to join, such as gmond's own 239.2.11.71; its port is that of `listen`, or 8649 if that is off.",
    ),
    multicast_interface: key(
      ipv4OrOff(),
      '',
      'The address of the interface on which to join the group; if left out, the system chooses one.',
    ),
    request_metadata: key(
      oneOf('off', 'sender', 'multicast'),
      'off',
      'Whom to ask for the metadata of a value that came without: its sender, or the multicast group; at the port on ' +
        'which this server receives packets.',
    ),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    feed: key(
      feeds(
        feedWithXml,
        ', and `xml`, `xml_allow` and `cluster` as below (by default off, this machine, and the name of the tenant)',
      ),
      [],
      'Sources of other tenants, by the networks they send from; the first match counts. Only in the file.',
    ),
    allow: liveKey(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses from which packets are accepted.'),
    spoof: key(toggle(), true, 'Whether a packet may report for another host.'),
    packets_per_second: key(
      integer(0, 1_000_000_000),
      100_000n,
      'Packets accepted per second from one source; 0 means no limit.',
    ),
    max_hosts: key(integer(1, 1_000_000), 10_000n, 'The largest number of hosts.'),
    max_metrics: key(integer(1, 16_777_216), 100_000n, 'The largest number of metrics of all hosts together.'),
    host_tmax: key(duration('1s', '1d'), '20s', 'A host that has been silent for four times this long is down.'),
    host_dmax: key(
      duration('1s', '3650d'),
      '1d',
      'A host that has been silent for this long is removed with its metrics.',
    ),
    xml: key(
      addressOrOff(),
      '',
      "The TCP address that gmetad polls: gmond's XML of the tenant `tenant`, without login; gmond's own port is 8649.",
    ),
    xml_allow: liveKey(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses that may read the XML.'),
    cluster: key(wireName(), 'unspecified', 'The name of the cluster in the XML.'),
  })
  .superRefine((section, context) => {
    if (section.request_metadata !== 'multicast' || section.multicast !== undefined) return
    const message = 'is `multicast`, but no group is joined: set `gmetric.multicast`'
    context.addIssue({ code: 'custom', path: ['request_metadata'], params: { also: 'multicast' }, message })
  })
  .describe(
    'Ganglia gmetric. An address that is set here or by the environment must be free. If the default address is not ' +
      'free, the server starts without gmetric.',
  )

export const gmetricSection = {
  type,
  read({ feed, host_tmax, host_dmax, ...rest }: z.output<typeof type>, written?: ReadonlySet<string>) {
    return {
      ...camelCased(rest),
      /** Whether `listen` is set: then it must be bound, while the default address is only tried. */
      listenNamed: written?.has('listen') ?? false,
      feeds: feed,
      hostTmaxMs: host_tmax,
      hostDmaxMs: host_dmax,
    }
  },
} satisfies Section<typeof type>
export type GmetricSection = SectionConfig<typeof gmetricSection>
