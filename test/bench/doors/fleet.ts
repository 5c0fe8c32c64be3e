/**
 * The row `fleet`: hundreds of targets are scraped every five seconds, as a fleet's are, while a thousand gmetric datagrams come in each
 * second. What the kernel has thrown away of these is lost.
 */
import { setTimeout } from 'node:timers/promises'
import { connect } from '../../../client/index.ts'
import { until } from '../../rig/patience.ts'
import { cpuSecondsOf, memoryMiB } from '../../rig/process-costs.ts'
import { freePort } from '../../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { GmetricFeed } from '../gmetric-feed.ts'
import { dropsOf } from '../gmetric-takers.ts'
import { WITHOUT_HISTORY } from '../measured.ts'
import { Exporters, nodeExporterPages } from './exporters.ts'
import type { Row } from './row.ts'

/** For each that `--targets` asks for: 300 by default. */
const TARGETS = 6
const INTERVAL = '5s'
const DATAGRAMS_PER_SECOND = 1_000
const METRICS = Array.from({ length: 100 }, (_, metric) => `reading.${metric}`)
const SETTLE_MS = 500

export const fleetRow: Row = async ({ targets, seconds, warmUp }) => {
  const exporters = new Exporters(await nodeExporterPages())
  const addresses = await exporters.open(targets * TARGETS)
  const port = await freePort()
  const server = new ServerProcess(
    `${WITHOUT_HISTORY}[gmetric]\nlisten = "127.0.0.1:${port}"\n[channels]\nmax_bytes = 1073741824\n` +
      `[[scrape]]\nname = "node"\ninterval = "${INTERVAL}"\ntargets = ${JSON.stringify(addresses)}\n`,
  )
  await server.start()
  const url = `tcp://127.0.0.1:${server.tcpPort}`
  const consumer = await connect(url, { identity: 'admin', password: PASSWORD }, { commit: 'automatic' })
  let taken = 0
  for (const metrics of ['prometheus.*', 'gmetric.*']) {
    await consumer.follow(metrics, {}, ({ metric }) => {
      if (metric.startsWith('gmetric.')) taken++
    })
  }
  const running = consumer.run()
  const feed = await GmetricFeed.open(port, METRICS)
  try {
    await feed.flood(DATAGRAMS_PER_SECOND, warmUp)
    await setTimeout(SETTLE_MS)
    const before = { cpu: cpuSecondsOf(server.pid), samples: exporters.samples, sent: feed.sent, taken }
    const dropped = dropsOf({ port })
    await feed.flood(DATAGRAMS_PER_SECOND, seconds)
    await setTimeout(SETTLE_MS)
    const cpu = cpuSecondsOf(server.pid) - before.cpu
    await until('the targets are scraped again', async () => exporters.samples > before.samples)
    return {
      cinnabar: {
        cpuShare: (cpu / seconds).toFixed(2),
        rssMiB: memoryMiB(server.pid),
        scrapedSamples: exporters.samples - before.samples,
        datagrams: feed.sent - before.sent,
        delivered: taken - before.taken,
        lost: dropsOf({ port }) - dropped,
      },
    }
  } finally {
    feed.close()
    await consumer.close()
    await running
    await server.remove()
    exporters.close()
  }
}
