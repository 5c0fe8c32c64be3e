/**
 * gmetric datagrams at each of `--rates` (per second; `max`: as fast as the kernel takes them), for `--seconds`, to Cinnabar,
 * and to gmond where it is installed (`--alone`: Cinnabar only). What the kernel threw away stands in /proc/net/udp; `--consumed`:
 * a consumer of Cinnabar takes and commits every value. The limit is a Node socket that only counts.
 */
import { optionsIn } from '../rig/options.ts'
import { GmetricFeed } from './gmetric-feed.ts'
import {
  cpuOf,
  dropsOf,
  hasGmond,
  METRICS,
  startCinnabar,
  startGmond,
  startReader,
  type Taker,
} from './gmetric-takers.ts'
import type { Figures } from './ratios.ts'

/** Compiling and growing is not what is measured. */
const WARM_UP_SECONDS = 1
/** What waits in the receive buffer is taken in this time; nothing more is dropped. */
const SETTLE_MS = 1_000

interface Run {
  readonly taker: string
  readonly offeredPerSecond: number
  readonly takenPerSecond: number
  readonly droppedShare: number
  /** That it could take with a core of its own. */
  readonly perCpuSecond: number
  readonly cpuPerMillion: number
}

export async function benchGmetric(argv: string[]): Promise<object> {
  const options = optionsOf(argv)
  const takers: Record<string, () => Promise<Taker>> = {
    cinnabar: () => startCinnabar(options.consumed),
    ...(hasGmond() && !options.alone ? { gmond: startGmond } : {}),
  }
  return runsOf(takers, options)
}

/** The empty socket alone: the least that any server has to do. */
export async function limitOfGmetric(argv: string[]): Promise<Figures> {
  return runsOf({ 'empty socket': startReader }, optionsOf(argv))
}

function optionsOf(argv: string[]) {
  return optionsIn(argv, { rates: '50000,100000,max', seconds: 5, consumed: false, alone: false })
}

/** The figures of the first taker have names of their own, so that they can be compared. */
async function runsOf(
  takers: Readonly<Record<string, () => Promise<Taker>>>,
  { rates, seconds }: { readonly rates: string; readonly seconds: number },
): Promise<Figures> {
  const figures: Record<string, unknown> = {}
  const runs: Run[] = []
  console.log('taker         offered/s    taken/s  dropped  CPU s per million')
  for (const rate of rates.split(',')) {
    for (const [name, start] of Object.entries(takers)) {
      const run = await offer(name, start, rate === 'max' ? Number.POSITIVE_INFINITY : Number(rate), seconds)
      runs.push(run)
      console.log(rowOf(run))
      if (name !== Object.keys(takers)[0]) continue
      figures[`at ${rate}: takenPerSecond`] = run.takenPerSecond
      figures[`at ${rate}: cpuPerMillion`] = run.cpuPerMillion.toFixed(3)
    }
  }
  return { ...figures, runs }
}

async function offer(name: string, start: () => Promise<Taker>, rate: number, seconds: number): Promise<Run> {
  const taker = await start()
  const feed = await GmetricFeed.open(taker.port, METRICS)
  await feed.flood(rate, WARM_UP_SECONDS)
  await settle()
  const before = feed.sent
  const drops = dropsOf(taker)
  const taken = (await taker.taken()) ?? 0
  const cpu = cpuOf(taker)
  const started = performance.now()
  await feed.flood(rate, seconds)
  const elapsed = (performance.now() - started) / 1000
  await settle()
  const sent = feed.sent - before
  const dropped = dropsOf(taker) - drops
  const spent = cpuOf(taker) - cpu
  const counted = await taker.taken()
  const took = counted === undefined ? sent - dropped : counted - taken
  feed.close()
  await taker.stop()
  return {
    taker: name,
    offeredPerSecond: Math.round(sent / elapsed),
    takenPerSecond: Math.round(took / elapsed),
    droppedShare: dropped / sent,
    perCpuSecond: Math.round(took / spent),
    cpuPerMillion: (spent * 1e6) / took,
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
}

function rowOf({ taker, offeredPerSecond, takenPerSecond, droppedShare, cpuPerMillion }: Run): string {
  const share = `${(droppedShare * 100).toFixed(2)} %`
  const cells = [String(offeredPerSecond).padStart(9), String(takenPerSecond).padStart(10), share.padStart(8)]
  return `${taker.padEnd(13)}${cells.join(' ')}  ${cpuPerMillion.toFixed(2).padStart(17)}`
}
