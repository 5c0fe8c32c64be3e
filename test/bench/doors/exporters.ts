/**
 * The targets of the row `scrape`: what node_exporter says of this machine, a few times, on as many ports as there are targets.
 * Compressed once, so that answering costs next to nothing of the cores that those who scrape share with it.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { until } from '../../rig/patience.ts'
import { Child } from '../../support/child.ts'
import { freePort } from '../../support/free-port.ts'

const NODE_EXPORTER = 'prometheus-node-exporter'
/** Each target goes round these. */
const PAGES = 4
const APART_MS = 250

export interface Page {
  readonly body: Uint8Array
  readonly samples: number
}

/** Pages that node_exporter gives one after the other. Throws an Error if it is not installed. */
export async function nodeExporterPages(count = PAGES): Promise<Page[]> {
  if (spawnSync('which', [NODE_EXPORTER]).status !== 0)
    throw new Error(`${NODE_EXPORTER} is needed: apt-get install ${NODE_EXPORTER}`)
  const port = await freePort()
  const child = new Child(NODE_EXPORTER, [`--web.listen-address=127.0.0.1:${port}`])
  const url = `http://127.0.0.1:${port}/metrics`
  try {
    const isUp = (): Promise<boolean> =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    await until('node_exporter serves', isUp)
    const pages: Page[] = []
    for (let page = 0; page < count; page++) {
      const text = await (await fetch(url)).text()
      const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
      pages.push({ body: gzipSync(text), samples })
      await setTimeout(APART_MS)
    }
    return pages
  } finally {
    await child.end('SIGKILL')
  }
}

export class Exporters {
  readonly #pages: readonly Page[]
  readonly #servers: Server[] = []
  /** The samples that were fetched. */
  samples = 0

  constructor(pages: readonly Page[]) {
    this.#pages = pages
  }

  /** Opens `count` targets; gives their addresses. */
  async open(count: number): Promise<string[]> {
    const targets: string[] = []
    for (let target = 0; target < count; target++) {
      let round = target
      const server = createServer((_request, response) => {
        const { body, samples } = this.#pages[round++ % this.#pages.length] as Page
        this.samples += samples
        response.writeHead(200, {
          'content-type': 'text/plain; version=0.0.4; charset=utf-8',
          'content-encoding': 'gzip',
        })
        response.end(body)
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      targets.push(`127.0.0.1:${(server.address() as AddressInfo).port}`)
      this.#servers.push(server)
    }
    return targets
  }

  close(): void {
    for (const server of this.#servers) {
      server.close()
      server.closeAllConnections()
    }
  }
}
