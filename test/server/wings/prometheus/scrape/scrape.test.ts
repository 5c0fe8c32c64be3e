/** Targets that are scraped over real sockets by a server with a false clock. */
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { done } from '../../../../support/administration.ts'
import { command } from '../../../../support/bytes.ts'
import { eventually } from '../../../../support/eventually.ts'
import type { TestProducer } from '../../../../support/producer.ts'
import { decoded } from '../../../../support/records.ts'
import type { Seat } from '../../../../support/seat.ts'
import { argumentsOf, INTERVAL_MS, Scraping } from './scraping.ts'
import { ScriptedTarget } from './scripted-target.ts'

let scraping: Scraping
let target: ScriptedTarget
let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  scraping = await Scraping.begin()
  target = scraping.target
})
afterEach(() => scraping.end())

async function start(...tables: readonly object[]): Promise<void> {
  await scraping.start(...tables)
  producer = scraping.producer
  seat = scraping.seat
}

const query: Scraping['query'] = (...given) => scraping.query(...given)
const bare = (name: string) => scraping.bare(name)
const fresh = (name: string) => scraping.fresh(name)
const status = (name?: string) => scraping.status(name)
const subscribe: Scraping['subscribe'] = (...given) => scraping.subscribe(...given)
/** Lets a second pass, so that whoever asks is answered anew. */
const later = () => producer.clock.advance(1_000)

