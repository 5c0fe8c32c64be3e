/** `POST /api/v1/write`, as the specifications of remote write have its answers. */
import { readFileSync } from 'node:fs'
import { snappyCompress } from 'hysnappy'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

const PATH = '/api/v1/write'
const HEADERS = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' }
const HEADERS_2 = { ...HEADERS, 'content-type': 'application/x-protobuf;proto=io.prometheus.write.v2.Request' }

let server: PublishingProducer
beforeEach(async () => {
  server = await PublishingProducer.start()
})
afterEach(() => server.stop())

const captured = (name: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../../../vectors/prometheus/${name}.snappy`, import.meta.url)))
const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'))
const query = async (name: string) => decoded(await server.root.query(name))
const written = ({ headers }: Response): string | null => headers.get('x-prometheus-remote-write-samples-written')

/** Version 1.0: `__name__` of one letter, a label `l` with the text of one letter, and samples of one byte of milliseconds. */
function series(name: string, label: string, ...times: number[]): string {
  const hex = (text: string) => Buffer.from(text).toString('hex')
  const labels = `0a 0d 0a 08 ${hex('__name__')} 12 01 ${hex(name)}  0a 06 0a 01 ${hex('l')} 12 01 ${hex(label)}`
  const samples = times.map((time) => `12 0b 09 000000000000f03f 10 ${time.toString(16).padStart(2, '0')}`)
  const length = 23 + 13 * times.length
  return `0a ${length.toString(16).padStart(2, '0')} ${labels} ${samples.join(' ')}`
}
const post = (hex: string, headers = HEADERS, token?: string) =>
  server.post(PATH, snappyCompress(bytes(hex)), headers, token)

describe('a request', () => {
  it('of Prometheus is answered 204 with what was written, and again when it comes again', async () => {
    for (let count = 0; count < 2; count++) {
      const answer = await server.post(PATH, captured('write-samples'), HEADERS)
      expect([answer.status, written(answer)]).toEqual([204, '52'])
    }
    expect(await query('prometheus.go_gc_duration_seconds')).toHaveLength(5)
    const [sensor] = (await query('producer.sensors')).filter(({ name }: { name: string }) =>
      name.startsWith('prometheus'),
    )
    expect(sensor.counters).toMatchObject({ values: 52, repeated: 52 })
  })

  it('with metadata describes series that come later', async () => {
    expect((await server.post(PATH, captured('write-metadata'), HEADERS)).status).toBe(204)
    await server.post(PATH, captured('write-samples'), HEADERS)
    const list = args(['match', type.string, str('prometheus.go_gc_duration_seconds*')])
    const metrics = decoded(await server.root.query('producer.metrics', list))
    expect(metrics.length).toBeGreaterThan(0)
    for (const { description } of metrics) expect(description).toMatch(/pause duration of garbage collection cycles/)
    const sensor = server.producer.server.parts.hub.sensors.find(({ family }) => family === 'prometheus.')
    for (const part of ['', '_sum', '_count']) {
      expect(sensor?.metric(`prometheus.go_gc_duration_seconds${part}`)?.distribution).toBe('summary')
    }
  })

  it('of version 2.0 is told apart by its content type', async () => {
    const symbols = '22 00  22 08 5f5f6e616d655f5f  22 02 7570'
    const answer = await post(`${symbols} 2a 11 0a 02 0102 12 0b 09 000000000000f03f 10 07`, HEADERS_2)
    expect([answer.status, written(answer)]).toEqual([204, '1'])
    expect(answer.headers.get('x-prometheus-remote-write-histograms-written')).toBe('0')
    expect(await query('prometheus.up')).toEqual([{ time: 7_000, value: 1 }])
  })

  it('brings all samples of a series, in their order', async () => {
    const seat = await server.producer.seat()
    const id = await seat.collect('prometheus.a')
    await seat.ok((seq) => command.subscribe(seq, id))
    expect((await post(series('a', 'x', 1, 2, 3))).status).toBe(204)
    expect((await seat.values(3)).map(({ time }) => time)).toEqual([1_000, 2_000, 3_000])
  })

  it('brings samples that are older than others, and those with one time and several values', async () => {
    const seat = await server.producer.seat()
    const id = await seat.collect('prometheus.a')
    await seat.ok((seq) => command.subscribe(seq, id))
    expect((await post(series('a', 'x', 3, 1))).status).toBe(204)
    const other = series('a', 'x', 3).replace('000000000000f03f', '0000000000000040')
    expect((await post(other)).status).toBe(204)
    const got = (await seat.values(3)).map((message) => [message.time, decoded(message).value])
    expect(got).toEqual([
      [3_000, 1],
      [1_000, 1],
      [3_000, 2],
    ])
  })

  it('with native histograms is answered 400, which says so; its samples are taken', async () => {
    const answer = await post(`${series('a', 'x', 1)} 0a 04 22 02 08 01`)
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '1 native histograms were not taken, the first of prometheus.: send classic ones\n',
      '1',
    ])
    expect(await query('prometheus.a')).toHaveLength(1)
  })

  it('of version 2.0 with native histograms is answered 400, too, with the name of the first', async () => {
    const symbols = '22 00  22 08 5f5f6e616d655f5f  22 02 7570  22 01 68'
    const [sample, histogram] = ['12 0b 09 000000000000f03f 10 07', '1a 02 08 01']
    const ofBoth = `2a 15 0a 02 0102 ${sample} ${histogram}  2a 0c 0a 02 0103 ${histogram} ${histogram}`
    const answer = await post(`${symbols} ${ofBoth}`, HEADERS_2)
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '3 native histograms were not taken, the first of prometheus.up: send classic ones\n',
      '1',
    ])
    expect(answer.headers.get('x-prometheus-remote-write-histograms-written')).toBe('0')
    expect(await query('prometheus.up')).toEqual([{ time: 7_000, value: 1 }])
    expect(await query('prometheus.h*')).toEqual([])
  })

  it('with samples and native histograms that are not taken names both', async () => {
    const text = (hex: string) => `0a 06 0a 01 6c 12 01 ${hex}`
    const name = `0a 0d 0a 08 ${Buffer.from('__name__').toString('hex')} 12 01 62`
    const samples = '12 0b 09 000000000000f03f 10 01  12 0b 09 000000000000f03f 10 02'
    const answer = await post(`0a 3d ${name} ${text('78')} ${text('79')} ${samples} 22 02 08 01`)
    expect([answer.status, await answer.text()]).toEqual([
      400,
      '2 of 2 samples were not taken: prometheus.b: label l is there twice; ' +
        '1 native histograms were not taken, the first of prometheus.b: send classic ones\n',
    ])
  })
})

describe('a request with a series that may not be published', () => {
  it('is refused as a whole with the first name, before anything is taken', async () => {
    await done(server.root, 'role.deny', { role: 'operator', command: 'PUBLISH', object: 'prometheus.b', where: 'l=y' })
    const answer = await post(series('a', 'x', 1) + series('b', 'y', 1) + series('b', 'x', 1))
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      403,
      'PUBLISH of prometheus.b is not allowed with these labels\n',
      '0',
    ])
    expect(await query('prometheus.a')).toEqual([])
    expect((await post(series('b', 'x', 1))).status).toBe(204)
  })

  it('by its scope is, too', async () => {
    const token = await tokenFor(server.root, 'app', 'PUBLISH otlp.*')
    expect((await post(series('a', 'x', 1), HEADERS, token)).status).toBe(403)
  })
})

describe('what is refused', () => {
  it('a token that is missing or not valid', async () => {
    const bare = await fetch(server.url + PATH, { method: 'POST', headers: HEADERS, body: new Uint8Array(1) })
    expect([bare.status, bare.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect((await post(series('a', 'x', 1), HEADERS, 'nonsense')).status).toBe(401)
  })

  it('requests without a valid token, when there are too many; those with one are still taken', async () => {
    await server.stop()
    server = await PublishingProducer.start({ config: { http: { requestsPerMinute: 3 } } })
    const statuses: number[] = []
    for (let count = 0; count < 5; count++) statuses.push((await post(series('a', 'x', 1), HEADERS, 'nonsense')).status)
    expect(statuses).toEqual([401, 401, 401, 429, 429])
  })

  it('no request with a token for their number', async () => {
    await server.stop()
    server = await PublishingProducer.start({ config: { http: { requestsPerMinute: 3 } } })
    for (let count = 0; count < 6; count++) expect((await post(series('a', 'x', count + 1))).status).toBe(204)
  })

  it.each([
    ['another type', { ...HEADERS, 'content-type': 'text/plain' }, 415],
    ['another message', { ...HEADERS, 'content-type': 'application/x-protobuf;proto=x.Y' }, 415],
    ['another compression', { ...HEADERS, 'content-encoding': 'zstd' }, 415],
  ])('%s', async (_, headers, status) => {
    expect((await post(series('a', 'x', 1), headers)).status).toBe(status)
  })

  it('another compression by its name', async () => {
    const answer = await post(series('a', 'x', 1), { ...HEADERS, 'content-encoding': 'zstd' })
    expect(await answer.text()).toBe('the content encoding zstd is not taken: snappy is\n')
  })

  it('what is no request, and what is too long', async () => {
    expect((await server.post(PATH, new Uint8Array([5, 1]), HEADERS)).status).toBe(400)
    expect((await post('0a 05 01')).status).toBe(400)
    expect((await server.post(PATH, new Uint8Array((4 << 20) + 1), HEADERS)).status).toBe(413)
    const bomb = await server.post(PATH, snappyCompress(new Uint8Array((8 << 20) + 1)), HEADERS)
    expect([bomb.status, await bomb.text()]).toEqual([413, expect.stringContaining('8388609 bytes when decompressed')])
  })

  it('labels of which a name is there twice (prometheus#19665)', async () => {
    const twice = '12 0b 09 000000000000f03f 10 07'
    const name = '0a 0d 0a 08 5f5f6e616d655f5f 12 01 63'
    const answer = await post(
      `0a 2c ${name} 0a 06 0a 01 6c 12 01 61 0a 06 0a 01 6c 12 01 62 ${twice}${series('a', 'x', 1)}`,
    )
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '1 of 2 samples were not taken: prometheus.c: label l is there twice\n',
      '1',
    ])
    expect(await query('prometheus.c')).toEqual([])
  })

  it.each([HEADERS, HEADERS_2])('the name of a series that is there twice: %j', async (headers) => {
    const sample = '12 0b 09 000000000000f03f 10 07'
    const name = (letter: string) => `0a 0d 0a 08 5f5f6e616d655f5f 12 01 ${letter}`
    const version1 = `0a 2b ${name('63')} ${name('64')} ${sample} ${series('a', 'x', 1)}`
    const symbols = '22 00 22 08 5f5f6e616d655f5f 22 01 63 22 01 64'
    const version2 = `${symbols} 2a 13 0a 04 01 02 01 03 ${sample} 2a 11 0a 02 01 02 ${sample}`
    const answer = await post(headers === HEADERS ? version1 : version2, headers)
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '1 of 2 samples were not taken: prometheus.c: label __name__ is there twice\n',
      '1',
    ])
  })

  it('times before 1970, and those that no clock has, sample by sample', async () => {
    const sample = (time: string, bytes: number) =>
      `12 ${bytes.toString(16).padStart(2, '0')} 09 000000000000f03f 10 ${time}`
    const name = '0a 0d 0a 08 5f5f6e616d655f5f 12 01 63'
    const samples = `${sample('fbffffffffffffffff01', 20)} ${sample('80808080808080808001', 20)} ${sample('07', 11)}`
    const answer = await post(`0a ${(15 + 22 + 22 + 13).toString(16)} ${name} ${samples}`)
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '2 of 3 samples were not taken: prometheus.c: the time -5000 µs is not possible\n',
      '1',
    ])
    expect(await query('prometheus.c')).toEqual([{ time: 7_000, value: 1 }])
  })

  it('a series of version 2.0 whose labels cannot be read, and no other', async () => {
    const symbols = '22 00  22 08 5f5f6e616d655f5f  22 02 7570'
    const sample = '12 0b 09 000000000000f03f 10 07'
    const request = `${symbols} 2a 11 0a 02 0109 ${sample} 2a 10 0a 01 01 ${sample} 2a 11 0a 02 0102 ${sample}`
    const answer = await post(request, HEADERS_2)
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '2 of 3 samples were not taken: prometheus.: there is no symbol 9\n',
      '1',
    ])
    expect(await query('prometheus.up')).toEqual([{ time: 7_000, value: 1 }])
  })

  it('the message of the version that the content type does not name', async () => {
    for (const [body, headers] of [
      [series('a', 'x', 1), HEADERS_2],
      ['22 00', HEADERS],
    ] as const) {
      const answer = await post(body, headers)
      expect([answer.status, await answer.text(), written(answer)]).toEqual([
        400,
        expect.stringContaining('which the content type does not name'),
        '0',
      ])
    }
  })

  it.each(['Proto=io.prometheus.write.v2.Request', 'proto="io.prometheus.write.v2.Request"'])(
    'no content type for how it is written: %s',
    async (parameter) => {
      const symbols = '22 00  22 08 5f5f6e616d655f5f  22 02 7570'
      const body = `${symbols} 2a 11 0a 02 0102 12 0b 09 000000000000f03f 10 07`
      const answer = await post(body, { ...HEADERS, 'content-type': `application/x-protobuf;${parameter}` })
      expect([answer.status, written(answer)]).toEqual([204, '1'])
    },
  )

  it('values beyond the quota of a second, with 429', async () => {
    await done(server.root, 'tenant.set', { tenant: 'default', values_per_second: 1n })
    expect((await post(series('a', 'x', 1, 2))).status).toBe(204)
    const answer = await post(series('a', 'x', 3))
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1'])
    server.producer.clock.advance(1_001)
    expect((await post(series('a', 'x', 3))).status).toBe(204)
  })

  it('series beyond the quota of the tenant, which the answer counts', async () => {
    await done(server.root, 'tenant.set', { tenant: 'default', series: 1n })
    const answer = await post(series('a', 'x', 1) + series('a', 'y', 1))
    expect([answer.status, await answer.text(), written(answer)]).toEqual([
      400,
      '1 of 2 samples were not taken: prometheus.a: the tenant has 1 series and may have 1\n',
      '1',
    ])
  })
})
