/** A gmetric sensor with a clock that stands still, for the packets of test/vectors and for some made here by hand. */

import type { Network } from '../../../../server/kernel/core/address.ts'
import { parseNetwork } from '../../../../server/kernel/core/address.ts'
import type { ListeningSensor, Series } from '../../../../server/kernel/metrics/metric.ts'
import type { GmetricHub } from '../../../../server/wings/gmetric/liveness.ts'
import type { GmetricConfig } from '../../../../server/wings/gmetric/sensor.ts'
import { GmetricSensor } from '../../../../server/wings/gmetric/sensor.ts'
import { vector } from '../../../protocol/gmetric/vectors.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

export const SENDER = '192.0.2.7'

export const networks = (...texts: string[]): Network[] => texts.map((text) => parseNetwork(text)!)

export const CONFIG: GmetricConfig = {
  tenant: 'default',
  allow: networks('192.0.2.0/24'),
  spoof: true,
  maxHosts: 100,
  maxMetrics: 1000,
  hostTmaxMs: 20_000,
  hostDmaxMs: 86_400_000,
  packetsPerSecond: 0,
}

/** Writes down what is reported to it: `born gmetric.foo@host`, `gmetric.foo@host = 42`, `died gmetric.foo@host`. */
export class FakeHub implements GmetricHub {
  reported: string[] = []
  readonly times: number[] = []

  born(_sensor: ListeningSensor, series: Series): undefined {
    this.reported.push(`born ${nameOf(series)}`)
  }

  emit(series: Series, { value }: { value: unknown }, time: number): void {
    this.reported.push(`${nameOf(series)} = ${value}`)
    this.times.push(time)
  }

  died(series: Series): void {
    this.reported.push(`died ${nameOf(series)}`)
  }

  /** What was reported since the last look. */
  news(): string[] {
    const reported = this.reported
    this.reported = []
    return reported
  }
}

export const nameOf = ({ labels }: Series) => `${labels.name}@${labels.host}`

export function makeSensor<Hub extends GmetricHub>(hub: Hub, config: Partial<GmetricConfig> = {}) {
  const clock = new FakeClock()
  const fenced = new Set<GmetricSensor>()
  const sensor = new GmetricSensor({ ...CONFIG, ...config }, hub, clock, { isFenced: (sensor) => fenced.has(sensor) })
  const send = (name: string, from = SENDER) => sensor.packet(vector(name).bytes, from)
  return { hub, clock, sensor, send, fenced }
}

/** XDR by hand: a number is one unit, a text its length, its bytes and padding. */
export function xdr(...fields: readonly (number | string)[]): Buffer {
  return Buffer.concat(
    fields.map((field) => {
      const unit = Buffer.alloc(4)
      unit.writeUInt32BE(typeof field === 'number' ? field : Buffer.byteLength(field))
      if (typeof field === 'number') return unit
      const text = Buffer.from(field)
      return Buffer.concat([unit, text, Buffer.alloc(-text.length & 3)])
    }),
  )
}

interface About {
  readonly units?: string
  readonly tmax?: number
  readonly dmax?: number
  readonly extra?: readonly string[]
}

/** A 128 packet; `host` as `address:name`, or '' for one that is not spoofed. */
export function metadata(host: string, metric: string, type: string, about: About = {}): Buffer {
  const { units = '', tmax = 60, dmax = 0, extra = [] } = about
  const spoofed = host === '' ? 0 : 1
  return xdr(128, host, metric, spoofed, type, metric, units, 3, tmax, dmax, extra.length / 2, ...extra)
}

/** A 133 packet. */
export function text(host: string, metric: string, value: string): Buffer {
  return xdr(133, host, metric, host === '' ? 0 : 1, '%s', value)
}