describe('a target', () => {
  it('is scraped when somebody asks, and not before', async () => {
    await start()
    expect(target.requests).toHaveLength(0)
    expect(await query('prometheus.a')).toEqual([{ instance: `127.0.0.1:${target.port}`, job: 'node', value: 1 }])
    expect(target.requests).toHaveLength(1)
    expect(target.requests[0]?.headers).toMatchObject({
      accept: expect.stringMatching(/^application\/openmetrics-text;version=1\.0\.0,text\/plain;version=0\.0\.4/),
      'accept-encoding': 'gzip',
    })
    expect(await bare('prometheus.up')).toEqual([{ value: 1 }])
    expect(await bare('prometheus.scrape_samples_scraped')).toEqual([{ value: 1 }])
    // Within a second everybody gets the same.
    expect(target.requests).toHaveLength(1)
    target.text = 'a 2\n'
    expect(await fresh('prometheus.a')).toEqual([{ value: 2 }])
    producer.clock.advance(10 * INTERVAL_MS)
    expect(target.requests).toHaveLength(2)
  })

  it('is scraped at its interval while somebody has subscribed something that it may have', async () => {
    await start()
    const id = await subscribe('prometheus.a', { job: 'node' })
    expect(decoded(await seat.value())).toMatchObject({ value: 1 })
    for (const value of [2, 3, 4]) {
      target.text = `a ${value}\n`
      producer.clock.advance(INTERVAL_MS)
      expect(decoded(await seat.value())).toMatchObject({ value })
    }
    expect(target.requests).toHaveLength(4)
    expect(await status()).toMatchObject({ state: 'measuring', counters: { scrapes: 4, samples: 4, series: 1 } })
    await seat.ok((seq) => command.stop(seq, id))
    producer.clock.advance(10 * INTERVAL_MS)
    await producer.settle()
    expect(target.requests).toHaveLength(4)
    expect(await status()).toMatchObject({ state: 'off' })
  })

  it.each([
    ['prometheus.a', { job: 'other' }],
    ['prometheus.a', { instance: 'n2:*' }],
    ['host.*', {}],
    ['*.host.up', {}],
    ['*.host.*', { job: 'node' }],
    ['prometheus.b*', { env: 'test' }],
  ])('is not scraped for %s %o', async (name, given) => {
    await start({ labels: { env: 'prod' } })
    await subscribe(name, given)
    await seat.query(name, argumentsOf(given))
    producer.clock.advance(INTERVAL_MS)
    await producer.settle()
    expect(target.requests).toHaveLength(0)
  })

  it.each(['prometheus.*', '*', 'prom*', '*.up', 'p*s.n*e', 'prometheus.x.y', 'prometheus.*.y', 'prometheus.up'])(
    'is scraped for %s',
    async (name) => {
      await start()
      await subscribe(name)
      await eventually(async () => expect(await status()).toMatchObject({ counters: { scrapes: 1, failures: 0 } }))
    },
  )

  it('is one of many in a table, and several tables can have one name', async () => {
    const second = await ScriptedTarget.start()
    onTestFinished(() => second.stop())
    second.text = 'a 2\n'
    const [one, other] = [`127.0.0.1:${target.port}`, `localhost:${second.port}`]
    await start(
      { url: undefined, targets: [one, other], params: { module: ['x'] } },
      { job: 'again', labels: { env: 'prod' } },
      { job: 'again' },
    )
    expect((await query('prometheus.a')).sort((a, b) => String(a['job']).localeCompare(String(b['job'])))).toEqual([
      { env: 'prod', instance: one, job: 'again', value: 1 },
      { instance: one, job: 'again', value: 1 },
      { instance: one, job: 'node', value: 1 },
      { instance: other, job: 'node', value: 2 },
    ])
    expect(second.requests.map(({ url }) => url)).toEqual(['/metrics?module=x'])
    const sensors: { name: string }[] = decoded(await seat.query('producer.sensors'))
    expect(sensors.map(({ name }) => name).filter((name) => name.startsWith('scrape/'))).toEqual([
      'scrape/node',
      `scrape/node/${one}`,
      `scrape/node/${other}`,
      `scrape/node/${one} 2`,
      `scrape/node/${one} 3`,
    ])
  })

  it('has the labels, address, path and parameters that rules give it', async () => {
    await start({
      url: undefined,
      targets: ['n1', 'n2'],
      labels: { __meta_rack: 'r1', __tmp: 'x' },
      params: { module: ['x', 'y'] },
      relabel: [
        { source_labels: ['__address__'], regex: 'n2', action: 'drop' },
        { source_labels: ['__address__'], target_label: '__param_target' },
        { source_labels: ['__address__'], target_label: 'instance' },
        { source_labels: ['__scheme__', '__scrape_interval__', '__scrape_timeout__'], target_label: 'how' },
        { target_label: '__address__', replacement: `127.0.0.1:${target.port}` },
        { target_label: '__metrics_path__', replacement: '/probe' },
        { target_label: '__param_module', replacement: 'z' },
        { regex: '__meta_(rack)', action: 'labelmap' },
        { source_labels: ['rack'], target_label: 'name' },
        { target_label: 'job', replacement: '' },
      ],
    })
    const labels = { exported_name: 'r1', how: 'http;15s;10s', instance: 'n1', rack: 'r1' }
    expect(await query('prometheus.a', { rack: 'r2' })).toEqual([])
    expect(target.requests).toHaveLength(0)
    expect(await query('prometheus.a', { rack: 'r*', exported_name: 'r*' })).toEqual([{ ...labels, value: 1 }])
    expect(await query('prometheus.up')).toEqual([{ ...labels, value: 1 }])
    expect(target.requests.map(({ url }) => url)).toEqual(['/probe?module=z&module=y&target=n1'])
    expect(await status('scrape/node/n1')).toMatchObject({ counters: { scrapes: 1 } })
    expect(await status()).toMatchObject({ state: 'measuring', counters: { targets: 1, dropped: 1, refused: 0 } })
  })

  it.each([
    ['__scheme__', 'ftp', 'n1: `__scheme__` is "ftp", neither http nor https'],
    ['__address__', 'http://n1', 'n1: `__address__` is no address like "n1.example:9100"'],
    ['__address__', '', 'n1: `__address__` is no address like "n1.example:9100"'],
    ['__scrape_interval__', '5s', 'n1: `__scrape_timeout__` is longer than `__scrape_interval__`'],
    ['__scrape_interval__', 'x', 'n1: `__scrape_interval__` is no duration of at least 1s'],
    ['__scheme__', 'http', 'n1: a secret is only sent over https, or to this machine'],
  ])('whose %s becomes %j is refused, and the others are scraped', async (label, replacement, problem) => {
    await start({
      url: undefined,
      targets: ['n1', `127.0.0.1:${target.port}`],
      token_file: '/dev/null',
      relabel: [{ source_labels: ['__address__'], regex: 'n1', target_label: label, replacement }],
    })
    expect(await status()).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining(problem),
      counters: { targets: 1, dropped: 0, refused: 1 },
    })
  })

  it("of another tenant is nobody else's", async () => {
    await start({ tenant: 'north' })
    await producer.addUser('bob', { role: 'operator' })
    await scraping.signIn('bob')
    expect(await query('prometheus.a')).toEqual([])
    await subscribe('prometheus.*')
    producer.clock.advance(INTERVAL_MS)
    await producer.settle()
    expect(target.requests).toHaveLength(0)
  })
})

