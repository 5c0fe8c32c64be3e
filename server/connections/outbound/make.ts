/** Joins the dialler to the rest of the server. */
import { mayRead } from '../../../auth/permissions.ts'
import type { AuditLog } from '../../accounts/audit/log.ts'
import type { Rights } from '../../accounts/rights.ts'
import type { Registry } from '../../channels/registry.ts'
import type { Hub } from '../../metrics/hub.ts'
import type { Sensor } from '../../metrics/metric.ts'
import type { SessionContext } from '../../sessions/context.ts'
import { GmetricPackets } from '../../sources/gmetric/send-packets.ts'
import { GmetricSender, openDatagrams } from '../../sources/gmetric/sender.ts'
import type { DialSection } from '../config.ts'
import { AllowList } from './allow-list.ts'
import { reach } from './connect.ts'
import { Dialler, type DiallerOptions } from './dialler.ts'
import { type Resolver, systemResolver } from './resolve.ts'

export interface DialParts extends Pick<SessionContext, 'clock' | 'log' | 'journal' | 'accounts' | 'quotas'> {
  readonly audit: AuditLog
  readonly config: { readonly dial: DialSection; readonly producer: { readonly name: string } }
  readonly registry: Registry
  readonly hub: Pick<Hub, 'sensors'>
  readonly rights: Rights
  readonly serverSecret: Uint8Array
  /** Instead of the system's. */
  readonly resolve?: Resolver | undefined
}

export function makeDialler(parts: DialParts): Dialler {
  const { config, clock, log, audit, journal, accounts, quotas, registry, rights, serverSecret } = parts
  const { ca } = config.dial
  return new Dialler({
    clock,
    log,
    audit,
    stored: () => journal.whenStored(),
    allow: new AllowList(config.dial.allow),
    mayDial: (identity, object) => {
      return rights.judge(identity, { command: 'DEF_CHANNEL', object, argument: () => undefined }).allowed
    },
    account: (id) => accounts.byId(id),
    rate: (tenant) => quotas.of(tenant).dials,
    resolve: parts.resolve ?? systemResolver,
    reach: (destination, address, signal) => reach(destination, address, { clock, ca }, signal),
    oneWay: oneWayOf(parts),
    attach: (channel, connection) => registry.attach(channel, connection),
    serverSecret,
    random: Math.random,
  })
}

function oneWayOf({ config, clock, log, registry, hub }: DialParts): DiallerOptions['oneWay'] {
  return async (channel, { port, url }, address) => {
    const packets = new GmetricPackets({
      name: config.producer.name,
      now: () => clock.monotonicMs(),
      metric: (name) => {
        const isIts = ({ family, owner }: Sensor): boolean => name.startsWith(family) && mayRead(channel.owner, owner)
        return hub.sensors.find(isIts)?.metric(name)
      },
    })
    const datagrams = await openDatagrams(address, port)
    return new GmetricSender({
      channel,
      datagrams,
      packets,
      ended: (sender, counts) => {
        log.info({ channel: channel.id, url, ...counts }, 'values were sent by gmetric')
        registry.detach(channel, sender)
      },
    })
  }
}
