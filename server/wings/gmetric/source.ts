/**
 * `gmetric.*` and `ganglia.*`: the values and hosts of Ganglia. The listeners are the UDP socket for packets, the multicast
 * group, and the XML for gmetad.
 */

import { AllowedSenders, type SensorsByTenant, sensorsByTenant } from '../../kit/by-tenant.ts'
import type { DatagramOptions, Door } from '../../kit/door.ts'
import { type Address, formatAddress, ListenError } from '../../kit/io/address.ts'
import type { UdpListening } from '../../kit/io/udp.ts'
import type { Logger } from '../../kit/running.ts'
import type { Source } from '../../kit/source.ts'
import type { GmetricSection, gmetricSection } from './config.ts'
import { gmetricDestination } from './destination.ts'
import { GmetricSensor } from './sensor.ts'
import { type DocumentsListening, listenDocuments } from './xml-listener.ts'

export const gmetric: Source<typeof gmetricSection> = {
  open({ self, clock, log, feed, door, poll, peer }, config) {
    const isFenced = (sensor: GmetricSensor): boolean => poll.refusal(sensor)?.reason === 'fenced'
    const sensors = sensorsByTenant(config, poll, (section, options) => {
      return new GmetricSensor(section, feed, clock, { ...options, isFenced })
    })
    for (const sensor of sensors.all()) {
      feed.add(sensor)
      feed.add(sensor.liveness)
    }
    peer.delivery.offer(gmetricDestination({ name: self.name, view: peer.view, clock, log }))
    const readers = new AllowedSenders(config.xmlAllow)
    return {
      async listen() {
        await listenGmetric(sensors, readers, config, { log, door })
      },
      sweep() {
        for (const sensor of sensors.all()) poll.run(sensor, sensor.sweep())
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
  readonly door: Pick<Door, 'datagrams' | 'listener'>
}

/** What it has opened is closed with the doors, even if a later listener fails. Rejects with ListenError. */
export async function listenGmetric(
  sensors: SensorsByTenant<GmetricSensor>,
  readers: AllowedSenders,
  config: GmetricSection,
  { log, door }: GmetricListenContext,
): Promise<GmetricListening> {
  const common: Omit<DatagramOptions, 'address' | 'groupOn' | 'key'> = {
    rival: 'gmond or another server',
    sensorOf: (source) => sensors.of(source),
    packet: (bytes, source) => sensors.of(source).packet(bytes, source),
    failed({ message }) {
      for (const sensor of sensors.all()) sensor.failed(message)
    },
  }
  let direct: UdpListening | undefined
  let failure: ListenError | undefined
  if (config.listen !== undefined) {
    try {
      direct = await door.datagrams({ ...common, address: config.listen, key: 'gmetric.listen', use: 'gmetric' })
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
    group = direct?.isEverywhere ? direct : await door.datagrams({ ...common, address, groupOn, key })
  }
  const xmls = new Map<GmetricSensor, DocumentsListening>()
  for (const [index, sensor] of sensors.all().entries()) {
    // The section's own tenant is the first, and then those of its feeds come in their order.
    const feed = config.feeds[index - 1]
    const { xml: address, cluster } = feed ?? config
    if (address === undefined) continue
    const key = feed === undefined ? 'gmetric.xml' : `gmetric.feed[${index - 1}].xml`
    const allowed = feed === undefined ? readers : new AllowedSenders(feed.xmlAllow)
    const xml = await listenXml(sensor, { address, key, cluster, readers: allowed }, log)
    door.listener({ key, use: "gmond's xml", transport: 'tcp' }, xml)
    xmls.set(sensor, xml)
  }
  setStatus(sensors, { direct, group, xmls, failure })
  sendRequests(sensors, config, { direct, group, port })
  return { packets: direct?.address, xml: xmls.get(sensors.own)?.address }
}

interface XmlOptions {
  readonly address: Address
  readonly key: string
  readonly cluster: string
  readonly readers: AllowedSenders
}

function listenXml(
  sensor: GmetricSensor,
  { address, key, cluster, readers }: XmlOptions,
  log: Pick<Logger, 'error'>,
): Promise<DocumentsListening> {
  return listenDocuments({
    address,
    key,
    // While the sensor is fenced nobody may read it. An empty document would be wrong: it reports a cluster without hosts.
    allowed: (source) => !sensor.isFenced && readers.check(source).allowed,
    document: () => sensor.document(cluster),
    failed: (error) => log.error({ err: error }, 'the XML for gmetad could not be made'),
  })
}

interface Open {
  readonly direct: UdpListening | undefined
  readonly group: UdpListening | undefined
  readonly xmls: ReadonlyMap<GmetricSensor, DocumentsListening>
  readonly failure: ListenError | undefined
}

/** Sets the status of each sensor: its XML and the counters of that are its own, the sockets those of all. */
function setStatus(sensors: SensorsByTenant<GmetricSensor>, { direct, group, xmls, failure }: Open): void {
  const packets = [...new Set([direct, group])].filter((each) => each !== undefined)
  const kernelDrops = (): number | undefined => {
    const drops = packets.map((each) => each.kernelDrops()).filter((each) => each !== undefined)
    return drops.length === 0 ? undefined : drops.reduce((sum, each) => sum + each)
  }
  const addresses = packets.map(({ address }) => `udp ${formatAddress(address)}`)
  for (const sensor of sensors.all()) {
    const xml = xmls.get(sensor)
    const detail = [...addresses, ...(xml === undefined ? [] : [`xml ${formatAddress(xml.address)}`])].join(', ')
    // They are dropped before anybody knows whose they were: the tenant of the socket counts them, once.
    if (detail !== '') sensor.listens(detail, sensor === sensors.own ? kernelDrops : undefined)
    if (xml !== undefined) sensor.servesXml(xml.counts)
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
