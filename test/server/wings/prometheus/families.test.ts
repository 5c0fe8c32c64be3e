/** What version 1.0 of remote write says of metrics: who may say it, and how much of it is kept. */
import { snappyCompress } from 'hysnappy'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { ColumnWriter, type TextColumn } from '../../../../server/kit/columns.ts'
import { DescribedFamilies } from '../../../../server/wings/prometheus/families.ts'
import { args, str, type } from '../../../support/bytes.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

const ALL = { may: () => true, most: Number.POSITIVE_INFINITY }
/** What a request says of families. */
function said(...all: readonly (readonly [name: string, type: number, unit: string, help: string])[]): TextColumn {
  const columns = new ColumnWriter('prometheus.')
  for (const [name, type, unit, help] of all) columns.family([name, String(type), unit, help])
  return columns.columns().families
}
const families = (...names: readonly string[]) =>
  said(...names.map((name) => [name, 1, 's', `help of ${name}`] as const))

describe('what is kept of families', () => {
  it('is what may be described, until the tenant ends', () => {
    const metadata = new DescribedFamilies()
    finish(metadata.learn('acme', families('a', 'b'), { ...ALL, may: (name) => name === 'a' }))
    expect(metadata.of('acme', 'a')).toMatchObject({ unit: 's', description: 'help of a', isCounter: true })
    expect(metadata.of('acme', 'a_total')).toMatchObject({ description: 'help of a' })
    expect(metadata.of('acme', 'b')).toBeUndefined()
    expect(metadata.of('globex', 'a')).toBeUndefined()
    metadata.forget('acme')
    expect(metadata.of('acme', 'a')).toBeUndefined()
  })

  it('is as many as the tenant may have series, of which the known ones may change', () => {
    const metadata = new DescribedFamilies()
    finish(metadata.learn('acme', families('a', 'b', 'c'), { ...ALL, most: 2 }))
    expect(metadata.of('acme', 'c')).toBeUndefined()
    finish(metadata.learn('acme', said(['b', 2, '', 'again']), { ...ALL, most: 2 }))
    expect(metadata.of('acme', 'b')).toMatchObject({ unit: undefined, description: 'again', isCounter: false })
  })

  it('is what requests say that come at the same time', () => {
    const metadata = new DescribedFamilies()
    const many = families(...Array.from({ length: 100 }, (_, index) => `f${index}`))
    const first = metadata.learn('acme', many, ALL)
    first.next()
    finish(metadata.learn('acme', families('other'), ALL))
    finish(first)
    expect(['f0', 'other', 'f99'].map((name) => metadata.of('acme', name)?.unit)).toEqual(['s', 's', 's'])
  })

  it('is bounded in bytes, and so are its texts', () => {
    const metadata = new DescribedFamilies()
    const long = 'x'.repeat(1 << 20)
    finish(metadata.learn('acme', said(['a', 2, long, long]), ALL))
    expect(metadata.of('acme', 'a')).toMatchObject({ unit: 'x'.repeat(64), description: 'x'.repeat(1_000) })
    const names = Array.from({ length: 10_000 }, (_, index) => `f${index}`)
    finish(metadata.learn('acme', said(...names.map((name) => [name, 2, '', long.slice(0, 2_000)] as const)), ALL))
    const kept = names.filter((name) => metadata.of('acme', name) !== undefined).length
    expect(kept).toBeGreaterThan(3_000)
    expect(kept).toBeLessThan(4_000)
  })
})

describe('a request with metadata alone', () => {
  const PATH = '/api/v1/write'
  const HEADERS = { 'content-type': 'application/x-protobuf' }
  let server: PublishingProducer
  beforeEach(async () => {
    server = await PublishingProducer.start()
  })
  afterEach(() => server.stop())

  const message = (field: number, bytes: Uint8Array): Buffer =>
    Buffer.concat([Buffer.from([(field << 3) | 2, bytes.length]), bytes])
  /** MetricMetadata: a gauge, its name and its help. */
  const described = (name: string, help: string) =>
    message(3, Buffer.concat([Buffer.from([8, 2]), message(2, Buffer.from(name)), message(4, Buffer.from(help))]))
  const sample = (name: string) => {
    const label = Buffer.concat([message(1, Buffer.from('__name__')), message(2, Buffer.from(name))])
    return message(1, Buffer.concat([message(1, label), message(2, Buffer.from([16, 7]))]))
  }
  const write = (body: Uint8Array, token?: string) => server.post(PATH, snappyCompress(body), HEADERS, token)
  async function descriptionOf(name: string): Promise<string> {
    const list = args(['match', type.string, str(`prometheus.${name}`)])
    const [metric] = decoded(await server.root.query('producer.metrics', list))
    return metric.description
  }

  it('is refused if its sender may publish nothing', async () => {
    const token = await tokenFor(server.root, 'app', 'COLLECT host.cpu*')
    expect((await write(described('a', 'first'), token)).status).toBe(403)
    await write(sample('a'))
    expect(await descriptionOf('a')).toBe('')
  })

  it('describes only what its sender may publish', async () => {
    const token = await tokenFor(server.root, 'app', 'PUBLISH prometheus.a')
    expect((await write(Buffer.concat([described('a', 'of a'), described('b', 'of b')]), token)).status).toBe(204)
    await write(Buffer.concat([sample('a'), sample('b')]))
    expect([await descriptionOf('a'), await descriptionOf('b')]).toEqual(['of a', ''])
  })

  it('describes nothing beside series that its sender may not publish', async () => {
    const token = await tokenFor(server.root, 'app', 'PUBLISH prometheus.a')
    expect((await write(Buffer.concat([described('a', 'of a'), sample('b')]), token)).status).toBe(403)
    await write(sample('a'))
    expect(await descriptionOf('a')).toBe('')
  })
})
