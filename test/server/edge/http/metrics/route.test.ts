/** `GET /metrics` over real HTTP: who sees what, in which form, and what is wrong with a request. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import type { Value } from '../../../../../protocol/monitor/value.ts'
import type { GmetricSensor } from '../../../../../server/wings/gmetric/sensor.ts'
import { metadataPacket, valuePacket } from '../../../../bench/gmetric-feed.ts'
import { done } from '../../../../support/administration.ts'
import { command } from '../../../../support/bytes.ts'
import { eventually } from '../../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../../support/publisher.ts'
import { ScriptedTarget, scrapeTables } from '../../../wings/prometheus/scrape/scripted-target.ts'

let server: PublishingProducer
let token: string
beforeEach(async () => {
  server = await PublishingProducer.start()
  token = await tokenFor(server.root, 'app', 'COLLECT *')
})
afterEach(() => server.stop())

const scrape = (
  query = '',
  headers: Record<string, string> = { authorization: `Bearer ${token}` },
): Promise<Response> => fetch(`${server.url}/metrics${query}`, { headers })
const textOf = async (query?: string, headers?: Record<string, string>): Promise<string> => {
  return (await scrape(query, headers)).text()
}
const samplesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

describe('without a token', () => {
  it('shows the figures of the server, in which nothing names anybody', async () => {
    await server.producer.addUser('secretive', { tenant: 'hidden' })
    await server.producer.seat('secretive', 'hidden')
    const text = await textOf('', {})
    expect(text).toContain('\nproducer_stats_storage_ok 1\n')
    expect(text).toMatch(/^producer_stats_accepted_values_total \d+$/m)
    for (const line of samplesOf(text)) expect(line).toMatch(/^producer_stats_/)
    expect(text).not.toMatch(/secretive|hidden|root|tenant=|identity=|channel=/)
  })

  it('shows nothing else', async () => {
    for (const query of ['?metric=host.*', '?metric=producer.channels', '?metric=*', '?host=a']) {
      const answer = await scrape(query, {})
      expect([query, answer.status, answer.headers.get('www-authenticate')]).toEqual([query, 401, 'Bearer'])
    }
  })

  it('is closed where `metrics.open_to` does not say otherwise', async () => {
    const closed = await PublishingProducer.start({ config: { metrics: { openTo: [] } } })
    const answer = await fetch(`${closed.url}/metrics`)
    await closed.stop()
    expect(answer.status).toBe(401)
  })
})

it('shows which targets of a scrape have not answered yet', async () => {
  const target = await ScriptedTarget.start()
  target.answer = () => {}
  const waiting = await PublishingProducer.start({
    config: { scrape: scrapeTables({ name: 'node', url: target.url }) },
  })
  const authorization = `Bearer ${await tokenFor(waiting.root, 'app', 'COLLECT *')}`
  const text = async (query: string) =>
    (await fetch(`${waiting.url}/metrics${query}`, { headers: { authorization } })).text()
  const samples = text('?metric=prometheus.*')
  await eventually(() => expect(target.requests).toHaveLength(1))
  expect(await text('')).toContain('\nproducer_sensors_counters{sensor="scrape/node",counter="awaited"} 1\n')
  // What has come until then is the answer.
  waiting.producer.clock.advance(10_000)
  expect(samplesOf(await samples)).toEqual([])
  await waiting.stop()
  await target.stop()
})

it('is made once for all who wait for the same, also compressed', async () => {
  const target = await ScriptedTarget.start()
  // Nothing is made before the target has had its time.
  target.answer = () => {}
  const waiting = await PublishingProducer.start({
    config: { scrape: scrapeTables({ name: 'node', url: target.url }) },
  })
  const authorization = `Bearer ${await tokenFor(waiting.root, 'app', 'COLLECT *')}`
  waiting.producer.push.push('test.a', { type: BasicType.DOUBLE, value: 1 }, 1_700_000_000_000_000, 'x')
  let answered = 0
  const ask = async (encoding: string): Promise<[status: number, samples: string[]]> => {
    const headers = { authorization, 'accept-encoding': encoding }
    const answer = await fetch(`${waiting.url}/metrics?metric=prometheus.*&metric=test.*`, { headers })
    const samples = samplesOf(await answer.text()).filter((sample) => sample.startsWith('test_'))
    answered++
    return [answer.status, samples]
  }
  const all = Array.from({ length: 60 }, (_, index) => ask(index % 2 === 0 ? 'identity' : 'gzip'))
  await eventually(() => {
    waiting.producer.clock.advance(100)
    expect(answered).toBe(60)
  })
  expect(await Promise.all(all)).toEqual(Array(60).fill([200, ['test_a{host="x"} 1']]))
  await waiting.stop()
  await target.stop()
})

it('that has failed is reported once, however many wait for it', async () => {
  const target = await ScriptedTarget.start()
  target.answer = () => {}
  const failing = await PublishingProducer.start({
    config: { scrape: scrapeTables({ name: 'node', url: target.url }) },
  })
  const headers = { authorization: `Bearer ${await tokenFor(failing.root, 'app', 'COLLECT *')}` }
  const { instances, faults } = failing.producer.server.parts.producer
  const select = instances.select.bind(instances)
  let failed = 0
  const broken: typeof select = function* (reader, metric, ...more) {
    if (metric !== 'test.*') return yield* select(reader, metric, ...more)
    failed++
    throw new Error('a defect')
  }
  instances.select = broken
  let answered = 0
  const ask = async (): Promise<[status: number, text: string]> => {
    const answer = await fetch(`${failing.url}/metrics?metric=prometheus.*&metric=test.*`, { headers })
    const text = await answer.text()
    answered++
    return [answer.status, text]
  }
  const all = Array.from({ length: 20 }, ask)
  await eventually(() => {
    failing.producer.clock.advance(100)
    expect(answered).toBe(20)
  })
  expect(await Promise.all(all)).toEqual(Array(20).fill([500, 'the server failed; its log says why\n']))
  expect(failed).toBeLessThan(20)
  expect(faults.count).toBe(failed)
  await failing.stop()
  await target.stop()
})

it('goes to others although readers before them take nothing, and those are disconnected', async () => {
  const value = 'x'.repeat(60_000)
  // More than the buffers of a connection hold.
  for (let n = 0; n < 250; n++) server.producer.push.push(`test.long${n}`, { type: BasicType.STRING, value }, 1, 'a')
  const request = `GET /metrics?metric=test.* HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`
  const begun: string[] = []
  const deaf = Array.from({ length: 8 }, () => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) })
    socket.on('error', () => {})
    // They read the beginning, so that it is known that they were written to.
    socket.once('readable', () => begun.push(String(socket.read(12))))
    socket.write(request)
    return { socket, closed: once(socket, 'close') }
  })
  await eventually(() => {
    server.producer.clock.advance(100)
    expect(begun).toEqual(Array(deaf.length).fill('HTTP/1.1 200'))
  })
  let text = ''
  void textOf('?metric=test.*').then((found) => {
    text = found
  })
  // Two texts are read, and one of them has to give way first.
  await eventually(() => {
    server.producer.clock.advance(100)
    expect(samplesOf(text)).toHaveLength(250)
  })
  server.producer.clock.advance(30_000)
  // What has come already is read before the end is seen.
  for (const { socket, closed } of deaf) {
    socket.resume()
    await closed
  }
  expect(server.producer.server.parts.producer.scrapes.refused).toBe(8)
})

describe('a token', () => {
  it('that is wrong is refused', async () => {
    const answer = await scrape('', { authorization: 'Bearer wrong' })
    expect([answer.status, await answer.text()]).toEqual([401, 'the token is not valid\n'])
  })

  it('reads what its scope covers', async () => {
    const narrow = { authorization: `Bearer ${await tokenFor(server.root, 'app', 'COLLECT host.*')}` }
    expect((await scrape('?metric=host.load.one', narrow)).status).toBe(200)
    const answer = await scrape('', narrow)
    expect([answer.status, await answer.text()]).toEqual([
      403,
      'the token does not cover reading producer.*: it needs the scope "COLLECT producer.*"\n',
    ])
  })

  it('reads what the rules of its role allow, series by series', async () => {
    await done(server.root, 'role.deny', { role: 'operator', command: 'COLLECT', object: 'test.secret' })
    value('test.secret', 'a', { type: BasicType.DOUBLE, value: 1 })
    value('test.open', 'a', { type: BasicType.DOUBLE, value: 2 })
    expect(samplesOf(await textOf('?metric=test.*'))).toEqual(['test_open{host="a"} 2'])
  })

  it('does not see another tenant', async () => {
    await server.producer.addUser('other', { tenant: 'hidden', role: 'operator' })
    const other = await tokenFor(server.root, 'other', 'COLLECT *', 'hidden')
    const text = await textOf('?metric=producer.*', { authorization: `Bearer ${other}` })
    expect(text).not.toContain('root')
    await server.producer.seat('other', 'hidden')
    expect(samplesOf(await textOf('?metric=producer.channels'))).toEqual([])
  })

  it('gets each channel of its user with its ledger, lag and losses', async () => {
    const seat = await server.producer.seat('app')
    const id = await seat.collect('test.a')
    await seat.ok((seq) => command.subscribe(seq, id))
    value('test.a', 'x', { type: BasicType.DOUBLE, value: 1 })
    await seat.value()
    const lines = samplesOf(await textOf())
    const channel = /producer_channels_accepted_total\{channel="(\d+)",identity="app"\} 1/.exec(lines.join('\n'))?.[1]
    expect(channel).toBeDefined()
    const labels = `{channel="${channel}",identity="app"`
    expect(lines).toContain(`producer_channels_in_flight${labels}} 1`)
    expect(lines).toContain(`producer_channels_connected${labels}} 1`)
    expect(lines).toContain(`producer_channels_dropped_total${labels},cause="overflow"} 0`)
    expect(lines.some((line) => line.startsWith(`producer_channels_lag_seconds${labels}} `))).toBe(true)
  })
})

describe('values', () => {
  it('of every type become samples', async () => {
    const { DOUBLE, BOOLEAN, STRING, UINT64, REC, ARRAY } = BasicType
    value('test.float', 'a', { type: DOUBLE, value: Number.NaN })
    value('test.big', 'a', { type: UINT64, value: 2n ** 64n - 1n })
    value('test.up', 'a', { type: BOOLEAN, value: true })
    value('test.text', 'a', { type: STRING, value: 'a "b"\n\\' })
    const inner = [{ name: 'free', type: DOUBLE, value: 2 }] as const
    value('test.rec', 'a', {
      type: REC,
      value: [
        { name: 'state', type: STRING, value: 'good' },
        { name: 'size.max', type: UINT64, value: 7n },
        { name: 'disk', type: REC, value: inner },
      ],
    })
    value('test.list', 'a', { type: ARRAY, value: { element: REC, items: [inner, inner] } })
    expect(samplesOf(await textOf('?metric=test.*'))).toEqual([
      'test_big{host="a"} 18446744073709551615',
      'test_float{host="a"} NaN',
      'test_list_free{host="a",index="0"} 2',
      'test_list_free{host="a",index="1"} 2',
      'test_rec_disk_free{host="a"} 2',
      'test_rec_info{host="a",state="good"} 1',
      'test_rec_size_max{host="a"} 7',
      'test_text_info{host="a",value="a \\"b\\"\\n\\\\"} 1',
      'test_up{host="a"} 1',
    ])
  })

  it('that are not fresh are left out', async () => {
    value('test.a', 'x', { type: BasicType.DOUBLE, value: 1 })
    value('test.a', 'x', { type: BasicType.VOID, value: null })
    expect(await textOf('?metric=test.*')).toBe('')
  })

  it('are chosen by labels, and stand with their own time where that is asked for', async () => {
    for (const host of ['a', 'b']) value('test.a', host, { type: BasicType.DOUBLE, value: 1 }, 1_700_000_000_123_456)
    expect(samplesOf(await textOf('?metric=test.a&host=b'))).toEqual(['test_a{host="b"} 1'])
    expect(samplesOf(await textOf('?metric=test.a&host=*&timestamps=own'))).toEqual([
      'test_a{host="a"} 1 1700000000123',
      'test_a{host="b"} 1 1700000000123',
    ])
    const open = { authorization: `Bearer ${token}`, accept: 'application/openmetrics-text' }
    expect(samplesOf(await textOf('?metric=test.a&host=b&timestamps=own', open))).toEqual([
      'test_a{host="b"} 1 1700000000.123456',
    ])
  })

  it('that came with the labels of others go out under them', async () => {
    const body = {
      resourceMetrics: [
        {
          resource: { attributes: [{ key: 'name', value: { stringValue: 'n' } }] },
          scopeMetrics: [
            {
              metrics: [
                {
                  name: 'took',
                  unit: 's',
                  description: 'How long it took',
                  histogram: {
                    aggregationTemporality: 2,
                    dataPoints: [
                      {
                        timeUnixNano: '1',
                        count: '3',
                        sum: 4.5,
                        bucketCounts: ['1', '2', '0'],
                        explicitBounds: [1, 2],
                      },
                    ],
                  },
                },
              ],
            },
          ],
        },
      ],
    }
    const headers = { 'content-type': 'application/json' }
    expect((await server.post('/v1/metrics', JSON.stringify(body), headers)).status).toBe(200)
    expect(await textOf('?metric=otlp.*')).toBe(`# HELP otlp_took How long it took
# TYPE otlp_took histogram
otlp_took_bucket{name="n",le="1"} 1
otlp_took_bucket{name="n",le="2"} 3
otlp_took_bucket{name="n",le="+Inf"} 3
otlp_took_count{name="n"} 3
otlp_took_sum{name="n"} 4.5
`)
  })
})

describe('a host of Ganglia', () => {
  it('is up, and shows how long ago it was heard of, also when its values are not fresh any more', async () => {
    const sensors = server.producer.server.parts.hub.sensors
    const gmetric = sensors.find(({ family }) => family === 'gmetric.') as GmetricSensor
    for (const packet of [metadataPacket('load'), valuePacket('load')]) gmetric.packet(packet, '127.0.0.1')
    server.producer.clock.advance(1_500)
    const shown = samplesOf(await textOf('?metric=gmetric.*&metric=ganglia.*'))
    expect(shown).toEqual([
      'cinnabar_last_heard_seconds{host="127.0.0.1"} 1.5',
      'ganglia_host_late{host="127.0.0.1"} 0',
      'ganglia_host_up{host="127.0.0.1"} 1',
      expect.stringMatching(/^gmetric_load\{host="127.0.0.1"\} /),
    ])
    server.producer.clock.advance(600_000)
    const later = samplesOf(await textOf('?metric=gmetric.*&metric=ganglia.*'))
    expect(later).toContain('cinnabar_last_heard_seconds{host="127.0.0.1"} 601.5')
    expect(later).toContain('ganglia_host_up{host="127.0.0.1"} 0')
    expect(later.some((line) => line.startsWith('gmetric_load'))).toBe(false)
  })
})

describe('the form', () => {
  it('is what the scraper prefers, as Prometheus 2.42 asks', async () => {
    const accept =
      'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
    const open = await scrape('', { accept })
    expect(open.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    expect(await open.text()).toMatch(/\n# EOF\n$/)
    const plain = await scrape('', { accept: 'text/plain' })
    expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const other = await scrape('', { accept: 'application/openmetrics-text;version=0.0.1' })
    expect(other.headers.get('content-type')).toMatch(/^text\/plain/)
  })

  it('is gzip where that is accepted', async () => {
    const { request } = await import('node:http')
    const answered = (encoding: string): Promise<[string | undefined, Buffer]> =>
      new Promise((resolve) => {
        request(`${server.url}/metrics`, { headers: { 'accept-encoding': encoding } }, (response) => {
          const parts: Buffer[] = []
          response.on('data', (part: Buffer) => parts.push(part))
          response.on('end', () => resolve([response.headers['content-encoding'], Buffer.concat(parts)]))
        }).end()
      })
    const [encoding, body] = await answered('gzip')
    expect(encoding).toBe('gzip')
    expect(gunzipSync(body).toString()).toContain('producer_stats_storage_ok 1')
    expect((await answered('gzip;q=0'))[0]).toBeUndefined()
    expect((await answered('deflate'))[0]).toBeUndefined()
  })
})

describe('a request that cannot be answered', () => {
  it.each([
    ['?metric=nope.x', 404, /^no metric nope\.x/],
    ['?metric=test.a&cpu=0', 400, /takes no argument cpu/],
    ['?timestamps=mine', 400, /`timestamps` can be `own`/],
    ['?names=short', 400, /`names` can be `prefixed`/],
    [`?${'metric=a&'.repeat(65)}`, 400, /at most 64 times/],
  ])('%s is %i', async (query, status, text) => {
    value('test.a', 'x', { type: BasicType.DOUBLE, value: 1 })
    const answer = await scrape(query)
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringMatching(text)])
  })
})

// promtool comes with Debian's package prometheus.
describe.skipIf(spawnSync('promtool', ['--version']).status !== 0)('promtool (apt install prometheus)', () => {
  it('is content with the figures of the server', async () => {
    for (const text of [await textOf('', {}), await textOf()]) {
      expect(samplesOf(text).length).toBeGreaterThan(20)
      const { stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })
      expect(stdout + stderr).toBe('')
    }
  })
})

/** A value of the test's own sensor. */
function value(name: string, host: string, given: Value, time = 1_700_000_000_000_000): void {
  server.producer.push.push(name, given, time, host)
}
