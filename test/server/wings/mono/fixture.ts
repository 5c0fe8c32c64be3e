/** A Mono sensor behind a hub that writes down what is reported to it, and agents that say what the test says. */

import type { Value } from '../../../../protocol/monitor/value.ts'
import { parseNetwork } from '../../../../server/kernel/core/address.ts'
import type { ListeningSensor, Series } from '../../../../server/kernel/metrics/metric.ts'
import type { StreamTaker } from '../../../../server/kit/io/pacer.ts'
import type { MonoSeries } from '../../../../server/wings/mono/counters.ts'
import { type MonoConfig, type MonoHub, MonoSensor } from '../../../../server/wings/mono/sensor.ts'
import { hello, le32, sampling, text } from '../../../protocol/mono/vectors.ts'
import { hex, join, toHex } from '../../../support/bytes.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

export { header, hello, i16, le32, le64, sampling, samplingAt, TICKS, text } from '../../../protocol/mono/vectors.ts'

export const CONFIG: MonoConfig = {
  tenant: 'default',
  allow: [parseNetwork('192.0.2.0/24')!],
  maxAgents: 10,
  maxCounters: 100,
  maxMetrics: 100,
}

/** `born mono.gc.a@192.0.2.7`, `mono.gc.a@192.0.2.7 = 42`, `died ...` */
export class FakeHub implements MonoHub {
  #reported: string[] = []

  born(_sensor: ListeningSensor, series: Series): undefined {
    this.#reported.push(`born ${nameOf(series)}`)
    // As the hub does it for whoever has subscribed.
    const known = series.first?.()
    if (known !== undefined) this.#reported.push(`${nameOf(series)} = ${known.value.value}`)
  }

  emit(series: Series, { value }: Value): void {
    this.#reported.push(`${nameOf(series)} = ${value}`)
  }

  died(series: Series): void {
    this.#reported.push(`died ${nameOf(series)}`)
  }

  /** What was reported since the last look. */
  news(): string[] {
    return this.#reported.splice(0)
  }
}

const nameOf = ({ labels }: Series) => `${labels.name}@${labels.agent}`

/** One connection: `feed` is what the sensor reads, `asked` what it wrote. */
export interface Connection {
  readonly feed: StreamTaker
  /** What was written since it was asked last, in hex, a write each. */
  asked(): string[]
  readonly isClosed: () => boolean
}

export function makeSensor(config: Partial<MonoConfig> = {}) {
  const clock = new FakeClock()
  const hub = new FakeHub()
  const sensor = new MonoSensor({ ...CONFIG, ...config }, hub, clock)
  const connect = (from = '192.0.2.7', through: Partial<{ dialect: 'gist' | 'mono-2014'; agent: string }> = {}) => {
    const written: string[] = []
    let isClosed = false
    const back = {
      write: (bytes: Uint8Array) => void written.push(toHex(bytes)),
      close: () => {
        isClosed = true
      },
    }
    const feed = sensor.open(from, { dialect: 'gist', agent: undefined, ...through }, back)
    return feed && ({ feed, asked: () => written.splice(0), isClosed: () => isClosed } satisfies Connection)
  }
  const series = (name: string): MonoSeries => {
    const [found] = sensor.series(name)
    if (found === undefined) throw new Error(`no series of ${name}`)
    return found
  }
  const counters = () => sensor.status().counters
  return { sensor, hub, clock, connect, series, counters }
}

/** The gist's response to List. */
export function listOf(...counters: readonly (readonly [category: string, name: string])[]): Uint8Array {
  return join(Uint8Array.of(1), ...counters.flatMap(([category, name]) => [text(name), text(category)]), le32(-1))
}

export const COLLECTIONS = 'mono.gc.major_gc_collections'
export const LOAD = 'mono.my.load'
/** Hello with the collections at index 0. */
export const HELLO = hello({ name: 'Major GC collections', index: 0 })
/** It offers `my`/`load` too. */
export const LIST = listOf(['Mono GC', 'Major GC collections'], ['my', 'load'])
/** Add and its response: custom, DOUBLE, PERCENTAGE, VARIABLE, index 2. */
export const ADD = '02040000006c6f6164020000006d79'
export const ADDED = hex('0200 08000000 04000000 6c6f6164 03000000 05000000 03000000 0200')
export const SAMPLED = sampling([0, le32(5)])
