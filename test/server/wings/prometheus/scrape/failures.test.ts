/** Scrapes that fail: nothing of them is taken, what the target said before ends, and the next one may succeed. */
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command } from '../../../../support/bytes.ts'
import { eventually } from '../../../../support/eventually.ts'
import { decoded } from '../../../../support/records.ts'
import { INTERVAL_MS, Scraping } from './scraping.ts'
import { scrapeTables } from './scripted-target.ts'

let scraping: Scraping
beforeEach(async () => {
  scraping = await Scraping.begin()
})
afterEach(() => scraping.end())

describe('a scrape fails', () => {
  async function fails(detail: string | RegExp): Promise<void> {
    scraping.target.text = 'a 1\n'
    const { answer } = scraping.target
    expect(await scraping.fresh('prometheus.a')).toEqual([])
    expect(await scraping.bare('prometheus.up')).toEqual([{ value: 0 }])
    expect(await scraping.bare('prometheus.scrape_samples_scraped')).toEqual([{ value: 0 }])
    const { state, detail: said, counters } = await scraping.status()
    expect([state, counters.failures]).toEqual(['failed', 1])
    expect(said).toMatch(detail)
    scraping.target.answer = answer
  }

  it('if the target answers with another status, and everything that it said before ends', async () => {
    await scraping.start()
    await scraping.subscribe('prometheus.a')
    expect(decoded(await scraping.seat.value())).toMatchObject({ value: 1 })
    scraping.target.answer = (_request, response) => void response.writeHead(500).end('a 5\n')
    scraping.producer.clock.advance(INTERVAL_MS)
    expect(decoded(await scraping.seat.value())).toMatchObject({ value: null })
    await fails('the target answers 500')
  })

  it('if it redirects', async () => {
    await scraping.start()
    scraping.target.answer = (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end()
    await fails('redirects are not followed')
    expect(scraping.target.requests).toHaveLength(1)
  })

  it('if the target sends protocol buffers, which have native histograms and are not asked for', async () => {
    await scraping.start()
    scraping.target.answer = (_request, response) => {
      const type = 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited'
      response.writeHead(200, { 'content-type': type }).end(Buffer.from('0a0161', 'hex'))
    }
    await fails('the target answers in protocol buffers, as for native histograms: it has to send text')
    expect(scraping.target.requests[0]?.headers.accept).not.toMatch(/protobuf/)
  })

  it('if the text cannot be read: nothing of it is taken', async () => {
    await scraping.start()
    scraping.target.answer = (_request, response) => void response.end('a 1\nb x\n')
    await fails('line 2: "x" is no value')
    scraping.target.answer = (_request, response) => void response.end('a 1\nb{c=1} 2\n')
    scraping.producer.clock.advance(1_000)
    expect(await scraping.bare('prometheus.a')).toEqual([])
  })

  it.each([
    ['a 1\nb{c=1} 2\n', 'line 2: label "c" has no text in quotes'],
    ['\u{feff}a 1\n', 'line 1: "\u{feff}a" is no name of a metric'],
    ['a 1\n# HELP a x\nb{c="1",c="2"} 2', 'line 3: label "c" stands twice'],
  ])('if a series cannot be read, with its line: %j', async (text, detail) => {
    await scraping.start()
    scraping.target.answer = (_request, response) => void response.end(text)
    await fails(detail)
  })

  it('if the body is cut off', async () => {
    await scraping.start()
    scraping.target.answer = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('a 1\n', () => response.destroy())
    }
    await fails(/aborted|hang up|reset/i)
  })

  it.each([
    ['max_samples', { max_samples: 2n }, 'a 1\nb 1\nc 1\n', {}],
    ['max_bytes', { max_bytes: 1_024n }, `a 1\n# ${'x'.repeat(2_000)}\n`, {}],
    ['max_bytes', { max_bytes: 1_024n }, gzipSync(`a 1\n#${' '.repeat(5_000)}\n`), { 'content-encoding': 'gzip' }],
  ])('beyond %s', async (bound, keys, body, headers) => {
    await scraping.start(keys)
    scraping.target.answer = (_request, response) => void response.writeHead(200, headers).end(body)
    await fails(bound)
  })

  it('beyond `sample_limit`, which counts the samples that rules keep', async () => {
    const [job] = scrapeTables({
      name: 'node',
      url: scraping.target.url,
      metric_relabel: [{ source_labels: ['__name__'], regex: 'go_.*', action: 'drop' }],
    })
    await scraping.startJobs({ ...job!, sampleLimit: 1 })
    const page = 'go_a 1\na 1\ngo_b 1\n'
    scraping.target.text = page
    for (let count = 0; count < 2; count++) {
      expect(await scraping.fresh('prometheus.a')).toEqual([{ value: 1 }])
      expect(await scraping.bare('prometheus.scrape_samples_scraped')).toEqual([{ value: 3 }])
    }
    expect(await scraping.status()).toMatchObject({ counters: { samples: 2, dropped: 4, failures: 0 } })
    scraping.target.answer = (_request, response) => void response.end(`${page}b 1\n`)
    await fails('more samples than `sample_limit` (1)')
  })

  it('if the answer takes too long, and the next one may succeed', async () => {
    await scraping.start({ timeout: '2s' })
    const { answer } = scraping.target
    scraping.target.answer = () => {}
    const asking = scraping.query('prometheus.up')
    await eventually(() => expect(scraping.target.requests).toHaveLength(1))
    scraping.producer.clock.advance(2_000)
    expect(await asking).toMatchObject([{ value: 0 }])
    expect(await scraping.status()).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('no answer within 2 s'),
    })
    scraping.target.answer = answer
    expect(await scraping.fresh('prometheus.up')).toEqual([{ value: 1 }])
  })

  it('if it answers 101, and the next one may succeed', async () => {
    await scraping.start()
    const { answer } = scraping.target
    scraping.target.answer = ({ socket }) =>
      void socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    await fails('the target answers 101')
    scraping.target.answer = answer
    expect(await scraping.fresh('prometheus.up')).toEqual([{ value: 1 }])
  })

  it('if nothing listens, and reports that once, and the return too', async () => {
    await scraping.start()
    const notices = await scraping.seat.collect('producer.notices')
    await scraping.seat.ok((seq) => command.subscribe(seq, notices))
    const { answer } = scraping.target
    scraping.target.answer = (request) => void request.socket.destroy()
    for (let count = 0; count < 3; count++) await scraping.fresh('prometheus.up')
    scraping.target.answer = answer
    expect(await scraping.fresh('prometheus.up')).toEqual([{ value: 1 }])
    const said = await scraping.seat.values(2)
    expect(said.map((value) => decoded(value))).toMatchObject([
      { severity: 'warning', subject: 'scrape', detail: expect.stringMatching(/^target node is down: /) },
      { severity: 'info', subject: 'scrape', detail: 'target node is up again' },
    ])
  })
})
