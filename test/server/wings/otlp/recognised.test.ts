/** Series that are recognised by the numbers of the decoder: rights, ends and names are as if each came for the first time. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { encodeMetricsRequest } from '../../../../protocol/otlp/encode.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { done } from '../../../support/administration.ts'
import { args } from '../../../support/bytes.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

let server: PublishingProducer
beforeEach(async () => {
  server = await PublishingProducer.start()
})
afterEach(() => server.stop())

/** So many requests make a series known by its number. */
const UNTIL_KNOWN = 4
let time = 1_700_000_000_000_000

async function sent(envs: readonly string[], value: number, token = server.token): Promise<number> {
  time += 1_000_000
  const points = envs.map((env) => ({ attributes: [{ key: 'env', value: env }], start: 0, time, isEnd: false, value }))
  const metric = { name: 'a', unit: '', description: '', data: { kind: 'gauge', points } } as const
  const body = Uint8Array.from(finish(encodeMetricsRequest([metric])))
  const answer = await server.post('/v1/metrics', body, { 'content-type': 'application/x-protobuf' }, token)
  await answer.arrayBuffer()
  return answer.status
}

async function known(envs: readonly string[], token?: string): Promise<void> {
  for (let count = 0; count < UNTIL_KNOWN; count++) expect(await sent(envs, 0, token)).toBe(200)
}

async function values(seat = server.root): Promise<Record<string, number>> {
  const found = decoded(await seat.query('otlp.a', args()))
  return Object.fromEntries(found.map(({ env, value }: { env: string; value: number }) => [env, value]))
}

const rule = { role: 'operator', command: 'PUBLISH', object: 'otlp.*' }

it('each keeps its own values, in whatever order they come', async () => {
  await known(['dev', 'prod'])
  await sent(['dev'], 1)
  await sent(['prod'], 2)
  expect(await values()).toEqual({ dev: 1, prod: 2 })
  await sent(['prod', 'dev'], 3)
  expect(await values()).toEqual({ dev: 3, prod: 3 })
})

it('a rule that comes is in force for the next request, and one that goes, too', async () => {
  await known(['dev', 'prod'])
  const denial = await done(server.root, 'role.deny', { ...rule, where: 'env=prod' })
  await sent(['dev', 'prod'], 1)
  expect(await values()).toEqual({ dev: 1, prod: 0 })
  await done(server.root, 'role.forget', { rule: denial })
  await sent(['dev', 'prod'], 2)
  expect(await values()).toEqual({ dev: 2, prod: 2 })
})

it('what the decoder has no room for is counted at the tenant, and published all the same', async () => {
  const counters = async (): Promise<Record<string, number>> => {
    const sensors = decoded(await server.root.query('producer.sensors'))
    return sensors.find(({ name }: { name: string }) => name === 'otlp/default').counters
  }
  await known(['dev'])
  expect(await counters()).toMatchObject({ forgottenLabels: 0, renumbered: 0, lookedUpAgain: 0 })
  for (const part of ['a', 'b']) {
    const many = Array.from({ length: 9_000 }, (_, count) => `${part}${count} ${'x'.repeat(1_000)}`)
    expect(await sent(many, 1)).toBe(200)
  }
  const { forgottenLabels, series } = await counters()
  expect(series).toBe(18_001)
  // There is room for 64 MiB, and each takes four times its bytes.
  expect(forgottenLabels).toBeGreaterThan(1_000)
  expect(forgottenLabels).toBeLessThan(6_000)
  const headers = { authorization: `Bearer ${await tokenFor(server.root, 'app', 'COLLECT *')}` }
  const metrics = await (await fetch(`${server.url}/metrics?metric=producer.sensors`, { headers })).text()
  const sample = `producer_sensors_counters{sensor="otlp/default",counter="forgottenLabels"} ${forgottenLabels}`
  expect(metrics).toContain(sample)
})

it('two tokens with different scopes are judged each for itself', async () => {
  const narrow = await tokenFor(server.root, 'app', 'PUBLISH otlp.b')
  await known(['dev'])
  for (let round = 1; round < 3; round++) {
    await sent(['dev'], -1, narrow)
    expect(await values()).toEqual({ dev: round - 1 })
    await sent(['dev'], round)
    expect(await values()).toEqual({ dev: round })
  }
})

it('another tenant has its own series under the same numbers', async () => {
  await done(server.root, 'tenant.add', { tenant: 'other' })
  await server.producer.addUser('their', { role: 'operator', tenant: 'other' })
  const theirs = await tokenFor(server.root, 'their', 'PUBLISH *', 'other')
  await known(['dev'])
  await known(['dev'], theirs)
  await sent(['dev'], 5, theirs)
  expect(await values(await server.producer.seat('app'))).toEqual({ dev: 0 })
  expect(await values(await server.producer.seat('their', 'other'))).toEqual({ dev: 5 })
})
