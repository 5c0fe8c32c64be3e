/** A server of its own scrapes node_exporter and Prometheus, and a reload gives it another target. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { decoded } from '../support/records.ts'
import type { Seat } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'

const isThere = (program: string): boolean => spawnSync('which', [program]).status === 0

let directory = ''
let server: ServerProcess
const children: ChildProcess[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'scrape-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  await server?.remove()
  rmSync(directory, { recursive: true, force: true })
})

function run(program: string, ...given: string[]): void {
  children.push(spawn(program, given, { cwd: directory, stdio: 'ignore' }))
}

async function start(toml: string): Promise<Seat> {
  server = new ServerProcess(toml)
  await server.start()
  return server.seat()
}

const tableOf = (name: string, port: number, more = ''): string =>
  `[[scrape]]\nname = "${name}"\nurl = "http://127.0.0.1:${port}"\ninterval = "1s"\nmax_samples = 20000\n${more}`
const strings = (given: Record<string, string>) =>
  args(...Object.entries(given).map(([label, text]) => [label, type.string, str(text)] as const))
const query = async (seat: Seat, name: string, given: Record<string, string> = {}) =>
  decoded(await seat.query(name, strings(given)))

describe('node_exporter', () => {
  beforeEach((context) => {
    if (!isThere('prometheus-node-exporter')) {
      context.skip('needs node_exporter: apt-get install prometheus-node-exporter')
    }
  })

  it('is scraped: its values come every second, with their labels, types and help texts', async () => {
    const port = await freePort()
    run('prometheus-node-exporter', `--web.listen-address=127.0.0.1:${port}`)
    const seat = await start(tableOf('node', port, 'labels = { env = "test" }\n'))
    await eventually(async () => {
      expect(await query(seat, 'prometheus.up', { job: 'node' })).toMatchObject([{ env: 'test', value: 1 }])
    })
    const own = { instance: `127.0.0.1:${port}`, job: 'node' }
    const [load] = await query(seat, 'prometheus.node_load1', own)
    expect(load).toMatchObject({ env: 'test', value: expect.any(Number) })
    const [metric] = decoded(await seat.query('producer.metrics', strings({ match: 'prometheus.node_load1' })))
    expect(metric).toMatchObject({ type: 'double', description: '1m load average.' })
    const id = await seat.collect('prometheus.node_time_seconds', strings(own))
    await seat.ok((seq) => command.subscribe(seq, id))
    const [first, second] = (await seat.values(2)).map((value) => decoded(value).value)
    expect(second - first).toBeGreaterThan(0.4)
    const { counters, state, detail } = (await query(seat, 'producer.sensors')).find(
      ({ name }: { name: string }) => name === 'scrape/node',
    )
    expect([state, detail]).toEqual(['measuring', `http://127.0.0.1:${port}/metrics`])
    expect(counters).toMatchObject({ failures: 0, refused: 0, duplicates: 0 })
    expect(counters.series).toBeGreaterThan(100)
  })
})

describe('Prometheus', () => {
  beforeEach((context) => {
    if (!isThere('prometheus')) context.skip('needs Prometheus: apt-get install prometheus')
  })

  it('is scraped as soon as a reload names it, for those who wait for it; its end is the end of its series', async () => {
    const port = await freePort()
    writeFileSync(join(directory, 'prometheus.yml'), 'global: {scrape_interval: 1s}\n')
    run(
      'prometheus',
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=127.0.0.1:${port}`,
    )
    const seat = await start('')
    const id = await seat.collect('prometheus.prometheus_build_info')
    await seat.ok((seq) => command.subscribe(seq, id))
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200))
    writeFileSync(server.config, readFileSync(server.config, 'utf8') + tableOf('self', port))
    server.signal('SIGHUP')
    const value = decoded(await seat.value())
    expect(value).toMatchObject({ instance: `127.0.0.1:${port}`, job: 'self', value: 1 })
    expect(value.version).toMatch(/^2\./)
    children[0]?.kill('SIGKILL')
    for (;;) {
      const { value } = decoded(await seat.value())
      if (value === null) break
    }
    expect(await query(seat, 'prometheus.prometheus_build_info')).toEqual([])
    expect(await query(seat, 'prometheus.up')).toMatchObject([{ value: 0 }])
  })
})
