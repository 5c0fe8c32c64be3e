/** The metrics of all upstreams of a tenant as one list. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Metric } from '../../../../server/kernel/metrics/metric.ts'
import { UpstreamSensor } from '../../../../server/wings/upstream/sensor.ts'
import type { Upstream } from '../../../../server/wings/upstream/upstream.ts'

class Consumed {
  readonly table: { readonly name: string }
  /** How often its metrics were looked at. */
  reads = 0
  #metrics: ReadonlyMap<string, Metric> = new Map()

  constructor(name: string) {
    this.table = { name }
  }

  get metrics(): ReadonlyMap<string, Metric> {
    this.reads++
    return this.#metrics
  }

  /** It has other metrics now; each name with a unit, so that two of the same name can be told apart. */
  has(metrics: Readonly<Record<string, string>>): void {
    const before = this.#metrics
    const made = Object.entries(metrics).map(([name, unit]): [string, Metric] => {
      const known = before.get(name)
      const metric = { name, unit, kind: 'continuous', type: 5, description: '', parameters: [] } as const
      return [name, known?.unit === unit ? known : metric]
    })
    this.#metrics = new Map(made)
    sensor.changed(this as unknown as Upstream, before)
  }

  mayAsk(): boolean {
    return true
  }
}

let sensor: UpstreamSensor
let [east, west]: Consumed[] = []
const listed = (prefix?: string, after?: string) =>
  [...sensor.metrics(prefix, after)].map(({ name, unit }) => `${name} ${unit}`)

beforeEach(() => {
  sensor = new UpstreamSensor('default')
  east = new Consumed('east')
  west = new Consumed('west')
  for (const one of [east, west]) sensor.add(one as unknown as Upstream)
})

describe('the metrics of all upstreams', () => {
  it('are listed once each, ascending, from a name on', () => {
    east?.has({ b: 'east', a: 'east' })
    west?.has({ c: 'west', b: 'west' })
    expect(listed()).toEqual(['a east', 'b east', 'c west'])
    expect(listed('', 'a')).toEqual(['b east', 'c west'])
    expect(listed('c')).toEqual(['c west'])
  })

  it('are those of another one where one has them no more, or is consumed no more', () => {
    east?.has({ a: 'east', b: 'east', d: 'east' })
    west?.has({ a: 'west', b: 'west' })
    east?.has({ b: 'other', d: 'east' })
    expect(listed()).toEqual(['a west', 'b other', 'd east'])
    sensor.delete(east as unknown as Upstream)
    expect(listed()).toEqual(['a west', 'b west'])
    sensor.delete(west as unknown as Upstream)
    expect(listed()).toEqual([])
  })

  it('do not come from one that is consumed no more, and reads its catalogue to the end', () => {
    sensor.delete(east as unknown as Upstream)
    east?.has({ a: 'east' })
    expect(listed()).toEqual([])
  })

  it('cost nothing of the others when those of one change', () => {
    west?.has({ a: 'west', b: 'west' })
    const [reads, changes] = [west?.reads, sensor.metricsChanges]
    east?.has({ b: 'east', c: 'east' })
    expect(listed()).toEqual(['a west', 'b west', 'c east'])
    expect(west?.reads).toBe(reads)
    expect(sensor.metricsChanges).toBe(changes + 1)
  })
})
