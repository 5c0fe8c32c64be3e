/**
 * What a value costs at 1, 10 and 100 times the number of channels (with a connection each), series, idle connections and tenants.
 * Sizes are measured in turn, `--runs` (3) times, and the medians count. `--svg FILE` draws the curves.
 */
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { median, tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { Local, openMany } from './connection.ts'
import { curveSvg } from './curve.ts'
import { benchFanOut } from './fan-out.ts'
import { GmetricFeed, valuePacket } from './gmetric-feed.ts'
import { consumeReadings } from './gmetric-takers.ts'
import { MeasuredServer } from './measured.ts'

const FACTORS = [1, 10, 100]
const RATE = 20_000
const WARM_UP_SECONDS = 1
const SETTLE_MS = 500
/** Of a connection that is only there. */
const IDLE_BUFFER_BYTES = 1024
const ADDRESSES_PER_NET = 250

/** CPU seconds per million values, for so many of something. */
type Measure = (count: number, seconds: number) => Promise<number>

interface Dimension {
  readonly name: string
  /** How many there are at 1. */
  readonly base: number
  readonly measure: Measure
}

const dimensions: readonly Dimension[] = [
  { name: 'channels', base: 10, measure: costWithChannels },
  { name: 'series', base: 100, measure: (metrics, seconds) => costOfDatagrams({ metrics }, seconds) },
  { name: 'connections', base: 20, measure: (idle, seconds) => costOfDatagrams({ idle }, seconds) },
  { name: 'tenants', base: 1, measure: (tenants, seconds) => costOfDatagrams({ tenants, isConsumed: false }, seconds) },
]

export async function benchScale(argv: string[]): Promise<object> {
  const given = optionsIn(argv, { runs: 3, seconds: 3, only: '', factors: FACTORS.join(','), svg: '' })
  const factors = given.factors.split(',').map(Number)
  const costs: Record<string, number[]> = {}
  for (const { name, base, measure } of dimensions) {
    if (given.only !== '' && !given.only.split(',').includes(name)) continue
    const all = factors.map((): number[] => [])
    for (let run = 0; run < given.runs; run++) {
      for (const [index, factor] of factors.entries()) {
        const cost = await measure(base * factor, given.seconds)
        all[index]?.push(cost)
        console.log(`${base * factor} ${name}: ${cost.toFixed(2)} CPU s per million; load ${loadavg()[0]?.toFixed(1)}`)
      }
    }
    costs[name] = all.map(median)
  }
  console.log(table(costs, factors))
  if (given.svg !== '') writeFileSync(given.svg, drawn(costs, factors))
  return { factors, costs, load: loadavg()[0]?.toFixed(1) }
}

/** Relative to the first, since what an absolute cost is depends on the machine. */
function drawn(costs: Readonly<Record<string, readonly number[]>>, factors: readonly number[]): string {
  const lines = Object.entries(costs).map(([name, all]) => {
    return { name, points: factors.map((factor, index) => [factor, (all[index] ?? 0) / (all[0] ?? 1)] as const) }
  })
  return curveSvg({
    title: 'What a value costs as the server grows',
    xTitle: 'times as many',
    yTitle: 'times the CPU',
    lines,
  })
}

function table(costs: Readonly<Record<string, readonly number[]>>, factors: readonly number[]): string {
  const head = ['', ...factors.flatMap((factor) => [`at ${factor}`, 'times'])]
  const rows = Object.entries(costs).map(([name, all]) => {
    return [name, ...all.flatMap((cost) => [cost.toFixed(2), (cost / (all[0] ?? 1)).toFixed(2)])]
  })
  return tableOf(head, rows)
}

/** As many deliveries, whatever the number of channels. */
async function costWithChannels(channels: number, seconds: number): Promise<number> {
  const values = String(Math.round(500_000 * seconds))
  const figures = { ...(await benchFanOut(['--channels', String(channels), '--values', values])) } as Record<
    string,
    unknown
  >
  return Number(figures['cpuPerMillion'])
}

interface Sizes {
  readonly metrics?: number
  /** Connections that do nothing. */
  readonly idle?: number
  /** Each with a feed of its own. */
  readonly tenants?: number
  readonly isConsumed?: boolean
}

/** gmetric datagrams at a fixed rate, through one pattern to one consumer. */
async function costOfDatagrams(sizes: Sizes, seconds: number): Promise<number> {
  const { metrics = 100, idle = 0, tenants = 0, isConsumed = true } = sizes
  const addresses = Array.from({ length: tenants }, (_, index) => addressOf(index))
  const feeds = addresses.map((address, index) => `[[gmetric.feed]]\ntenant = "t${index}"\nallow = ["${address}/32"]\n`)
  const limits = `[limits]\nconnections = ${idle + 100}\nchannels_per_identity = ${idle + 100}\n`
  const server = new MeasuredServer(limits + feeds.join(''))
  await server.start()
  const user = new Local(server.localSecret)
  const connections = await openMany(server.tcpPort, user, Math.max(1, idle), IDLE_BUFFER_BYTES)
  if (isConsumed) connections.push(await consumeReadings(server.tcpPort, user))
  const packets = Array.from({ length: metrics }, (_, index) => valuePacket(`reading.${index}`))
  const senders = await Promise.all(
    (tenants === 0 ? [undefined] : addresses).map((from) => GmetricFeed.of(server.gmetricPort, packets, from)),
  )
  const sendFor = (time: number): Promise<unknown> =>
    Promise.all(senders.map((sender) => sender.flood(RATE / senders.length, time)))
  const sent = (): number => senders.reduce((sum, sender) => sum + sender.sent, 0)
  await sendFor(WARM_UP_SECONDS)
  await settle()
  const [sentBefore, cpu] = [sent(), server.cpu().all]
  await sendFor(seconds)
  await settle()
  const cost = ((server.cpu().all - cpu) * 1e6) / (sent() - sentBefore)
  for (const each of [...senders, ...connections]) each.close()
  await server.remove()
  return cost
}

/** Of 127.0.0.0/8, which is all this machine. */
function addressOf(index: number): string {
  return `127.1.${Math.floor(index / ADDRESSES_PER_NET)}.${1 + (index % ADDRESSES_PER_NET)}`
}

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
}
