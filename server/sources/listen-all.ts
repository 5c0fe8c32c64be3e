/**
 * Opens what sensors listen on. Only when bindings are back from the store: a value that arrives before would be nobody's.
 */
import { type Address, formatAddress } from '../core/address.ts'
import type { Config } from '../start/config.ts'
import type { Parts } from '../start/parts.ts'
import type { Feeds as ByTenant } from './by-tenant.ts'
import { listenGmetric } from './gmetric/listen.ts'
import type { GmetricSensor } from './gmetric/sensor.ts'
import { pacersOf } from './io/pacers.ts'
import { listenFeed } from './io/tcp.ts'
import { listenUdp } from './io/udp.ts'
import { listenMono } from './mono/listen.ts'
import type { MonoSensor } from './mono/sensor.ts'
import type { AgentPost } from './qmf/agent/post.ts'
import { connectQmf } from './qmf/connect.ts'
import type { QmfSensor } from './qmf/sensor.ts'
import type { SmonSensor } from './smon/sensor.ts'

export interface Feeds {
  /** Where gmetric packets are taken; undefined: off, or its default address was not free. */
  readonly gmetric: Address | undefined
  /** Where gmetad polls; undefined: off. */
  readonly gmetricXml: Address | undefined
  /** Where smon streams and datagrams are taken; undefined: off. */
  readonly smonTcp: Address | undefined
  readonly smonUdp: Address | undefined
  /** Where Mono agents connect. */
  readonly mono: readonly Address[]
  close(): Promise<void>
}

type Server = Pick<Parts, 'producer' | 'behind'>

export interface Listening {
  readonly gmetric: ByTenant<GmetricSensor>
  readonly smon: ByTenant<SmonSensor>
  readonly mono: ByTenant<MonoSensor>
  /** Of each tenant that has brokers. */
  readonly qmf: readonly QmfSensor[]
  /** Of the brokers that this server is an agent of. */
  readonly agents: readonly AgentPost[]
}

/** Rejects with ListenError for an address that the configuration names; nothing is left open then. */
export async function listenFeeds(
  { gmetric, smon, mono, qmf, agents }: Listening,
  config: Config,
  server: Server,
): Promise<Feeds> {
  const open: { close(): Promise<void> }[] = []
  const opened = <T extends { close(): Promise<void> }>(listening: T): T => {
    open.push(listening)
    return listening
  }
  const close = async (): Promise<void> => {
    for (const listening of open.splice(0)) await listening.close()
  }
  try {
    const { clock, journal, log } = server.producer
    const ganglia = await listenGmetric(gmetric, config.gmetric, server.producer.log, opened)
    const bound = {
      gmetric: ganglia.packets,
      gmetricXml: ganglia.xml,
      smonTcp: await listenSmonTcp(smon, config, server, opened),
      smonUdp: await listenSmonUdp(smon, config, server, opened),
      mono: await listenMono(mono, config.mono, { clock, journal, log, behind: server.behind }, opened),
    }
    opened(connectQmf({ sensors: qmf, agents }, config.qmf, { clock, journal, log, behind: server.behind }))
    return { ...bound, close }
  } catch (error) {
    await close()
    throw error
  }
}

type Opened = <T extends { close(): Promise<void> }>(listening: T) => T

async function listenSmonTcp(
  sensors: ByTenant<SmonSensor>,
  { smon: { tcp: address } }: Config,
  { producer, behind }: Server,
  opened: Opened,
): Promise<Address | undefined> {
  if (address === undefined) return undefined
  const { clock, journal } = producer
  const pacerOf = pacersOf(sensors.all(), { clock, journal, behind })
  const listening = opened(
    await listenFeed({
      address,
      key: 'smon.tcp',
      open(from, port) {
        const sensor = sensors.of(from)
        const taker = sensor.open(from, port)
        return taker && { taker, pacer: pacerOf(sensor) }
      },
    }),
  )
  for (const sensor of sensors.all()) sensor.listens(`tcp ${formatAddress(listening.address)}`)
  return listening.address
}

async function listenSmonUdp(
  sensors: ByTenant<SmonSensor>,
  { smon: { udp: address } }: Config,
  { producer: { log } }: Server,
  opened: Opened,
): Promise<Address | undefined> {
  if (address === undefined) return undefined
  const listening = opened(
    await listenUdp({
      address,
      key: 'smon.udp',
      rival: 'another server',
      packet: (bytes, source, port) => sensors.of(source).datagram(bytes, source, port),
      failed: (error) => {
        log.error({ err: error }, 'the smon listener for datagrams failed')
        for (const sensor of sensors.all()) sensor.failed(error.message)
      },
    }),
  )
  for (const sensor of sensors.all()) {
    sensor.listens(`udp ${formatAddress(listening.address)}`, () => listening.kernelDrops())
  }
  return listening.address
}
