/**
 * The console in a real browser, Debian's Chromium, over a server of its own: 1,000 hosts with 30 metrics each in the catalogue, then
 * `--rate` values a second for `--minutes` into a board of `--charts` charts. What is aimed at, with pass or fail, does not end it.
 */

import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { connect } from '../../client/index.ts'
import { optionsIn } from '../rig/options.ts'
import { freePort } from '../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'
import { GmetricFeed, metadataPacket, valuePacket } from './gmetric-feed.ts'
import { WITHOUT_HISTORY } from './measured.ts'

export const CHROMIUM = '/usr/bin/chromium-headless-shell'
const HOSTS = 1_000
const METRICS = 30
/** All charts are in sight: what is out of sight is not drawn. */
const VIEWPORT = { width: 1440, height: 4_000 }
/** Of them, those whose values go on: as many as a chart can keep. */
const BUSY_HOSTS = 500
/** Rounds until the values repeat. */
const ROUNDS = 8
/** Metadata and first values, per second: no kernel throws any of them away. */
const FILL_RATE = 5_000
/** What a page needs at first (code that is compiled, room for samples) is there after this share of the time. */
const WARM_UP_SHARE = 1 / 3
/** Every letter of it narrows the list. */
const SEARCHED = 'gmetric.reading_17'
const POLL_MS = 100
/** Longer, and nothing more will come, also where a machine does other work. */
const PATIENCE_MS = 180_000

/** What is aimed at, at most. */
const AIMS: Readonly<Record<string, number>> = {
  'first paint, ms': 1_000,
  'search, ms': 100,
  'longest task, ms': 50,
  'heap at the end / beginning': 1.2,
  'dropped or missing values': 0,
}

interface ConsoleFigures {
  readonly series: number
  /** Datagrams that the server has read, and values that the page has committed. */
  readonly received: number
  readonly committed: number
  readonly dropped: number
  readonly heapMiB: readonly [begin: number, end: number]
  readonly bufferMiB: readonly [begin: number, end: number]
  readonly longTasks: number
  readonly measured: Readonly<Record<string, number>>
  readonly valuesPerSecond: number
}

export async function benchConsole(argv: string[]): Promise<ConsoleFigures> {
  const { minutes, rate, charts } = optionsIn(argv, { minutes: 60, rate: 10_000, charts: 20 })
  const udpPort = await freePort()
  const server = new ServerProcess(
    `${WITHOUT_HISTORY}[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n[log]\nlevel = "warn"\n`,
  )
  await server.start()
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
  try {
    const bench = new ConsoleBench(server, browser, udpPort)
    const figures = await bench.run(minutes * 60, rate, charts)
    for (const [name, value] of Object.entries(figures.measured)) console.log(rowOf(name, value))
    return figures
  } finally {
    await browser.close()
    await server.remove()
  }
}

function rowOf(name: string, value: number): string {
  const aim = AIMS[name] as number
  const share = aim === 0 ? '' : `, ${(value / aim).toFixed(2)} of it`
  return `${name.padEnd(30)}${value.toFixed(2).padStart(10)}  at most ${aim}${share}: ${value <= aim ? 'pass' : 'fail'}`
}

class ConsoleBench {
  readonly #server: ServerProcess
  readonly #browser: Browser
  readonly #udpPort: number

  constructor(server: ServerProcess, browser: Browser, udpPort: number) {
    this.#server = server
    this.#browser = browser
    this.#udpPort = udpPort
  }

  async run(seconds: number, rate: number, charts: number): Promise<ConsoleFigures> {
    const url = `ws://127.0.0.1:${this.#server.httpPort}/monitor`
    await using watcher = await connect(url, { identity: 'admin', password: PASSWORD }, { durable: false })
    const ask = async (metric: string): Promise<readonly Answered[]> =>
      (await watcher.query(metric)).plain as unknown as readonly Answered[]
    const received = async () =>
      (await ask('producer.sensors')).find(({ name }) => name === 'gmetric')!.counters!.packets

    const series = await this.#fill(received)
    const page = await this.#browser.newPage({ viewport: VIEWPORT })
    page.setDefaultTimeout(PATIENCE_MS)
    await page.addInitScript(WATCH_LONG_TASKS)
    const firstPaint = await this.#open(page)
    const search = await searchMs(page)

    const board = Array.from({ length: charts }, (_, index) => `chart=${metricName(index)}`)
    await page.goto(`http://127.0.0.1:${this.#server.httpPort}/#/board?${board.join('&')}`)
    await page
      .locator('.chart canvas')
      .nth(charts - 1)
      .waitFor()
    const feed = await GmetricFeed.of(this.#udpPort, busyPackets(charts))
    const memory = await page.context().newCDPSession(page)
    const channel = async () =>
      (await ask('producer.channels')).find(({ bindings }) =>
        bindings?.some(({ name }) => name.startsWith('gmetric.')),
      )!

    // What is read, sent and shown from here on counts.
    const [readBefore, committedBefore] = [await received(), (await channel()).committed]
    await feed.flood(rate, seconds * WARM_UP_SHARE)
    const begin = await heapOf(memory)
    await page.evaluate('longTasks.length = 0')
    const [started, sent] = [performance.now(), feed.sent]
    await feed.flood(rate, seconds * (1 - WARM_UP_SHARE))
    const elapsed = (performance.now() - started) / 1000
    const longTasks = (await page.evaluate('longTasks')) as readonly number[]
    const read = (await received()) - readBefore
    let ledger = await channel()
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until; ledger = await channel()) {
      if (ledger.committed - committedBefore >= read) break
      await page.waitForTimeout(POLL_MS)
    }
    const end = await heapOf(memory)
    feed.close()
    const committed = ledger.committed - committedBefore
    const dropped = Object.values(ledger.dropped).reduce((sum, count) => sum + count, 0)
    return {
      series,
      received: read,
      committed,
      dropped,
      heapMiB: [begin.heapMiB, end.heapMiB],
      bufferMiB: [begin.bufferMiB, end.bufferMiB],
      longTasks: longTasks.length,
      valuesPerSecond: Math.round((feed.sent - sent) / elapsed),
      measured: {
        'first paint, ms': firstPaint,
        'search, ms': search,
        'longest task, ms': Math.max(0, ...longTasks),
        'heap at the end / beginning': end.heapMiB / begin.heapMiB,
        'dropped or missing values': dropped + Math.max(0, read - committed),
      },
    }
  }

