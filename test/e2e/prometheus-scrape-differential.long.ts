/**
 * The same random texts of metrics, good ones and broken ones, scraped by Debian's Prometheus and by this server: what Prometheus takes is
 * taken here, and whoever consumes has the series, values and times that Prometheus has stored.
 *
 * TEST_SEED=n runs one seed.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import { contentTypes } from '../../protocol/prometheus/exposition.ts'
import { scrapeTables } from '../server/wings/prometheus/scrape/scripted-target.ts'
import { command } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { seeds } from '../support/long.ts'
import { TestProducer } from '../support/producer.ts'
import { Random } from '../support/random.ts'
import { hasPrometheus, RealPrometheus } from '../support/real-prometheus.ts'
import { decoded } from '../support/records.ts'
import type { ValueMessage } from '../support/seat.ts'
import { ExpositionTexts, TIMED } from './exposition-texts.ts'
import { keyOf, ofConsumer, ofPrometheus, type Shown, sorted } from './prometheus-samples.ts'

const TARGETS = 80
/** What the targets say one after the other. */
const PHASES = 3
const THEIR_INTERVAL = '4s'
const OUR_INTERVAL_MS = 15_000
/** What only one of the two says about a target. */
const OWN = /^scrape_(?!samples_scraped)/

/** Why this server refuses what Prometheus takes: text.prometheus.long.ts has the lines. */
const STRICT = /a comma is missing|the labels have no end|is no name of a metric/

/** Each series with its values, of which those that follow each other are one; with times where the target gave them. */
function comparable(all: Shown): Map<string, readonly string[]> {
  const compared = new Map<string, readonly string[]>()
  for (const [key, samples] of all) {
    const [name] = JSON.parse(key) as [string]
    if (OWN.test(name)) continue
    const values = samples.map((sample) => (TIMED.test(name) ? sample : sample.slice(sample.indexOf(' ') + 1)))
    compared.set(
      key,
      values.filter((value, at) => value !== values[at - 1]),
    )
  }
  return sorted(compared)
}

/** Why each target that has failed has, as `producer.sensors` says. */
function problems(sensors: readonly { name: string; state: string; detail: string }[]): Map<string, string> {
  const failed = sensors.filter(({ state }) => state === 'failed')
  return new Map(failed.map(({ name, detail }) => [name, detail]))
}

// prometheus comes with Debian's package prometheus.
it.skipIf(!hasPrometheus).each(seeds({ short: 1, long: 1 }))('seed %i (apt install prometheus)', async (seed) => {
  const random = new Random(seed)
  const started = Date.now()
  const targets = Array.from({ length: TARGETS }, () => {
    const format = random.pick(['prometheus', 'openmetrics'] as const)
    const texts = new ExpositionTexts(random, format, started)
    return { format, texts: Array.from({ length: PHASES }, () => texts.next()) }
  })
  let phase = 0
  const server = createServer((request, response) => {
    const target = targets[Number(request.url?.slice(1))]
    if (target === undefined) return response.writeHead(404).end()
    return response.writeHead(200, { 'content-type': contentTypes[target.format] }).end(target.texts[phase])
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const clock = new FakeClock(started)
  const scrape = scrapeTables(
    ...targets.map((_, at) => ({ name: `t${at}`, url: `http://${address}/${at}`, interval: `${OUR_INTERVAL_MS}ms` })),
  )
  const producer = await TestProducer.start({ clock, config: { scrape } })
  const prometheus = await RealPrometheus.start({
    global: { scrape_interval: THEIR_INTERVAL, scrape_timeout: THEIR_INTERVAL },
    scrape_configs: targets.map((_, at) => ({
      job_name: `t${at}`,
      metrics_path: `/${at}`,
      static_configs: [{ targets: [address] }],
    })),
  })
  const isDisputed = targets.map(() => false)
  /** Waits until each target has been scraped by a scrape that began after that. */
  const scrapedSince = (begunMs: number) =>
    eventually(async () => {
      const scrapes = await prometheus.scrapes()
      // The machine was busy: what has become of the target says nothing.
      for (const [job, { isLate }] of scrapes) if (isLate) isDisputed[Number(job.slice(1))] = true
      expect([...scrapes.values()].filter((scrape) => scrape.begunMs > begunMs)).toHaveLength(TARGETS)
      return scrapes
    })
  try {
    const seat = await producer.seat()
    const id = await seat.collect('prometheus.*')
    await seat.ok((seq) => command.subscribe(seq, id))
    await producer.addUser('root', { role: 'admin' })
    const root = await producer.seat('root')
    const messages: ValueMessage[] = []
    const disputed: object[] = []
    for (; phase < PHASES; phase++) {
      const begunMs = Date.now()
      clock.advance(phase === 0 ? 100 : OUR_INTERVAL_MS)
      for (let left = TARGETS; left > 0; ) {
        const message = await seat.value()
        messages.push(message)
        if (decoded(message).name === 'prometheus.scrape_samples_scraped') left--
      }
      const theirs = await scrapedSince(begunMs)
      const ours = problems(decoded(await root.query('producer.sensors')))
      for (const [at, { format, texts }] of targets.entries()) {
        const [their, our] = [theirs.get(`t${at}`)?.problem, ours.get(`scrape/t${at}`)]
        if ((their === '') === (our === undefined)) continue
        isDisputed[at] = true
        // This server takes more, too.
        if (our !== undefined && !STRICT.test(our)) disputed.push({ format, text: texts[phase], our })
      }
    }
    expect(disputed).toEqual([])
    phase = PHASES - 1
    // What has been reported is stored a moment later: before the next scrape.
    await scrapedSince(Date.now())
    const expected = comparable(ofPrometheus(await prometheus.read()))
    const got = comparable(ofConsumer(messages))
    const different = targets.flatMap(({ format, texts }, at) => {
      if (isDisputed[at]) return []
      // After a scrape that has failed Prometheus does not end series that stand before the fault, and ends others that never came.
      const isWhole = expected.get(keyOf('up', Object.entries({ instance: address, job: `t${at}` })))?.join() === '1'
      const isCompared = (key: string) => key.includes(`["job","t${at}"]`) && (isWhole || key.startsWith('["up"'))
      const [theirs, ours] = [expected, got].map((all) => [...all].filter(([key]) => isCompared(key)))
      return isDeepStrictEqual(theirs, ours) ? [] : [{ format, texts, theirs, ours }]
    })
    expect(different).toEqual([])
    expect(isDisputed).toContain(false)
  } finally {
    await prometheus.stop()
    await producer.stop()
    server.close()
    server.closeAllConnections()
  }
})
