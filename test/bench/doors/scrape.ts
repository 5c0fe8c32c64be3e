/**
 * The row `scrape`: targets with what node_exporter says, scraped once a second, as Cinnabar takes it (durable, in a channel that is
 * read, and recorded besides), and Prometheus and vmagent.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { connect } from '../../../client/index.ts'
import { until } from '../../rig/patience.ts'
import { cpuSecondsOf, memoryMiB } from '../../rig/process-costs.ts'
import { StackProgram } from '../../rig/prometheus-stack.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { WITHOUT_HISTORY } from '../measured.ts'
import { Exporters, nodeExporterPages } from './exporters.ts'
import type { Cost, Sizes } from './row.ts'

/** Something that scrapes. */
interface Scraper {
  readonly pid: number
  remove(): Promise<void>
}

/** By who scrapes. */
export async function scrapeRow(
  { targets, seconds, warmUp }: Sizes,
  withPeers: boolean,
): Promise<Record<string, Cost>> {
  const exporters = new Exporters(await nodeExporterPages())
  const addresses = await exporters.open(targets)
  const sink = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(204).end())
  }).listen(0, '127.0.0.1')
  await once(sink, 'listening')
  const sinkUrl = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`
  const scrapers: Record<string, () => Promise<Scraper>> = {
    cinnabar: () => cinnabar(addresses, true),
    cinnabarRecorded: () => cinnabar(addresses, true, ''),
    cinnabarTakenOnly: () => cinnabar(addresses, false),
    ...(withPeers && {
      prometheus: () => started(StackProgram.prometheus(scrapeConfigs(addresses))),
      vmagent: () => started(StackProgram.vmagent({ url: sinkUrl }, scrapeConfigs(addresses))),
    }),
  }
  const costs: Record<string, Cost> = {}
  try {
    for (const [name, start] of Object.entries(scrapers)) {
      const untouched = exporters.samples
      const scraper = await start()
      try {
        // Prometheus begins five seconds after it serves.
        await until(`${name} scrapes`, async () => exporters.samples > untouched)
        await setTimeout(warmUp * 1_000)
        const before = { cpu: cpuSecondsOf(scraper.pid), samples: exporters.samples }
        await setTimeout(seconds * 1_000)
        // In a short time on a busy machine nothing may have been.
        await until(`${name} scrapes again`, async () => exporters.samples > before.samples)
        const cpu = cpuSecondsOf(scraper.pid) - before.cpu
        const samples = exporters.samples - before.samples
        costs[name] = { cpuPerMillion: ((cpu * 1e6) / samples).toFixed(2), rssMiB: memoryMiB(scraper.pid) }
      } finally {
        await scraper.remove()
      }
    }
    return costs
  } finally {
    exporters.close()
    sink.close()
    sink.closeAllConnections()
  }
}

/**
 * `isDurable`: a consumer reads everything from a durable channel; otherwise it has one channel that is not durable, and one series.
 * `history`: its section of the configuration.
 */
async function cinnabar(targets: readonly string[], isDurable: boolean, history = WITHOUT_HISTORY): Promise<Scraper> {
  const server = new ServerProcess(
    `${history}[[scrape]]\nname = "node"\ninterval = "1s"\ntargets = ${JSON.stringify(targets)}\n[channels]\nmax_bytes = 1073741824\n`,
  )
  await server.start()
  const consumer = await connect(
    `tcp://127.0.0.1:${server.tcpPort}`,
    { identity: 'admin', password: PASSWORD },
    { commit: 'automatic', durable: isDurable },
  )
  await consumer.follow(isDurable ? 'prometheus.*' : 'prometheus.no_such_name_*', {}, () => {})
  const running = consumer.run()
  return {
    pid: server.pid,
    remove: async () => {
      await consumer.close()
      await running
      await server.remove()
    },
  }
}

function scrapeConfigs(targets: readonly string[]): string {
  return `global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: node
  static_configs:
  - targets: ${JSON.stringify(targets)}
`
}

async function started(making: Promise<StackProgram>): Promise<Scraper> {
  const program = await making
  await program.start()
  return program
}
