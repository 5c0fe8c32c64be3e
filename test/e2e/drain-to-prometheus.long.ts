/** What a drain writes is taken by the programs that people have: types and texts of metrics stand beside the samples. */
import { spawnSync } from 'node:child_process'
import { afterEach, expect, it } from 'vitest'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Metric } from '../../server/kernel/metrics/metric.ts'
import { StackProgram, WRITE } from '../rig/prometheus-stack.ts'
import { tableTo } from '../server/wings/drains/fake-destination.ts'
import { eventually } from '../support/eventually.ts'
import { TestProducer } from '../support/producer.ts'
import { decoded } from '../support/records.ts'
import { PushSensor } from '../support/test-sensor.ts'

let program: StackProgram | undefined
let producer: TestProducer | undefined
afterEach(async () => {
  await producer?.stop()
  await program?.remove()
})

/** The last value of a series. */
async function valueAt(url: string, query: string): Promise<unknown> {
  const answer = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query })}`)
  const { data } = (await answer.json()) as { data?: { result?: { value?: [number, string] }[] } }
  return data?.result?.[0]?.value?.[1]
}

/** A family of which everything is known. */
class DescribedSensor extends PushSensor {
  override metric(name: string): Metric | undefined {
    const metric = super.metric(name)
    return metric && { ...metric, unit: 's', description: 'How long it took: "all"\nof it.', isCounter: true }
  }
}

it.for([
  ['prometheus', () => StackProgram.prometheus()],
  ['victoria-metrics', () => StackProgram.victoriaMetrics()],
] as const)('%s takes samples and metadata in one request', async ([name, make], context) => {
  if (spawnSync('which', [name]).status !== 0) context.skip(`needs it: apt-get install ${name}`)
  program = await make()
  await program.start()
  const href = `${program.url}${WRITE}`
  const url = { protocol: 'prometheus', href, text: `prometheus+${href}` } as const
  const table = { ...tableTo(0), url, metrics: ['told.*'], batchAgeMs: 100 }
  let sensor: DescribedSensor | undefined
  producer = await TestProducer.start({
    config: { drain: [table] },
    sensors: (hub) => {
      sensor = new DescribedSensor(hub, 'told.')
    },
  })
  await producer.addUser('root', { role: 'admin' })
  const seat = await producer.seat('root')
  sensor?.push('told.x', { type: BasicType.DOUBLE, value: 2.5 }, Date.now() * 1_000, 'web1')
  await eventually(async () => {
    producer?.clock.advance(200)
    await producer?.settle()
    expect(await valueAt(program?.url ?? '', 'told_x{host="web1"}')).toBe('2.5')
  })
  const sensors = decoded(await seat.query('producer.sensors')) as { name: string; counters: Record<string, number> }[]
  const { counters } = sensors.find((one) => one.name === 'drain/d') ?? {}
  expect(counters).toMatchObject({ values: 1, requests: 1, retries: 0 })
})
