/**
 * Opens what sensors listen on. Only when bindings are back from the store: a value that arrives before would be nobody's.
 */
import { type Address, type Config, formatAddress } from './config.ts'
import { ListenError } from './listeners/errors.ts'
import { listenFeed } from './listeners/feed.ts'
import { Pacer } from './listeners/pacer.ts'
import { listenUdp } from './listeners/udp.ts'
import type { Parts } from './parts.ts'
import type { Feeds as ByTenant } from './sensors/feeds.ts'
import type { GmetricSensor } from './sensors/gmetric/sensor.ts'
import type { SmonFeed, SmonSensor } from './sensors/smon/sensor.ts'

export interface Feeds {
  /** Where gmetric packets are taken; undefined: off, or its default address was not free. */
  readonly gmetric: Address | undefined
  /** Where smon streams and datagrams are taken; undefined: off. */
  readonly smonTcp: Address | undefined
  readonly smonUdp: Address | undefined
  close(): Promise<void>
}

type Server = Pick<Parts, 'producer' | 'behind'>

export interface Listening {
  readonly gmetric: ByTenant<GmetricSensor>
  readonly smon: ByTenant<SmonSensor>
}

/** Rejects with ListenError for an address that the configuration names; nothing is left open then. */
export async function listenFeeds({ gmetric, smon }: Listening, config: Config, server: Server): Promise<Feeds> {
  const open: { close(): Promise<void> }[] = []
  const opened = <T extends { close(): Promise<void> }>(listening: T): T => {
    open.push(listening)
    return listening
  }
  const close = async (): Promise<void> => {
    for (const listening of open.splice(0)) await listening.close()
  }
  try {
    return {
      gmetric: await listenGmetric(gmetric, config, server, opened),
      smonTcp: await listenSmonTcp(smon, config, server, opened),
      smonUdp: await listenSmonUdp(smon, config, server, opened),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

type Opened = <T extends { close(): Promise<void> }>(listening: T) => T

async function listenGmetric(
  sensors: ByTenant<GmetricSensor>,
  { gmetric: config }: Config,
  { producer: { log } }: Server,
  opened: Opened,
): Promise<Address | undefined> {
  if (config.listen === undefined) return undefined
  try {
    const listening = opened(
      await listenUdp({
        address: config.listen,
        key: 'gmetric.listen',
        rival: 'gmond, or another server,',
        packet: (bytes, source) => sensors.of(source).packet(bytes, source),
        failed: (error) => {
          log.error({ err: error }, 'the gmetric listener failed')
          for (const sensor of sensors.all()) sensor.failed(error.message)
        },
      }),
    )
    for (const sensor of sensors.all()) {
      sensor.listens(`udp ${formatAddress(listening.address)}`, () => listening.kernelDrops())
    }
    return listening.address
  } catch (error) {
    if (config.listenNamed || !(error instanceof ListenError)) throw error
    log.warn(`${error.message}: the server starts without gmetric`)
    for (const sensor of sensors.all()) sensor.failed(error.message)
    return undefined
  }
}

async function listenSmonTcp(
  sensors: ByTenant<SmonSensor>,
  { smon: { tcp: address } }: Config,
  { producer, behind }: Server,
  opened: Opened,
): Promise<Address | undefined> {
  if (address === undefined) return undefined
  // Each tenant's streams wait for that tenant's quota alone.
  const pacers = new Map<SmonSensor, Pacer>()
  for (const sensor of sensors.all()) {
    const { meter } = sensor
    const goOn = (resume: () => void): void => {
      if (meter.waitMs > 0) producer.clock.setTimeout(resume, meter.waitMs)
      else producer.journal.wait({ durable: resume })
    }
    pacers.set(sensor, new Pacer({ behind: () => meter.waitMs > 0 || behind(), whenStored: goOn }))
  }
  const open = (from: string, port: number): { taker: SmonFeed; pacer: Pacer } | undefined => {
    const sensor = sensors.of(from)
    const taker = sensor.open(from, port)
    return taker && { taker, pacer: pacers.get(sensor) as Pacer }
  }
  const listening = opened(await listenFeed({ address, key: 'smon.tcp', open }))
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
