/**
 * Hosts that do not exist, and what their gmonds would send: load, processors, memory, network and disk of a small shop, which
 * follow from how much each host has to do. The same every time: chance comes from a fixed seed.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

/** Seconds between two repetitions of the metadata. */
const METADATA_SECONDS = 60
/** The host that goes silent is away for the second half of each of these. */
const SILENT_SECONDS = 600
/** Seconds from one rush to the next. */
const RUSH_SECONDS = 240
const SPOOFED = 1
/** The ids of gmond's messages (docs/protocol/gmetric.md). */
const METADATA = 128
const TEXT = 133
const DOUBLE = 135
const SLOPE_BOTH = 3

interface SimulatedHost {
  readonly name: string
  readonly address: string
  readonly cores: number
  readonly memoryGiB: number
  readonly diskGB: number
  /** How busy it is when little is going on, as a share of its processors, and what a rush adds. */
  readonly calm: number
  readonly rush: number
  /** Bytes per second when it is fully busy. */
  readonly network: number
  readonly goesSilent?: boolean
}

const MB = 1e6
const WEB = { cores: 4, memoryGiB: 8, diskGB: 80, calm: 0.25, rush: 0.4, network: 40 * MB }
const HOSTS: readonly SimulatedHost[] = [
  { ...WEB, name: 'web1', address: '10.0.1.11' },
  { ...WEB, name: 'web2', address: '10.0.1.12' },
  { ...WEB, name: 'web3', address: '10.0.1.13', calm: 0.35 },
  {
    name: 'db1',
    address: '10.0.2.11',
    cores: 16,
    memoryGiB: 128,
    diskGB: 2_000,
    calm: 0.3,
    rush: 0.25,
    network: 90 * MB,
  },
  {
    name: 'db2',
    address: '10.0.2.12',
    cores: 16,
    memoryGiB: 128,
    diskGB: 2_000,
    calm: 0.1,
    rush: 0.1,
    network: 60 * MB,
  },
  {
    name: 'cache1',
    address: '10.0.3.11',
    cores: 2,
    memoryGiB: 32,
    diskGB: 20,
    calm: 0.15,
    rush: 0.3,
    network: 110 * MB,
  },
  {
    name: 'queue1',
    address: '10.0.3.21',
    cores: 4,
    memoryGiB: 16,
    diskGB: 200,
    calm: 0.2,
    rush: 0.35,
    network: 30 * MB,
  },
  {
    name: 'build1',
    address: '10.0.4.11',
    cores: 8,
    memoryGiB: 16,
    diskGB: 400,
    calm: 0.05,
    rush: 0.9,
    network: 15 * MB,
  },
  {
    name: 'backup1',
    address: '10.0.4.21',
    cores: 2,
    memoryGiB: 4,
    diskGB: 8_000,
    calm: 0.4,
    rush: 0,
    network: 70 * MB,
    goesSilent: true,
  },
]

interface About {
  readonly unit: string
  readonly group: string
  readonly description: string
}

const ABOUT: Readonly<Record<string, About>> = {
  load_one: { unit: ' ', group: 'load', description: 'One minute load average' },
  load_five: { unit: ' ', group: 'load', description: 'Five minute load average' },
  cpu_num: { unit: 'CPUs', group: 'cpu', description: 'Total number of CPUs' },
  cpu_user: { unit: '%', group: 'cpu', description: 'Percentage of CPU utilization at the user level' },
  cpu_system: { unit: '%', group: 'cpu', description: 'Percentage of CPU utilization at the system level' },
  cpu_wio: { unit: '%', group: 'cpu', description: 'Percentage of time that CPUs were idle while the disk had work' },
  cpu_idle: { unit: '%', group: 'cpu', description: 'Percentage of time that CPUs were idle' },
  mem_total: { unit: 'KB', group: 'memory', description: 'Total amount of memory' },
  mem_free: { unit: 'KB', group: 'memory', description: 'Amount of available memory' },
  mem_cached: { unit: 'KB', group: 'memory', description: 'Amount of cached memory' },
  bytes_in: { unit: 'bytes/sec', group: 'network', description: 'Number of bytes in per second' },
  bytes_out: { unit: 'bytes/sec', group: 'network', description: 'Number of bytes out per second' },
  pkts_in: { unit: 'packets/sec', group: 'network', description: 'Packets in per second' },
  pkts_out: { unit: 'packets/sec', group: 'network', description: 'Packets out per second' },
  disk_total: { unit: 'GB', group: 'disk', description: 'Total available disk space' },
  disk_free: { unit: 'GB', group: 'disk', description: 'Total free disk space' },
  proc_run: { unit: ' ', group: 'process', description: 'Total number of running processes' },
  proc_total: { unit: ' ', group: 'process', description: 'Total number of processes' },
  os_release: { unit: '', group: 'system', description: 'Operating system release' },
}

/** What a host measures, by the name of the metric. */
export type Readings = Readonly<Record<string, number | string>>

/** One of the hosts as it changes from second to second. */
export class HostModel {
  readonly host: SimulatedHost
  readonly #chance: () => number
  #second = 0
  /** Moves slowly about 0. */
  #drift = 0
  #load: number
  #longLoad: number
  #cached = 0.35
  #diskFree: number

