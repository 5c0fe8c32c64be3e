/**
 * `npm run bench -- series [--scraped 25000] [--series 100000] [--calm 12]`: what series cost a server without a history: its memory
 * with so many scraped ones, which a consumer reads from a durable channel, and what it takes to start again with them; what each of
 * those adds that are written to it; and the CPU seconds of `cinnabar get`.
 */
import { spawnSync } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { connect } from '../../client/index.ts'
import { median } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { memoryMiB } from '../rig/process-costs.ts'
import { SERVER_PROGRAM } from '../support/program.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'
import { Exporters, nodeExporterPages, type Page } from './doors/exporters.ts'
import { cinnabar } from './doors/taker.ts'
import { WITHOUT_HISTORY } from './measured.ts'
import { writeAll } from './stacks.ts'

const STARTS = 3

export async function benchSeries(argv: string[]): Promise<object> {
  const { scraped, series, calm } = optionsIn(argv, { scraped: 25_000, series: 100_000, calm: 12 })
  const restMiB = await atRest(calm)
  const pages = await nodeExporterPages()
  const [{ samples }] = pages as [Page]
  const exporters = new Exporters(pages)
  try {
    const targets = await exporters.open(Math.ceil(scraped / samples))
    return { restMiB, ...(await withScraped(targets, restMiB, calm)), ...(await written(series, calm)) }
  } finally {
    exporters.close()
  }
}

async function atRest(calm: number): Promise<number> {
  const server = new ServerProcess(WITHOUT_HISTORY)
  await server.start()
  await setTimeout(calm * 1_000)
  const mib = memoryMiB(server.pid)
  await server.remove()
  return mib
}

async function withScraped(targets: readonly string[], restMiB: number, calm: number): Promise<object> {
  const server = new ServerProcess(
    `${WITHOUT_HISTORY}[channels]\nmax_bytes = 1073741824\n` +
      `[[scrape]]\nname = "node"\ninterval = "5s"\ntargets = ${JSON.stringify(targets)}\n`,
  )
  try {
    await server.start()
    const url = `tcp://127.0.0.1:${server.tcpPort}`
    const consumer = await connect(url, { identity: 'admin', password: PASSWORD }, { commit: 'automatic' })
    const seen = new Set<string>()
    await consumer.follow('prometheus.*', {}, ({ metric, labels }) => seen.add(JSON.stringify([metric, labels])))
    const running = consumer.run()
    await setTimeout(calm * 1_000)
    const scrapedMiB = memoryMiB(server.pid)
    const getCpuSeconds = cpuOfGet(url)
    await consumer.close()
    await running
    const startSeconds: number[] = []
    for (let start = 0; start < STARTS; start++) {
      await server.end('SIGKILL')
      const began = performance.now()
      await server.start()
      startSeconds.push((performance.now() - began) / 1_000)
    }
    return {
      scrapedSeries: seen.size,
      scrapedMiBAboveRest: scrapedMiB - restMiB,
      startSeconds: median(startSeconds).toFixed(2),
      getCpuSeconds,
    }
  } finally {
    await server.remove()
  }
}

/** User and system, of the program from its start to its end: the shell reports what its children took. */
function cpuOfGet(url: string): string {
  const get = `"${process.execPath}" "${SERVER_PROGRAM}" get prometheus.up --url ${url} --user admin > /dev/null && times`
  const { stdout, status, stderr } = spawnSync('sh', ['-c', get], {
    encoding: 'utf8',
    env: { ...process.env, CINNABAR_PASSWORD: PASSWORD },
  })
  if (status !== 0) throw new Error(`cinnabar get: ${stderr}`)
  const [, ofChildren = ''] = stdout.split('\n')
  const seconds = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, rest]) => Number(minutes) * 60 + Number(rest),
  )
  return seconds.reduce((sum, each) => sum + each, 0).toFixed(2)
}

async function written(series: number, calm: number): Promise<object> {
  const server = await cinnabar('prometheus.*', false)
  try {
    await setTimeout(calm * 1_000)
    const before = memoryMiB(server.pid)
    await writeAll(server, series, 1)
    await setTimeout(calm * 1_000)
    return { writtenSeries: series, kiBPerSeries: (((memoryMiB(server.pid) - before) * 1_024) / series).toFixed(2) }
  } finally {
    await server.remove()
  }
}
