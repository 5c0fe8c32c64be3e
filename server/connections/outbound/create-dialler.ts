/** Connects the dialler to the rest of the server. */
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
import { Dialler, type DiallerOptions } from './dialler.ts'
import { openConnection } from './open-connection.ts'
import { type Resolver, systemResolver } from './resolve.ts'

export interface CreateDiallerOptions
  extends Pick<SessionContext, 'clock' | 'log' | 'journal' | 'accounts' | 'quotas'> {
  readonly audit: AuditLog
  readonly config: { readonly dial: DialSection; readonly producer: { readonly name: string } }
  readonly registry: Registry
  readonly hub: Pick<Hub, 'sensors'>
  readonly rights: Rights
  readonly serverSecret: Uint8Array
  /** undefined for the resolver of the system. */
  readonly resolve?: Resolver | undefined
}

export function createDialler(options: CreateDiallerOptions): Dialler {
  const { config, clock, log, audit, journal, accounts, quotas, registry, rights, serverSecret } = options
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
    resolve: options.resolve ?? systemResolver,
    hasAuthorities: ca !== undefined,
    connect: (destination, address, signal) => openConnection(destination, address, { clock, ca }, signal),
    openPush: pushConnector(options),
    attach: (channel, connection) => registry.attach(channel, connection),
    serverSecret,
    random: Math.random,
  })
}

function pushConnector({ config, clock, log, registry, hub }: CreateDiallerOptions): DiallerOptions['openPush'] {
  return async (channel, { port, url }, address) => {
    const packets = new GmetricPackets({
      name: config.producer.name,
      now: () => clock.monotonicMs(),
      metric: (name) => {
        const isReadable = ({ family, owner }: Sensor): boolean =>
          name.startsWith(family) && mayRead(channel.owner, owner)
        return hub.sensors.find(isReadable)?.metric(name)
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