  constructor(host: SimulatedHost, seed: number) {
    this.host = host
    this.#chance = chanceFrom(seed)
    this.#load = host.calm * host.cores
    this.#longLoad = this.#load
    this.#diskFree = host.diskGB * (0.2 + 0.4 * this.#chance())
  }

  /** Undefined while the host is silent. */
  next(): Readings | undefined {
    const { host } = this
    const { cores, memoryGiB, network } = host
    const second = this.#second++
    const noise = (size: number): number => (this.#chance() - 0.5) * 2 * size
    this.#drift = this.#drift * 0.97 + noise(0.02)
    const rush = Math.max(0, Math.sin((2 * Math.PI * second) / RUSH_SECONDS)) ** 3
    const busy = clamp(host.calm + host.rush * rush + this.#drift + noise(0.02), 0.01, 0.97)
    // Averages follow at their own pace; more than the processors can do waits.
    const wanted = cores * (busy + (busy > 0.8 ? (busy - 0.8) * 4 : 0))
    this.#load += (wanted - this.#load) / 20
    this.#longLoad += (wanted - this.#longLoad) / 100
    this.#cached = clamp(this.#cached + noise(0.002), 0.2, 0.45)
    this.#diskFree = Math.max(1, this.#diskFree - host.diskGB * busy * 2e-6)
    if (host.goesSilent === true && second % SILENT_SECONDS >= SILENT_SECONDS / 2) return undefined

    const total = memoryGiB * 2 ** 20
    const system = busy * 18 + noise(0.5)
    const waiting = clamp(2 * busy + noise(1), 0, 5)
    const user = Math.max(0, busy * 100 - system - waiting)
    const [incoming, outgoing] = [network * busy * (0.3 + noise(0.03)), network * busy * (0.7 + noise(0.07))]
    return {
      load_one: this.#load,
      load_five: this.#longLoad,
      cpu_num: cores,
      cpu_user: user,
      cpu_system: system,
      cpu_wio: waiting,
      cpu_idle: 100 - user - system - waiting,
      mem_total: total,
      mem_free: total * (0.55 - this.#cached * 0.5 - busy * 0.3),
      mem_cached: total * this.#cached,
      bytes_in: incoming,
      bytes_out: outgoing,
      pkts_in: incoming / 700,
      pkts_out: outgoing / 900,
      disk_total: host.diskGB,
      disk_free: this.#diskFree,
      proc_run: Math.max(1, Math.round(this.#load + noise(1))),
      proc_total: 120 + cores * 10 + Math.round(busy * 60),
      os_release: '6.1.0-44-amd64',
    }
  }
}

export class HostFeed {
  readonly #port: () => number
  readonly #models = HOSTS.map((host, index) => new HostModel(host, index + 1))
  readonly #socket: Socket = createSocket('udp4')
  #second = 0

  /** `port`: where the server takes packets of gmetric when the feed is opened. */
  constructor(port: () => number) {
    this.#port = port
  }

  async open(): Promise<void> {
    this.#socket.connect(this.#port(), '127.0.0.1')
    await once(this.#socket, 'connect')
    // A server that has ended takes nothing any more; its end is reported elsewhere.
    this.#socket.on('error', () => {})
  }

  /** To be called every second: sends what each host measures. */
  send(): void {
    const isTimeForMetadata = this.#second++ % METADATA_SECONDS === 0
    for (const model of this.#models) {
      const readings = model.next()
      if (readings === undefined) continue
      const host = `${model.host.address}:${model.host.name}`
      for (const [metric, value] of Object.entries(readings)) {
        if (isTimeForMetadata) this.#socket.send(metadataDatagram(host, metric, typeof value, ABOUT[metric] as About))
        this.#socket.send(valueDatagram(host, metric, value))
      }
    }
  }

  close(): void {
    this.#socket.close()
  }
}

/** Type, unit, group and description of a metric. `host`: `address:name`. */
export function metadataDatagram(
  host: string,
  metric: string,
  type: string,
  { unit, group, description }: About,
): Uint8Array {
  return Buffer.concat([
    ...[word(METADATA), text(host), text(metric), word(SPOOFED)],
    ...[text(type === 'string' ? 'string' : 'double'), text(metric), text(unit)],
    ...[word(SLOPE_BOTH), word(METADATA_SECONDS), word(0)],
    ...[word(2), text('GROUP'), text(group), text('DESC'), text(description)],
  ])
}

export function valueDatagram(host: string, metric: string, value: number | string): Uint8Array {
  const head = [word(typeof value === 'number' ? DOUBLE : TEXT), text(host), text(metric), word(SPOOFED)]
  if (typeof value === 'string') return Buffer.concat([...head, text('%s'), text(value)])
  const number = Buffer.alloc(8)
  number.writeDoubleBE(value)
  return Buffer.concat([...head, text('%.2f'), number])
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Length, bytes, and padding up to the next word. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([word(bytes.length), bytes, Buffer.alloc(-bytes.length & 3)])
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value))
}

/** Numbers from 0 to 1 that look like chance: a linear congruential generator. */
function chanceFrom(seed: number): () => number {
  let state = seed * 7_919
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