describe('a scrape', () => {
  it('gives names, labels, values, units and descriptions', async () => {
    await start({ labels: { env: 'prod' } })
    target.text = `# HELP hits_total All hits.
# TYPE hits_total counter
hits_total{path="/a",job="mine",time="x"} 7
hits_total{path="/b"} 1 1395066363000
`
    const [own] = [{ env: 'prod', instance: `127.0.0.1:${target.port}`, job: 'node' }]
    expect(decoded(await seat.query('prometheus.hits_total'))).toEqual([
      { ...own, exported_job: 'mine', exported_time: 'x', path: '/a', time: 1_700_000_000_000_000, value: 7 },
      { ...own, path: '/b', time: 1_395_066_363_000_000, value: 1 },
    ])
    const [metric] = decoded(await seat.query('producer.metrics', argumentsOf({ match: 'prometheus.hits*' })))
    expect(metric).toMatchObject({ name: 'prometheus.hits_total', type: 'double', description: 'All hits.' })
  })

  it('says which samples belong to a histogram', async () => {
    await start()
    target.text = `# TYPE took histogram
took_bucket{le="+Inf"} 1
took_sum 2
took_count 1
# TYPE other_count counter
other_count 1
`
    await seat.query('prometheus.took_bucket')
    const sensor = producer.server.parts.hub.sensors.find(({ family }) => family === 'prometheus.')
    const kinds = ['took_bucket', 'took_sum', 'took_count', 'other_count'].map(
      (name) => sensor?.metric(`prometheus.${name}`)?.distribution,
    )
    expect(kinds).toEqual(['histogram', 'histogram', 'histogram', undefined])
  })

  it('lets the target decide about labels and not about times, if the table says so', async () => {
    await start({ honor_labels: true, honor_timestamps: false })
    target.text = 'a{job="mine",instance=""} 7 1395066363000\n'
    expect(decoded(await seat.query('prometheus.a'))).toEqual([{ job: 'mine', time: 1_700_000_000_000_000, value: 7 }])
  })

  it('gives series other names and labels by rules, or drops them', async () => {
    await start({
      metric_relabel: [
        { source_labels: ['__name__'], regex: 'go_.*', action: 'drop' },
        { source_labels: ['__name__', 'code'], regex: 'hits;5..', target_label: '__name__', replacement: 'errors' },
        { source_labels: ['exported_job'], regex: '(.+)', target_label: 'job' },
        { regex: 'exported_job|noise', action: 'labeldrop' },
      ],
    })
    target.text = '# HELP hits All hits.\ngo_x 1\nhits{code="500",noise="1"} 2\nhits{code="200",job="mine"} 3\n'
    for (let count = 0; count < 2; count++) {
      expect(await bare('prometheus.go_x')).toEqual([])
      expect(await query('prometheus.errors', { job: 'node' })).toMatchObject([{ code: '500', value: 2 }])
      expect(await query('prometheus.hits', { job: 'mine' })).toMatchObject([{ code: '200', value: 3 }])
      later()
    }
    expect(await query('prometheus.hits')).toEqual([
      { code: '200', instance: `127.0.0.1:${target.port}`, job: 'mine', value: 3 },
    ])
    expect(await bare('prometheus.scrape_samples_scraped')).toEqual([{ value: 3 }])
    expect(await status()).toMatchObject({ counters: { samples: 6, dropped: 3, series: 2 } })
  })

  it('counts a series once, whatever the order of its labels, and the target cannot say whether it is up', async () => {
    await start()
    target.text = 'a{x="1",y="2"} 1\na{y="2",x="1"} 2\nup 5\n'
    for (let count = 0; count < 3; count++) {
      expect(await fresh('prometheus.a')).toEqual([{ x: '1', y: '2', value: 1 }])
      expect(await bare('prometheus.up')).toEqual([{ value: 1 }])
    }
    expect(await status()).toMatchObject({ counters: { samples: 3, duplicates: 6, series: 1 } })
  })

  it('may have several samples of a series with times of their own, each of which is taken once', async () => {
    await start()
    const nowMs = () => producer.clock.wallMs()
    const begun = nowMs()
    const at = (seconds: number) => begun + 1_000 * seconds
    target.text = `m1 800.1 ${at(-8)}\nm1 600.1 ${at(-4)}\nm1 900.1 ${at(0)}\n`
    await subscribe('prometheus.m1')
    const first = await seat.values(3)
    expect(first.map((message) => [decoded(message).value, message.time / 1_000])).toEqual([
      [800.1, at(-8)],
      [600.1, at(-4)],
      [900.1, at(0)],
    ])
    expect(await bare('prometheus.m1')).toEqual([{ value: 900.1 }])
    // Not in their order, with one that is there twice.
    target.text = `m1 2 ${at(8)}\nm1 1 ${at(4)}\nm1 3 ${at(8)}\nm1 900.1 ${at(0)}\nm1 800.1 ${at(-8)}\n`
    producer.clock.advance(INTERVAL_MS)
    expect((await seat.values(2)).map((message) => decoded(message).value)).toEqual([1, 2])
    expect(await bare('prometheus.m1')).toEqual([{ value: 2 }])
    await producer.settle()
    expect(seat.rest()).toEqual([])
    expect(await status()).toMatchObject({ counters: { samples: 5, duplicates: 1, repeated: 2, refused: 0 } })
  })

  it('whose samples do not change repeats them, however long; they go on when the clock of the target was set back', async () => {
    await start()
    const begun = producer.clock.wallMs()
    const window = (from: number) =>
      Array.from({ length: 20 }, (_, index) => `m1 ${index} ${begun + from + index}\n`).join('')
    target.text = window(0)
    await subscribe('prometheus.m1')
    expect((await seat.values(20)).map((message) => decoded(message).value)).toHaveLength(20)
    for (let count = 0; count < 6; count++) {
      producer.clock.advance(INTERVAL_MS)
      await eventually(async () => expect(await status()).toMatchObject({ counters: { repeated: 20 * (count + 1) } }))
    }
    expect(seat.rest()).toEqual([])
    target.text = window(-3_600_000)
    producer.clock.advance(INTERVAL_MS)
    expect(await seat.values(20)).toHaveLength(20)
    expect(await bare('prometheus.m1')).toEqual([{ value: 19 }])
  })

  it('may have a comment of any length', async () => {
    await start()
    target.text = `# HELP a ${'x'.repeat(70_000)}\na 1\n`
    expect(await bare('prometheus.a')).toEqual([{ value: 1 }])
    expect(await bare('prometheus.up')).toEqual([{ value: 1 }])
  })

  it('in OpenMetrics under gzip is read too', async () => {
    await start()
    target.answer = (_request, response) => {
      const type = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
      response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
      response.end(gzipSync('# TYPE a counter\na_total 5 1395066363.5 # {id="1"} 1\n# EOF\n'))
    }
    expect(decoded(await seat.query('prometheus.a_total'))[0]).toMatchObject({
      time: 1_395_066_363_500_000,
      value: 5,
    })
  })

  it('without a series that was there before is its end: one VOID', async () => {
    await start()
    target.text = 'a{x="1"} 1\na{x="2"} 1\n'
    await subscribe('prometheus.a', { x: '2' })
    expect(decoded(await seat.value())).toMatchObject({ value: 1 })
    target.text = 'a{x="1"} 1\n'
    producer.clock.advance(INTERVAL_MS)
    expect(decoded(await seat.value())).toMatchObject({ value: null })
    expect(await bare('prometheus.a')).toEqual([{ x: '1', value: 1 }])
    target.text = 'a{x="2"} 5\n'
    producer.clock.advance(INTERVAL_MS)
    expect(decoded(await seat.value())).toMatchObject({ value: 5 })
  })

  it('with series beyond the bounds takes the others', async () => {
    await start()
    target.text = `a{x="${'x'.repeat(2_000)}"} 1\nb 1\n`
    expect(await bare('prometheus.b')).toEqual([{ value: 1 }])
    expect(await status()).toMatchObject({ counters: { refused: 1, samples: 1 } })
  })
})

