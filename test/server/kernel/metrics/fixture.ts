/** A hub with the sensors of the tests, and selections of an identity, without a server around them. */
import type { Identity } from '../../../../auth/permissions.ts'
import type { ArgumentList } from '../../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Rights } from '../../../../server/kernel/accounts/rights.ts'
import { Rules } from '../../../../server/kernel/accounts/rules.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import type { Sink } from '../../../../server/kernel/metrics/metric.ts'
import { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { PushSensor, SlowSensor, ThingSensor } from '../../../support/test-sensor.ts'

export const tester: Identity = { userId: 1, tenant: 'default', name: 'tester', role: 'consumer' }
export const abroad: Identity = { userId: 2, tenant: 'other', name: 'abroad', role: 'consumer' }

/** Without any rule. */
export const rights = new Rights(new Rules([], 1, () => {}))

export const text = (name: string, value: string): ArgumentList[number] => ({ name, type: BasicType.STRING, value })
export const uint = (name: string, value: number): ArgumentList[number] => ({ name, type: BasicType.UINT32, value })

export class Metrics {
  readonly clock = new FakeClock()
  readonly hub = new Hub(this.clock)
  readonly push = new PushSensor(this.hub)
  readonly slow = new SlowSensor()
  readonly things = new ThingSensor()
  #nextId = 1

  constructor() {
    this.hub.add(this.slow)
    this.hub.add(this.things)
  }

  select(name: string, list: ArgumentList = [], identity = tester): Selection {
    return finish(Selection.of(this.hub.sensors, identity, name, list, { intervalMs: 1000, rights }))
  }

  instance(name: string, list: ArgumentList = [], identity = tester): MetricInstance {
    return new MetricInstance(this.#nextId++, this.select(name, list, identity))
  }
}

/** Keeps what it is given, as whole payloads after the header of a frame. */
export class Kept implements Sink {
  readonly frames: { metric: number; time: number; rest: Buffer }[] = []

  append(head: Uint8Array, tail: Uint8Array, time: number): void {
    const bytes = Buffer.concat([head, tail])
    this.frames.push({ metric: bytes.readUInt32BE(4), time, rest: bytes.subarray(24) })
  }

  /** The uint32 at the end of each value; undefined: VOID. */
  get numbers(): (number | undefined)[] {
    return this.frames.map(({ rest }) =>
      rest.readUInt32BE(rest.length - 4) === BasicType.VOID ? undefined : rest.readUInt32BE(rest.length - 4),
    )
  }
}
