/**
 * `gmetric.*` and `ganglia.*`: the values and hosts of Ganglia. The listeners are the UDP socket for packets, the multicast
 * group, and the XML for gmetad.
 */

import { type Address, formatAddress } from '../../kernel/core/address.ts'
import { ListenError } from '../../kernel/core/listen.ts'
import type { Logger } from '../../kernel/core/log.ts'
import { AllowedSenders, type SensorsByTenant, sensorsByTenant } from '../../kit/by-tenant.ts'
import type { Pacing } from '../../kit/io/pacer.ts'
import { listenUdp, type UdpListening, type UdpOptions } from '../../kit/io/udp.ts'
import type { Source } from '../../kit/source.ts'
import type { GmetricSection, gmetricSection } from './config.ts'
import { gmetricDestination } from './destination.ts'
import { GmetricSensor } from './sensor.ts'
import { type DocumentsListening, listenDocuments } from './xml-listener.ts'

export const gmetric: Source<typeof gmetricSection> = {
  open({ producer, hub, clock, log, quotas, pacing }, config) {
    const sensors = sensorsByTenant(config, quotas, (section, feed) => new GmetricSensor(section, hub, clock, feed))
    const readers = new AllowedSenders(config.xmlAllow)
    return {
      sensors: sensors.all().flatMap((sensor) => [sensor, sensor.liveness]),
      destinations: [gmetricDestination({ name: producer.name, hub, clock, log })],
      async listen(listeners) {
        const { packets, xml } = await listenGmetric(sensors, readers, config, { log, pacing }, listeners.opened)
        listeners.bound({ key: 'gmetric.listen', use: 'gmetric', transport: 'udp' }, packets)
        listeners.bound({ key: 'gmetric.xml', use: "gmond's xml", transport: 'tcp' }, xml)
      },
      sweep() {
        for (const sensor of sensors.all()) {
          sensor.sweep()
          sensor.liveness.sweep()
        }
      },
      reload({ allow, xmlAllow }) {
        sensors.allow(allow)
        readers.replace(xmlAllow)
      },
    }
  },
}

const GANGLIA_PORT = 8649

export interface GmetricListening {
  /** The address that packets are received on; undefined if it is off, or its default address was not free. */
  readonly packets: Address | undefined
  readonly xml: Address | undefined
}

interface GmetricListenContext {
  readonly log: Pick<Logger, 'warn' | 'error'>
  readonly pacing: Pick<Pacing, 'turns' | 'faults'>
}

type Opened = <T extends { close(): Promise<void> }>(listening: T) => T

/** Hands each listener to `opened`, even if a later one fails. Rejects with ListenError. */
export async function listenGmetric(
  sensors: SensorsByTenant<GmetricSensor>,
  readers: AllowedSenders,
  config: GmetricSection,
  { log, pacing }: GmetricListenContext,
  opened: Opened,
): Promise<GmetricListening> {
  const common: Omit<UdpOptions, 'address' | 'groupOn' | 'key'> = {
    rival: 'gmond or another server',
    turns: pacing.turns,
    packet: (bytes, source) => sensors.of(source).packet(bytes, source),
    packetFailed: (error, source) => pacing.faults.report(sensors.of(source), error),
    failed: (error) => {
      log.error({ err: error }, 'the gmetric listener failed')
      for (const sensor of sensors.all()) sensor.failed(error.message)
    },
  }
  let direct: UdpListening | undefined
  let failure: ListenError | undefined
  if (config.listen !== undefined) {
    try {
      direct = opened(await listenUdp({ ...common, address: config.listen, key: 'gmetric.listen' }))
    } catch (error) {
      if (config.listenNamed || !(error instanceof ListenError)) throw error
      failure = error
      log.warn(`${error.message}: the server starts without gmetric`)
    }
  }
  const port = direct?.address.port ?? (config.listen?.port || GANGLIA_PORT)
  let group: UdpListening | undefined
  if (config.multicast !== undefined) {
    const address = { host: config.multicast, port }
    const groupOn = config.multicastInterface ?? ''
    const key = 'gmetric.multicast'
    if (direct?.isEverywhere) direct.join(config.multicast, groupOn, key)
    group = direct?.isEverywhere ? direct : opened(await listenUdp({ ...common, address, groupOn, key }))
  }
  const xml =
    config.xml === undefined ? undefined : opened(await listenXml(sensors.own, readers, config.xml, config, log))
  setStatus(sensors, { direct, group, xml, failure })
  sendRequests(sensors, config, { direct, group, port })
  return { packets: direct?.address, xml: xml?.address }
}

function listenXml(
  sensor: GmetricSensor,
  readers: AllowedSenders,
  address: Address,
  config: GmetricSection,
  log: Pick<Logger, 'error'>,
): Promise<DocumentsListening> {
  return listenDocuments({
    address,
    key: 'gmetric.xml',
    // While the sensor is fenced nobody may read it. An empty document would be wrong: it reports a cluster without hosts.
    allowed: (source) => !sensor.isFenced && readers.check(source).allowed,
    document: () => sensor.document(config.cluster),
    failed: (error) => log.error({ err: error }, 'the XML for gmetad could not be made'),
  })
}

interface Open {
  readonly direct: UdpListening | undefined
  readonly group: UdpListening | undefined
  readonly xml: DocumentsListening | undefined
  readonly failure: ListenError | undefined
}

/** Sets the status of each sensor. The XML and its counters belong to the section's own tenant alone. */
function setStatus(sensors: SensorsByTenant<GmetricSensor>, { direct, group, xml, failure }: Open): void {
  const packets = [...new Set([direct, group])].filter((each) => each !== undefined)
  const kernelDrops = (): number | undefined => {
    const drops = packets.map((each) => each.kernelDrops()).filter((each) => each !== undefined)
    return drops.length === 0 ? undefined : drops.reduce((sum, each) => sum + each)
  }
  const addresses = packets.map(({ address }) => `udp ${formatAddress(address)}`)
  for (const sensor of sensors.all()) {
    const isShown = xml !== undefined && sensor === sensors.own
    const detail = [...addresses, ...(isShown ? [`xml ${formatAddress(xml.address)}`] : [])].join(', ')
    if (detail !== '') sensor.listens(detail, kernelDrops)
    if (isShown) sensor.servesXml(xml.counts)
    if (failure && addresses.length === 0) sensor.failed(failure.message)
  }
}

function sendRequests(
  sensors: SensorsByTenant<GmetricSensor>,
  { requestMetadata, multicast }: GmetricSection,
  { direct, group, port }: Pick<Open, 'direct' | 'group'> & { readonly port: number },
): void {
  const from = requestMetadata === 'multicast' ? group : (direct ?? group)
  if (requestMetadata === 'off' || from === undefined) return
  const isGroup = requestMetadata === 'multicast' && multicast !== undefined
  for (const sensor of sensors.all())
    sensor.sendRequestsBy((request, source) => from.send(request, isGroup ? multicast : source, port))
}