it('somebody who asks waits five seconds at most', async () => {
  await start()
  target.answer = () => {}
  const asking = query('prometheus.a')
  await eventually(() => expect(target.requests).toHaveLength(1))
  // Whoever asks meanwhile, on another connection, sees what is waited for.
  const other = await producer.seat('root')
  const sensors: { name: string }[] = decoded(await other.query('producer.sensors'))
  const waiting = sensors.find(({ name }) => name === 'scrape/node')
  expect(waiting).toMatchObject({ state: 'measuring', counters: { scrapes: 1, awaited: 1 } })
  producer.clock.advance(5_000)
  expect(await asking).toEqual([])
  expect(await status()).toMatchObject({ counters: { awaited: 1 } })
})

it('somebody who asks, and waits, sees on the same connection what is waited for', async () => {
  await start()
  target.answer = () => {}
  const asked = await seat.ok((seq) => command.query(seq, 'prometheus.a'))
  await eventually(() => expect(target.requests).toHaveLength(1))
  expect(await status()).toMatchObject({ counters: { awaited: 1 } })
  producer.clock.advance(5_000)
  const answer = await seat.value()
  expect([answer.metric, decoded(answer)]).toEqual([asked, []])
})

it('waits while the tenant has reached its quota of values', async () => {
  // The second scrape is due 750 ms after the first, within the same second of the quota.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.5)
  onTestFinished(() => random.mockRestore())
  await start({ interval: '1s' })
  target.text = 'a 1\nb 2\nc 3\n'
  await done(seat, 'tenant.set', { tenant: 'default', values_per_second: 5n })
  await subscribe('prometheus.a')
  // What has begun is taken whole: three values, and three about the target.
  expect(decoded(await seat.value())).toMatchObject({ value: 1 })
  await eventually(async () => expect(await status()).toMatchObject({ counters: { samples: 3 } }))
  producer.clock.advance(900)
  await producer.settle()
  expect(await status()).toMatchObject({
    detail: expect.stringContaining('waits: the tenant has reached its quota of values in a second'),
    counters: { scrapes: 1, postponed: 1, refused: 0 },
  })
  producer.clock.advance(1_000)
  expect(decoded(await seat.value())).toMatchObject({ value: 1 })
})

