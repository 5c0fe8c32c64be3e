/**
 * The rows `statsd-counters` and `statsd-timers`: a datagram for each value, of 100 metrics in turn, at a steady rate, to a server
 * whose consumer reads what they are summed up to from a durable channel.
 */
import { setTimeout } from 'node:timers/promises'
import { connect } from '../../../client/index.ts'
import { cpuSecondsOf, memoryMiB } from '../../rig/process-costs.ts'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { GmetricFeed } from '../gmetric-feed.ts'
import { dropsOf } from '../gmetric-takers.ts'
import { WITHOUT_HISTORY } from '../measured.ts'
import type { Row } from './row.ts'

const METRICS = 100
/** Values a second. */
const RATE = 40_000
/** What waits in the receive buffer is taken in this time. */
const SETTLE_MS = 500

export const statsdCountersRow: Row = (sizes) => rowOf((metric) => `bench.requests.${metric}:1|c`, sizes)
export const statsdTimersRow: Row = (sizes) => rowOf((metric) => `bench.latency.${metric}:${metric + 0.5}|ms`, sizes)

async function rowOf(line: (metric: number) => string, { seconds, warmUp }: Parameters<Row>[0]): ReturnType<Row> {
  const port = await freePort()
  const server = new ServerProcess(`${WITHOUT_HISTORY}[[statsd]]\nudp = "127.0.0.1:${port}"\nflush = "1s"\n`)
  await server.start()
  const url = `tcp://127.0.0.1:${server.tcpPort}`
  const consumer = await connect(url, { identity: 'admin', password: PASSWORD }, { commit: 'automatic' })
  await consumer.follow('statsd.*', {}, () => {})
  const running = consumer.run()
  const lines = Array.from({ length: METRICS }, (_, metric) => Buffer.from(line(metric)))
  // Datagrams of any kind: what it knows of gmetric is how they are made.
  const feed = await GmetricFeed.of(port, lines)
  try {
    await feed.flood(RATE, warmUp)
    const before = { cpu: cpuSecondsOf(server.pid), sent: feed.sent, dropped: dropsOf({ port }) }
    await feed.flood(RATE, seconds)
    await setTimeout(SETTLE_MS)
    const cpu = cpuSecondsOf(server.pid) - before.cpu
    const sent = feed.sent - before.sent
    const lost = dropsOf({ port }) - before.dropped
    const cpuPerMillion = ((cpu * 1e6) / (sent - lost)).toFixed(2)
    return { cinnabar: { cpuPerMillion, rssMiB: memoryMiB(server.pid), lost } }
  } finally {
    feed.close()
    await consumer.close()
    await running
    await server.remove()
  }
}
