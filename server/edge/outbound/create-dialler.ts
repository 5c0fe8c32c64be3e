/** Connects the dialler to the rest of the server. */
import { mayRead } from '../../../auth/permissions.ts'
import type { AuditLog } from '../../kernel/accounts/audit/log.ts'
import type { Rights } from '../../kernel/accounts/rights.ts'
import type { Channel } from '../../kernel/channels/channel.ts'
import type { Registry } from '../../kernel/channels/registry.ts'
import type { Hub } from '../../kernel/metrics/hub.ts'
import type { Sensor } from '../../kernel/metrics/metric.ts'
import type { Notices } from '../../kernel/producer/notices.ts'
import type { SessionContext } from '../../kernel/sessions/context.ts'
import { noCounts } from '../../wings/drains/counts.ts'
import { Drain } from '../../wings/drains/drain.ts'
import { isNamedOn, sensorLabels, wireOf } from '../../wings/drains/metrics.ts'
import { openReceiver } from '../../wings/drains/post.ts'
import { GmetricPackets } from '../../wings/gmetric/send-packets.ts'
import { GmetricSender, openDatagrams } from '../../wings/gmetric/sender.ts'
import type { DialSection } from '../config.ts'
import { AllowList } from './allow-list.ts'
import type { Destination } from './destination.ts'
import { Dialler, type DiallerOptions } from './dialler.ts'
import { openConnection } from './open-connection.ts'
import { type Resolver, systemResolver } from './resolve.ts'

/** One notice of refused values in this time is enough. */
const NOTICE_MS = 60_000

export interface CreateDiallerOptions
  extends Pick<SessionContext, 'clock' | 'log' | 'journal' | 'accounts' | 'quotas' | 'work'> {
  readonly audit: AuditLog
  readonly config: { readonly dial: DialSection; readonly producer: { readonly name: string } }
  readonly registry: Registry
  readonly hub: Pick<Hub, 'sensors'>
  readonly rights: Rights
  readonly notices: Pick<Notices, 'emit'>
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

function pushConnector(options: CreateDiallerOptions): DiallerOptions['openPush'] {
  const { config, clock, log, registry, hub } = options
  return async (channel, destination, address, bearer) => {
    if (destination.isHttp) return openDrain(options, channel, destination, address, bearer)
    const { port, url } = destination
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

/** Values of one request at most, how long one waits for others, and how long the destination may take. */
const DRAIN = { batchSize: 2_000, batchAgeMs: 1_000 }
const TIMEOUT_MS = 30_000

/** Delivers the values of a channel that a consumer has defined. What the destination answers is for the log alone. */
function openDrain(
  { config, clock, log, registry, hub, notices, work }: CreateDiallerOptions,
  channel: Channel,
  { url }: Destination,
  address: string,
  bearer: () => Uint8Array | undefined,
): Drain {
  const [protocol = '', href = ''] = url.split(/\+(.*)/)
  const counts = noCounts()
  const receiver = { href, address, bearer, ca: config.dial.ca, timeoutMs: TIMEOUT_MS }
  let noticedMs = Number.NEGATIVE_INFINITY
  const drain = new Drain({
    table: { name: channel.row.name || String(channel.id), ...DRAIN },
    channel,
    wire: wireOf(protocol as 'prometheus' | 'otlp', hub, channel.owner.tenant),
    destination: openReceiver(receiver, clock),
    clock,
    work,
    random: Math.random,
    isWanted: isNamedOn(channel),
    ownLabels: sensorLabels(hub),
    counts,
    refused({ detail }, { name }) {
      if (clock.monotonicMs() - noticedMs < NOTICE_MS) return
      noticedMs = clock.monotonicMs()
      log.warn({ channel: channel.id, url, metric: name, detail }, 'a destination has refused values')
      const text = `channel ${channel.label}: its destination has refused values, the last of ${name}; they are committed`
      notices.emit({ severity: 'warning', subject: 'channel', detail: text }, channel.owner.userId)
    },
    state(problem) {
      if (problem !== '') log.info({ channel: channel.id, url, detail: problem }, 'values cannot be delivered')
    },
    ended(ended) {
      log.info({ channel: channel.id, url, ...counts }, 'values were delivered')
      registry.detach(channel, ended)
    },
  })
  drain.start()
  return drain
}
