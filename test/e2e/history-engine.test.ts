/**
 * Debian's VictoriaMetrics, and its Prometheus, whose API Mimir and Thanos have, answer expressions over what drains have delivered
 * there, each tenant what is its own.
 */
import { spawnSync } from 'node:child_process'
import { afterEach, expect, it } from 'vitest'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { StackProgram, WRITE } from '../rig/prometheus-stack.ts'
import { tableTo } from '../server/wings/drains/fake-destination.ts'
import { eventually } from '../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../support/publisher.ts'
import { PushSensor } from '../support/test-sensor.ts'

let engineProgram: StackProgram | undefined
let server: PublishingProducer | undefined
afterEach(async () => {
  await server?.stop()
  await engineProgram?.remove()
})

const isThere = (program: string): boolean => spawnSync('which', [program]).status === 0

// VictoriaMetrics is not everywhere.
it.skipIf(!isThere('victoria-metrics'))(
  'victoria-metrics answers (apt install victoria-metrics)',
  { timeout: 60_000 },
  async () => answersAs(await StackProgram.victoriaMetrics()),
)

// Nor is Prometheus.
it.skipIf(!isThere('prometheus'))('prometheus answers (apt install prometheus)', { timeout: 60_000 }, async () =>
  answersAs(await StackProgram.prometheus()),
)

async function answersAs(program: StackProgram): Promise<void> {
  engineProgram = program
  await program.start()
  const href = `${program.url}${WRITE}`
  const url = { protocol: 'prometheus', href, text: `prometheus+${href}` } as const
  const drain = { ...tableTo(0), url, metrics: ['test.*'], batchAgeMs: 100, tenant: '*', tenantLabel: 'tenant' }
  const none = { tokenFile: undefined, username: '', passwordFile: undefined, ca: undefined }
  const engine = { href: program.url, tenantLabel: 'tenant', ...none }
  let north: PushSensor | undefined
  const started = await PublishingProducer.start({
    config: { drain: [drain], history: { ...defaultConfig().history, keepMs: 0, engine } },
    sensors: (hub) => {
      north = new PushSensor(hub, 'test.', { tenant: 'north' })
    },
  })
  server = started
  const { producer, root } = started
  await producer.addUser('ann', { tenant: 'north' })
  const tokens = { default: await tokenFor(root, 'root', ''), north: await tokenFor(root, 'ann', '', 'north') }
  const nowMs = Date.now()
  const push = (sensor: PushSensor | undefined, value: number, host: string) =>
    sensor?.push('test.a', { type: BasicType.DOUBLE, value }, (nowMs - 10_000) * 1_000, host)
  const get = async (path: string, given: Record<string, string>, token: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${started.url}/api/v1/${path}?${new URLSearchParams(given)}`, { headers })
    return ((await answer.json()) as { data?: unknown }).data
  }
  const time = String(nowMs / 1_000)
  const valueAt = async (query: string, token: string): Promise<unknown> => {
    const { result } = (await get('query', { query, time }, token)) as { result: { value: [number, string] }[] }
    return result[0]?.value[1]
  }
  await eventually(async () => {
    // Until the drains of both tenants are there.
    push(producer.push, 1, 'h1')
    push(producer.push, 2, 'h2')
    push(north, 5, 'h1')
    producer.clock.advance(1_000)
    await producer.settle()
    expect([await valueAt('count(test_a)', tokens.default), await valueAt('count(test_a)', tokens.north)]).toEqual([
      '2',
      '1',
    ])
  })
  expect(await valueAt('sum(test_a)', tokens.default)).toBe('3')
  expect(await valueAt('sum(test_a{tenant="default"} or test_a)', tokens.north)).toBe('5')
  const range = { query: 'max(test_a)', start: String(nowMs / 1_000 - 5), end: time, step: '5' }
  // How long a lone sample counts there depends on the step.
  expect(await get('query_range', range, tokens.default)).toMatchObject({
    resultType: 'matrix',
    result: [{ metric: {}, values: expect.arrayContaining([[expect.any(Number), '2']]) }],
  })
  const found = { 'match[]': 'test_a', start: String(nowMs / 1_000 - 3_600) }
  expect(await get('series', found, tokens.north)).toEqual([{ __name__: 'test_a', host: 'h1', tenant: 'north' }])
  expect(await get('label/host/values', found, tokens.default)).toEqual(['h1', 'h2'])
  expect(await get('labels', found, tokens.default)).toEqual(['__name__', 'host', 'tenant'])
}
