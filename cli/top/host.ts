/**
 * The state of the producer's host, from the latest values of host.* and producer.stats. Values that the platform or the
 * permissions do not provide are undefined.
 */
import type { Value } from '../../client/index.ts'
import { growth } from '../rates.ts'
import { type AnswerRecord, fieldsOf, fieldText, findField } from '../records.ts'
import type { ReceivedValue } from './rows.ts'

/** The metrics to subscribe to. */
export const HOST_METRICS = [
  'host.cpu.*',
  'host.load.*',
  'host.mem.*',
  'host.disk.*',
  'host.net.*',
  'host.uptime',
  'producer.stats',
] as const

type MaybeNumber = number | undefined

/** Percent, bytes, bytes per second, and seconds. */
export interface HostSummary {
  readonly name: string
  readonly software: string
  readonly storage: string
  readonly serverUptime: MaybeNumber
  readonly uptime: MaybeNumber
  readonly load: readonly [MaybeNumber, MaybeNumber, MaybeNumber]
  readonly cpus: MaybeNumber
  readonly cpu: {
    readonly busy: MaybeNumber
    readonly user: MaybeNumber
    readonly system: MaybeNumber
    readonly iowait: MaybeNumber
  }
  readonly memory: Space
  readonly swap: Space
  readonly disk: Space & { readonly read: MaybeNumber; readonly written: MaybeNumber }
  readonly net: { readonly received: MaybeNumber; readonly sent: MaybeNumber }
}

export interface Space {
  readonly used: MaybeNumber
  readonly total: MaybeNumber
}

interface HostValue {
  readonly value: number
  readonly time: number
  /** The increase per second since the previous value. */
  readonly rate: MaybeNumber
}

export class TopHost {
  readonly #values = new Map<string, HostValue>()
  #stats: AnswerRecord = []

  take({ name, time, value }: ReceivedValue): void {
    const record = fieldsOf(value)
    if (name === 'producer.stats') {
      this.#stats = record
      return
    }
    const metric = fieldText(record, 'name') || name
    const number = numeric(findField(record, 'value') ?? value)
    const last = this.#values.get(metric)
    if (number === undefined) this.#values.delete(metric)
    else this.#values.set(metric, { value: number, time, rate: last && growth(last, number, time) })
  }

  summary(): HostSummary {
    const value = (name: string) => this.#values.get(`host.${name}`)?.value
    const rate = (name: string) => this.#values.get(`host.${name}`)?.rate
    const stats = (name: string) => fieldText(this.#stats, name)
    const uptime = findField(this.#stats, 'uptime')
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
        // Waiting for a disk counts as idle.
        busy: idle === undefined ? undefined : Math.max(0, 100 - idle - (iowait ?? 0)),
        user: plus(value('cpu.user'), value('cpu.nice') ?? 0),
        system: plus(value('cpu.system'), (value('cpu.irq') ?? 0) + (value('cpu.softirq') ?? 0)),
        iowait,
      },
      memory: space(value('mem.total'), value('mem.available') ?? value('mem.free')),
      swap: { used: value('mem.swap_used'), total: value('mem.swap_total') },
      disk: {
        used: value('disk.used'),
        // Space that is reserved for root does not count.
        total: plus(value('disk.used'), value('disk.free')),
        read: rate('disk.read_bytes'),
        written: rate('disk.written_bytes'),
      },
      net: { received: rate('net.received_bytes'), sent: rate('net.sent_bytes') },
    }
  }
}

function space(total: MaybeNumber, free: MaybeNumber): Space {
  return { total, used: total === undefined || free === undefined ? undefined : Math.max(0, total - free) }
}

function plus(a: MaybeNumber, b: MaybeNumber): MaybeNumber {
  return a === undefined || b === undefined ? undefined : a + b
}

function numeric({ value }: Value): MaybeNumber {
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
}
