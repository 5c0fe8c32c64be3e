/**
 * The console over a fleet, in Debian's Chromium: `--targets` targets with `--series` series each, which nobody collects, and `--hosts`
 * hosts that report by gmetric. It measures how long each view takes as the first of a new tab, from the press of *Sign in* until it
 * is complete; how often views that show nothing of a target had one scraped; and what a page holds that shows all targets.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type Browser, chromium } from 'playwright-core'
import { connect } from '../../client/index.ts'
import { optionsIn } from '../rig/options.ts'
import { freePort } from '../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'
import { CHROMIUM, type Heap, heapOf } from './console.ts'
import { GmetricFeed, metadataPacket, valuePacket } from './gmetric-feed.ts'

const METRICS = ['load_one', 'mem_free', 'bytes_in', 'disk_free'] as const
/** Series of each metric of a target. */
const PARTS = 20
/** Packets per second: no kernel throws any of them away. */
const FILL_RATE = 2_000
/** What is aimed at, and what is good enough on a machine that does other work. */
const AIM_MS = 2_000
const BUSY_MS = 5_000
const PATIENCE_MS = 120_000
/** Whatever is recorded is scraped all the time. */
const NO_HISTORY = '[history]\nkeep = "0"\n'
/** How often every host reports. */
const REPORT_MS = 5_000

interface Fleet {
  readonly targets: number
  readonly series: number
  readonly hosts: number
}

interface FleetFigures extends Fleet {
  /** Of targets, by views that show nothing of them. */
  readonly scrapes: number
  /** Milliseconds, by view. */
  readonly complete: Readonly<Record<string, number>>
  readonly heapMiB: number
  readonly bufferMiB: number
}

export async function benchConsoleFleet(argv: string[]): Promise<FleetFigures> {
  const fleet = optionsIn(argv, { targets: 300, series: 500, hosts: 300 })
  const [udpPort, port] = [await freePort(), await freePort()]
  let scrapes = 0
  const text = textOf(fleet.series)
  const exporter = createServer((_request, response) => {
    scrapes++
    response.end(text)
  })
  await once(exporter.listen(port, '0.0.0.0'), 'listening')
  // Each has an address of its own on this machine.
  const addresses = Array.from({ length: fleet.targets }, (_, n) => `127.0.${1 + (n >> 7)}.${1 + (n & 127)}:${port}`)
  const scrape = `[[scrape]]\nname = "node"\ntargets = ${JSON.stringify(addresses)}\n`
  const server = new ServerProcess(
    `[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n[log]\nlevel = "warn"\n${NO_HISTORY}${scrape}`,
  )
  await server.start()
  let [feed, reporting]: [GmetricFeed?, NodeJS.Timeout?] = []
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  try {
    feed = await fill(server, udpPort, fleet)
    reporting = setInterval(() => void feed?.send(fleet.hosts * METRICS.length * 2), REPORT_MS)
    const before = scrapes
    const complete: Record<string, number> = {}
    for (const [view, { hash, shown }] of Object.entries(viewsOf(fleet))) {
      complete[view] = (await firstView(browser, server, hash, shown)).ms
    }
    const unwanted = scrapes - before
    const { ms, heap } = await firstView(browser, server, '#/metrics/prometheus.up', '.chart-card .virtual td a')
    complete['a metric of all targets'] = ms
    for (const [view, taken] of Object.entries(complete)) console.log(rowOf(view, taken))
    console.log(`${unwanted} scrapes by views that show nothing of the targets`)
    return { ...fleet, scrapes: unwanted, complete, ...heap }
  } finally {
    clearInterval(reporting)
    feed?.close()
    await browser.close()
    await server.remove()
    exporter.closeAllConnections()
    exporter.close()
  }
}

/** What each view has when it is complete. The server's own machine is one of the hosts. */
function viewsOf({
  targets,
  hosts,
}: Fleet): Readonly<Record<string, { readonly hash: string; readonly shown: string }>> {
  return {
    overview: { hash: '#/overview', shown: 'section[aria-label="Sources"] a:has-text("gmetric")' },
    hosts: {
      hash: '#/hosts',
      shown: `main:has(h2:text-is("${hosts + 1} of ${hosts + 1}")) .spark .number:text-is("1")`,
    },
    'one host': { hash: '#/hosts/host7', shown: 'main:has(.legend b) .virtual td bdi:text-is("gmetric.load_one")' },
    metrics: { hash: '#/metrics', shown: 'main:has(.virtual td a) h2:not(:has-text("…"))' },
    'a metric of all hosts': { hash: '#/metrics/gmetric.load_one', shown: '.chart-card .virtual td a' },
    sources: { hash: '#/sources', shown: `section[aria-label="scrape/node"]:has-text("${targets}")` },
    channels: { hash: '#/channels', shown: 'main table' },
  }
}

/** Has all targets scraped once, and every host report every metric; gives what reports again. */
async function fill(server: ServerProcess, udpPort: number, { targets, hosts }: Fleet): Promise<GmetricFeed> {
  const url = `ws://127.0.0.1:${server.httpPort}/monitor`
  await using watcher = await connect(url, { identity: 'admin', password: PASSWORD }, { durable: false })
  const count = async (metric: string, args = {}): Promise<number> =>
    (await watcher.query(metric, args)).elements.length
  const packets = Array.from({ length: hosts }, (_, host) => `10.1.${host >> 8}.${host & 255}:host${host}`).flatMap(
    (host) => METRICS.flatMap((metric) => [metadataPacket(metric, host), valuePacket(metric, host, 1)]),
  )
  const feed = await GmetricFeed.of(udpPort, packets)
  do await feed.flood(FILL_RATE, packets.length / FILL_RATE)
  while ((await count('gmetric.disk_free', { host: '*' })) < hosts)
  while ((await count('prometheus.up')) < targets) await new Promise((resolve) => setTimeout(resolve, 100))
  return feed
}

/** Opens a view in a tab of its own, signs in, and waits until `shown` is there. */
async function firstView(
  browser: Browser,
  server: ServerProcess,
  hash: string,
  shown: string,
): Promise<{ readonly ms: number; readonly heap: Heap }> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(`http://127.0.0.1:${server.httpPort}/${hash}`)
  await page.fill('[name=identity]', 'admin')
  await page.fill('[name=password]', PASSWORD)
  const begun = performance.now()
  await page.click('button.first')
  await page.waitForSelector(shown)
  const ms = performance.now() - begun
  const heap = await heapOf(await page.context().newCDPSession(page))
  await page.close()
  return { ms: Math.round(ms), heap }
}

function rowOf(view: string, ms: number): string {
  const verdict = ms <= AIM_MS ? 'pass' : ms <= BUSY_MS ? 'pass on a busy machine' : 'fail'
  return `${view.padEnd(26)}${String(ms).padStart(8)} ms, at most ${AIM_MS}: ${verdict}`
}

/** What a target says. */
function textOf(series: number): string {
  const lines: string[] = []
  for (let one = 0; one < series; one++) {
    const metric = `reading_${Math.floor(one / PARTS)}_total`
    if (one % PARTS === 0) lines.push(`# TYPE ${metric} counter`)
    lines.push(`${metric}{part="${one % PARTS}"} ${one}`)
  }
  return `${lines.join('\n')}\n`
}