it('takes series as far as the tenant may have some, and the others when there is room again', async () => {
  await start()
  await done(seat, 'tenant.set', { tenant: 'default', series: 4n })
  target.text = 'a 1\nb 2\n'
  expect([await bare('prometheus.a'), await bare('prometheus.b')]).toEqual([[{ value: 1 }], []])
  expect(await status()).toMatchObject({ counters: { samples: 1, refused: 1 } })
  target.text = 'b 2\n'
  await fresh('prometheus.b')
  expect(await fresh('prometheus.b')).toEqual([{ value: 2 }])
})

it('keeps a series between two scrapes that are far apart', async () => {
  await start({ interval: '1h' })
  await subscribe('prometheus.a')
  expect(decoded(await seat.value())).toMatchObject({ value: 1 })
  // The second scrape comes after half an interval at the earliest.
  for (let minute = 0; minute < 29; minute++) {
    producer.clock.advance(60_000)
    await producer.settle()
  }
  expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
  expect(await bare('prometheus.a')).toEqual([{ value: 1 }])
  expect(target.requests).toHaveLength(1)
})

it('nothing is scraped while an operator has fenced the source', async () => {
  await start()
  await subscribe('prometheus.a')
  await seat.value()
  await done(seat, 'sensor.fence', { sensor: 'prometheus/default' })
  producer.clock.advance(2 * INTERVAL_MS)
  await producer.settle()
  expect(target.requests).toHaveLength(1)
})
