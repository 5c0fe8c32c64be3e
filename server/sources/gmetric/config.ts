/** The section [gmetric]: Ganglia, in place of a gmond that only listens. */
import { z } from 'zod'
import { camelCased, type Section, type SectionConfig } from '../../config/schema.ts'
import {
  addressOrOff,
  duration,
  feeds,
  integer,
  ipv4OrOff,
  key,
  multicastOrOff,
  networks,
  oneOf,
  tenant,
  toggle,
  wireName,
} from '../../config/value-types.ts'

const type = z
  .strictObject({
    listen: key(addressOrOff(), '127.0.0.1:8649', 'The UDP address for gmetric packets.'),
    multicast: key(
      multicastOrOff(),
      '',
      "A multicast group to join, as gmond's own 239.2.11.71; its port is that of `listen`, or 8649 where that is off.",
    ),
    multicast_interface: key(
      ipv4OrOff(),
      '',
      'The address of the interface to join it on; left out, the system takes one.',
    ),
    request_metadata: key(
      oneOf('off', 'sender', 'multicast'),
      'off',
      'Whom to ask for the metadata of a value that came without: the address it came from, or the group; at the port ' +
        'where packets are taken here.',
    ),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    feed: key(
      feeds(),
      [],
      'Sources of other tenants, by the networks they send from; the first that fits counts. Only in the file.',
    ),
    allow: key(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses that packets are taken from.'),
    spoof: key(toggle(), true, 'Whether a packet may speak for another host.'),
    packets_per_second: key(integer(0, 1_000_000_000), 100_000n, 'Packets taken from one source; 0 is no limit.'),
    max_hosts: key(integer(1, 1_000_000), 10_000n, 'Hosts remembered at once.'),
    max_metrics: key(integer(1, 16_777_216), 100_000n, 'Metrics remembered at once, of all hosts together.'),
    host_tmax: key(duration('1s', '1d'), '20s', 'A host that was silent for four times this is down.'),
    host_dmax: key(duration('1s', '3650d'), '1d', 'A host that was silent for so long is forgotten with its metrics.'),
    xml: key(
      addressOrOff(),
      '',
      "The TCP address where gmetad polls: gmond's XML, without login, of the tenant `tenant`; gmond's own port is 8649.",
    ),
    xml_allow: key(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses that may read it.'),
    cluster: key(wireName(), 'unspecified', 'What the cluster is called there.'),
  })
  .superRefine((section, context) => {
    if (section.request_metadata !== 'multicast' || section.multicast !== undefined) return
    const message = 'is `multicast`, but no group is joined: name `gmetric.multicast`'
    context.addIssue({ code: 'custom', path: ['request_metadata'], params: { also: 'multicast' }, message })
  })
  .describe(
    'Ganglia gmetric. An address named here or by the environment must be free; the default one is only tried, and ' +
      'the server starts without it.',
  )

export const gmetricSection = {
  type,
  read({ feed, host_tmax, host_dmax, ...rest }: z.output<typeof type>, written?: ReadonlySet<string>) {
    return {
      ...camelCased(rest),
      /** Whether `listen` was written: then it must be bound, while the default address is only tried. */
      listenNamed: written?.has('listen') ?? false,
      feeds: feed,
      hostTmaxMs: host_tmax,
      hostDmaxMs: host_dmax,
    }
  },
} satisfies Section<typeof type>
export type GmetricSection = SectionConfig<typeof gmetricSection>