  /** Every series gets its metadata and a value; gives how many there are. */
  async #fill(known: () => Promise<number>): Promise<number> {
    const names = allSeries(HOSTS, METRICS)
    const packets = names.flatMap(({ metric, host }) => [metadataPacket(metric, host), valuePacket(metric, host)])
    const feed = await GmetricFeed.of(this.#udpPort, packets)
    await feed.flood(FILL_RATE, packets.length / FILL_RATE)
    // What the kernel threw away, or was not sent in time, is sent again with everything else.
    while ((await known()) < names.length) await feed.flood(FILL_RATE, 1)
    feed.close()
    return names.length
  }

  /** Signs in; gives the milliseconds until the page had painted something. */
  async #open(page: Page): Promise<number> {
    await page.goto(`http://127.0.0.1:${this.#server.httpPort}/#/metrics`)
    await page.fill('[name=identity]', 'admin')
    const painted = await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`)
    await page.fill('[name=password]', PASSWORD)
    await page.click('button.first')
    await page.waitForSelector('input[type=search]')
    await page.waitForSelector('td a')
    return painted as number
  }
}

/** What an answer may contain: records of sensors and of channels. */
interface Answered {
  readonly name: string
  readonly counters?: { readonly packets: number; readonly metrics: number }
  readonly bindings?: readonly { readonly name: string }[]
  readonly committed: number
  readonly dropped: Readonly<Record<string, number>>
}

function metricName(index: number): string {
  return `gmetric.reading_${index}`
}

function allSeries(hosts: number, metrics: number) {
  const names: { metric: string; host: string }[] = []
  for (let host = 0; host < hosts; host++) {
    const address = `10.1.${host >> 8}.${host & 255}:host${host}`
    for (let metric = 0; metric < metrics; metric++) names.push({ metric: `reading_${metric}`, host: address })
  }
  return names
}

/** Values that go up and down, each host apart from the others. */
function busyPackets(charts: number): Uint8Array[] {
  const names = allSeries(BUSY_HOSTS, charts)
  return Array.from({ length: ROUNDS }, (_, round) =>
    names.map(({ metric, host }, index) => valuePacket(metric, host, 50 + 40 * Math.sin(round + index))),
  ).flat()
}

/** Types a name letter by letter: the longest time from a letter to the list that it leaves. */
async function searchMs(page: Page): Promise<number> {
  let longest = 0
  for (let length = 1; length <= SEARCHED.length; length++) {
    const text = JSON.stringify(SEARCHED.slice(0, length))
    const took = await page.evaluate(`(async () => {
      const input = document.querySelector('input[type=search]')
      const isShown = () => {
        const rows = [...document.querySelectorAll('.virtual tbody tr:not(.space)')]
        return rows.length > 0 && rows.every(({ textContent }) => textContent.toLowerCase().includes(${text}))
      }
      const begun = performance.now()
      input.value = ${text}
      input.dispatchEvent(new Event('input', { bubbles: true }))
      do await new Promise(requestAnimationFrame)
      while (!isShown() && performance.now() - begun < 5_000)
      return performance.now() - begun
    })()`)
    longest = Math.max(longest, took as number)
  }
  return longest
}

const WATCH_LONG_TASKS = `
  globalThis.longTasks = []
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask' })
`

export interface Heap {
  readonly heapMiB: number
  /** Of typed arrays, which samples are kept in. */
  readonly bufferMiB: number
}

/** What is left after a collection. */
export async function heapOf(session: CDPSession): Promise<Heap> {
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize, backingStorageSize } = (await session.send('Runtime.getHeapUsage')) as {
    readonly usedSize: number
    readonly backingStorageSize?: number
  }
  return { heapMiB: usedSize / 2 ** 20, bufferMiB: (backingStorageSize ?? 0) / 2 ** 20 }
}
