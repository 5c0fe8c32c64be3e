/**
 * The head of `cinnabar top`: what the producer's own host does, from the latest values of host.* and producer.stats.
 * Whatever a platform or a permission does not give is undefined.
 */
import { BasicType, type Field, type Value } from '../../client/index.ts'
import { textOf } from '../records.ts'
import type { Arrival } from './rows.ts'

/** To be followed for it. */
export const HOST_METRICS = [
  'host.cpu.*',
  'host.load.*',
  'host.mem.*',
  'host.disk.*',
  'host.net.*',
  'host.uptime',
  'producer.stats',
] as const

type Known = number | undefined

/** Percent, bytes, bytes per second, and seconds. */
export interface HostSummary {
  readonly name: string
  readonly software: string
  readonly storage: string
  readonly serverUptime: Known
  readonly uptime: Known
  readonly load: readonly [Known, Known, Known]
  readonly cpus: Known
  readonly cpu: { readonly busy: Known; readonly user: Known; readonly system: Known; readonly iowait: Known }
  readonly memory: Space
  readonly swap: Space
  readonly disk: Space & { readonly read: Known; readonly written: Known }
  readonly net: { readonly received: Known; readonly sent: Known }
}

export interface Space {
  readonly used: Known
  readonly total: Known
}

interface Measured {
  readonly value: number
  readonly time: number
  /** Growth per second since the value before. */
  readonly rate: Known
}

export class Host {
  readonly #measured = new Map<string, Measured>()
  #stats: readonly Field[] = []

  take({ name, time, value }: Arrival): void {
    const record: readonly Field[] = value.type === BasicType.REC ? value.value : []
    if (name === 'producer.stats') {
      this.#stats = record
      return
    }
    const metric = textOf(record, 'name') || name
    const number = numeric(record.find((field) => field.name === 'value') ?? value)
    const last = this.#measured.get(metric)
    if (number === undefined) this.#measured.delete(metric)
    else this.#measured.set(metric, { value: number, time, rate: last && growth(last, number, time) })
  }

  summary(): HostSummary {
    const value = (name: string) => this.#measured.get(`host.${name}`)?.value
    const rate = (name: string) => this.#measured.get(`host.${name}`)?.rate
    const stats = (name: string) => textOf(this.#stats, name)
    const uptime = this.#stats.find(({ name }) => name === 'uptime')
    const [idle, iowait] = [value('cpu.idle'), value('cpu.iowait')]
    return {
      name: stats('name'),
      software: stats('software'),
      storage: stats('storage'),
      serverUptime: uptime && numeric(uptime),
      uptime: value('uptime'),
      load: [value('load.one'), value('load.five'), value('load.fifteen')],
      cpus: value('cpu.number'),
      cpu: {
        // Waiting for a disk is doing nothing.
        busy: idle === undefined ? undefined : Math.max(0, 100 - idle - (iowait ?? 0)),
        user: plus(value('cpu.user'), value('cpu.nice') ?? 0),
        system: plus(value('cpu.system'), (value('cpu.irq') ?? 0) + (value('cpu.softirq') ?? 0)),
        iowait,
      },
      memory: space(value('mem.total'), value('mem.available') ?? value('mem.free')),
      swap: { used: value('mem.swap_used'), total: value('mem.swap_total') },
      disk: {
        used: value('disk.used'),
        // What is reserved for root is no space that anybody could fill.
        total: plus(value('disk.used'), value('disk.free')),
        read: rate('disk.read_bytes'),
        written: rate('disk.written_bytes'),
      },
      net: { received: rate('net.received_bytes'), sent: rate('net.sent_bytes') },
    }
  }
}

/** Undefined where a counter began anew. */
function growth(last: Measured, value: number, time: number): Known {
  const seconds = (time - last.time) / 1e6
  return seconds > 0 && value >= last.value ? (value - last.value) / seconds : undefined
}

function space(total: Known, free: Known): Space {
  return { total, used: total === undefined || free === undefined ? undefined : Math.max(0, total - free) }
}

function plus(a: Known, b: Known): Known {
  return a === undefined || b === undefined ? undefined : a + b
}

function numeric({ value }: Value): Known {
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
}
