/** `/api/v1/metadata` over real HTTP: what is known of which metrics, and who may know it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { done } from '../../../../support/administration.ts'
import { eventually } from '../../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../../support/publisher.ts'

let server: PublishingProducer
let all: string
let limited: string

beforeAll(async () => {
  server = await PublishingProducer.start({})
  const { producer, root } = server
  await producer.addUser('bob', { role: 'limited' })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'prometheus.*' })
  all = await tokenFor(root, 'root', '')
  limited = await tokenFor(root, 'bob', '')
  await publish(server)
})
afterAll(() => server.stop())

async function publish({ root, url }: PublishingProducer): Promise<void> {
  const publisher = await tokenFor(root, 'root', 'PUBLISH otlp.*')
  const attributes = [{ key: 'host', value: { stringValue: 'h1' } }]
  const point = { attributes, timeUnixNano: '1', asInt: '3' }
  const sum = { aggregationTemporality: 2, isMonotonic: true, dataPoints: [point] }
  const metrics = [
    { name: 'jobs', unit: '{job}', description: 'Jobs that "ran".', sum },
    { name: 'queue', unit: 'By', description: '', gauge: { dataPoints: [point] } },
  ]
  const answer = await fetch(`${url}/v1/metrics`, {
    method: 'POST',
    headers: { authorization: `Bearer ${publisher}`, 'content-type': 'application/json' },
    body: JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }),
  })
  expect(answer.status).toBe(200)
}

type Metadata = Readonly<
  Record<string, readonly { readonly type: string; readonly help: string; readonly unit: string }[]>
>

async function get(
  parameters: Readonly<Record<string, string>>,
  token = all,
  { url } = server,
): Promise<{ status: number; body: string }> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}/api/v1/metadata?${new URLSearchParams(parameters)}`, { headers })
  return { status: answer.status, body: await answer.text() }
}

const dataOf = async (...given: [parameters: Readonly<Record<string, string>>, token?: string]): Promise<Metadata> =>
  (JSON.parse((await get(...given)).body) as { data: Metadata }).data

it('says type, help and unit of each metric', async () => {
  const { body } = await get({ metric: 'otlp_jobs' })
  expect(body).toBe(
    '{"status":"success","data":{"otlp_jobs":[{"type":"counter","help":"Jobs that \\"ran\\".","unit":"{job}"}]}}',
  )
  const everything = await dataOf({})
  expect(everything['otlp_queue']).toEqual([{ type: 'gauge', help: '', unit: 'By' }])
  // A record has a family for each of its fields.
  expect(Object.keys(everything).filter((name) => name.startsWith('producer_channels_')).length).toBeGreaterThan(3)
  // What only says what there is, is no family.
  expect(Object.keys(everything).filter((name) => name.startsWith('producer_metrics'))).toEqual([])
})

it('leaves out what may not be read', async () => {
  await done(server.root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'otlp.jobs' })
  const seen = Object.keys(await dataOf({}, limited))
  expect(seen).not.toContain('otlp_jobs')
  expect(seen).toContain('otlp_queue')
})

it('has as many as are wanted', async () => {
  expect(Object.keys(await dataOf({ limit: '2' }))).toHaveLength(2)
  expect(await get({ limit_per_metric: 'x' })).toMatchObject({ status: 400 })
})

describe('metrics that the history alone remembers', () => {
  let remembering: PublishingProducer
  beforeAll(async () => {
    remembering = await PublishingProducer.start({
      config: { history: { keepMs: 36_500 * 86_400_000, keepRollupsMs: 36_500 * 86_400_000 } },
    })
    await publish(remembering)
  })
  afterAll(() => remembering.stop())

  it('are what was said of them, also after a restart', async () => {
    const { producer } = remembering
    const history = (): ReturnType<typeof rememberedBy> => rememberedBy(remembering.producer)
    await eventually(async () => {
      producer.clock.advance(1_000)
      await producer.settle()
      expect(await history()).toContain('otlp_jobs')
    })
    const restarted = await producer.restart()
    remembering = await PublishingProducer.of(restarted)
    const token = await tokenFor(remembering.root, 'root', '')
    await eventually(async () => {
      const { body } = await get({ metric: 'otlp_jobs' }, token, remembering)
      expect(body).toBe(
        '{"status":"success","data":{"otlp_jobs":[{"type":"counter","help":"Jobs that \\"ran\\".","unit":"{job}"}]}}',
      )
    })
    await restarted.addUser('carol', { role: 'blind' })
    await done(remembering.root, 'role.deny', { role: 'blind', command: 'COLLECT', object: 'otlp.jobs' })
    const blind = await tokenFor(remembering.root, 'carol', '')
    const { body } = await get({}, blind, remembering)
    expect(body).toContain('"otlp_queue"')
    expect(body).not.toContain('otlp_jobs')
  })
})

/** The names of the families that are stored, as an admin sees them. */
async function rememberedBy({ server: { parts } }: PublishingProducer['producer']): Promise<string[]> {
  const history = parts.sources.find(({ remembered }) => remembered !== undefined)?.remembered
  const names: string[] = []
  for await (const families of history?.families({ userId: 1, name: 'root', tenant: 'default', role: 'admin' }) ?? []) {
    names.push(...families.map(({ name }) => name))
  }
  return names
}
