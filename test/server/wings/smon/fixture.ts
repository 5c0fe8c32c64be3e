/** An smon sensor behind a hub that writes down what is reported to it, and streams made by hand. */
import { parseNetwork } from '../../../../server/kernel/core/address.ts'
import type { Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { ListeningSensor, Sensor, Series } from '../../../../server/kernel/metrics/metric.ts'
import type { Poll } from '../../../../server/kit/poll.ts'
import { type SmonConfig, type SmonHub, SmonSensor } from '../../../../server/wings/smon/sensor.ts'
import { hex } from '../../../support/bytes.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

export const CONFIG: SmonConfig = {
  tenant: 'default',
  allow: [parseNetwork('192.0.2.0/24')!, parseNetwork('2001:db8::/32')!],
  sources: [
    { name: 'db1', address: '192.0.2.9', port: undefined },
    { name: 'db2', address: '192.0.2.9', port: 77 },
  ],
  maxSources: 10,
  maxTokens: 100,
  maxMetrics: 100,
}

/** `born smon.a@192.0.2.7:1[3,0]`, `smon.a@192.0.2.7:1 = 42`, `died ...` */
export class FakeHub implements SmonHub, Pick<Poll, 'run'> {
  /** The steps of work that are done at once. */
  stepsAtOnce = Number.POSITIVE_INFINITY
  readonly #work: Steps<void>[] = []
  #reported: string[] = []

  born(_sensor: ListeningSensor, series: Series): undefined {
    this.#reported.push(`born ${nameOf(series)}`)
  }

  emitEncoded(series: Series, tail: Uint8Array): void {
    const { buffer, byteOffset } = tail
    const view = new DataView(buffer, byteOffset)
    // UINT64 is 4, STRING 7 [MON 2].
    const value =
      view.getUint32(0) === 4
        ? view.getBigUint64(4)
        : JSON.stringify(Buffer.from(buffer, byteOffset + 8, view.getUint32(4)).toString('latin1'))
    this.#reported.push(`${nameOf(series)} = ${value}`)
  }

  emitRun(series: Series, tails: readonly Uint8Array[]): void {
    for (const tail of tails) this.emitEncoded(series, tail)
  }

  died(series: Series): void {
    this.#reported.push(`died ${nameOf(series)}`)
  }

  run(_sensor: Sensor, steps: Steps<void>): void {
    this.#work.push(steps)
    for (let left = this.stepsAtOnce; left > 0 && this.step(); left--);
  }

  /** Does a step of the work that waits longest; returns whether there is more. */
  step(): boolean {
    if (this.#work[0]?.next().done === true) this.#work.shift()
    return this.#work.length > 0
  }

  /** What was reported since the last look. */
  news(): string[] {
    const reported = this.#reported
    this.#reported = []
    return reported
  }
}

const nameOf = ({ labels }: Series) => `${labels.name}@${labels.source}${labels.index && `[${labels.index}]`}`

export function makeSensor<Hub extends SmonHub & Pick<Poll, 'run'>>(hub: Hub, config: Partial<SmonConfig> = {}) {
  const clock = new FakeClock()
  const sensor = new SmonSensor({ ...CONFIG, ...config }, hub, clock, {
    run: (sensor, steps) => hub.run(sensor, steps),
  })
  return { hub, clock, sensor }
}

/** Bytes from hexadecimal, with 'text' between. */
export function stream(...parts: readonly string[]): Uint8Array {
  return Buffer.concat(parts.map((part) => (part.startsWith("'") ? Buffer.from(part.slice(1, -1)) : hex(part))))
}

/** Token 1, `u`, called a: its definition with the value 100; then `00 xx` adds xx. */
export const DEFINE_A = stream('00 05', "'uaaaa'", '01 64')
/** 17 FF and FE. */
export const RESYNC = hex(`${'ff'.repeat(17)}fe`)
