/** What Prometheus and vmagent write arrives, with its labels, its types, and its ends. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { PublishingProducer } from '../support/publisher.ts'
import { decoded } from '../support/records.ts'

const isThere = (program: string): boolean => spawnSync('which', [program]).status === 0

let server: PublishingProducer
let directory = ''
const children: ChildProcess[] = []
beforeEach(async () => {
  server = await PublishingProducer.start()
  directory = mkdtempSync(join(tmpdir(), 'prometheus-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('exit', resolve))
  }
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

function run(program: string, ...given: string[]): ChildProcess {
  const child = spawn(program, given, { cwd: directory, stdio: 'ignore' })
  children.push(child)
  return child
}

const query = async (name: string, given: Record<string, string> = {}) =>
  decoded(
    await server.root.query(
      name,
      args(...Object.entries(given).map(([label, text]) => [label, type.string, str(text)] as const)),
    ),
  )

/** Prometheus scrapes itself every second under `config`, and writes. */
async function prometheus(): Promise<{ port: number; child: ChildProcess }> {
  const port = await freePort()
  writeFileSync(join(directory, 'token'), server.token)
  writeFileSync(
    join(directory, 'prometheus.yml'),
    `global: {scrape_interval: 1s, external_labels: {name: east}}
scrape_configs:
  - {job_name: self, static_configs: [{targets: ['127.0.0.1:${port}']}]}
remote_write:
  - url: ${server.url}/api/v1/write
    authorization: {credentials_file: token}
    metadata_config: {send_interval: 1s}
`,
  )
  const child = run(
    'prometheus',
    '--config.file=prometheus.yml',
    '--storage.tsdb.path=data',
    `--web.listen-address=127.0.0.1:${port}`,
  )
  return { port, child }
}

describe('Prometheus', () => {
  beforeEach((context) => {
    if (!isThere('prometheus')) context.skip('needs Prometheus: apt-get install prometheus')
  })

  it('writes what it scrapes: labels, times, units and help texts', async () => {
    const seat = await server.producer.seat()
    const id = await seat.collect('prometheus.up')
    await seat.ok((seq) => command.subscribe(seq, id))
    const { port } = await prometheus()
    const value = await seat.value()
    expect(decoded(value)).toEqual({
      exported_name: 'east',
      instance: `127.0.0.1:${port}`,
      job: 'self',
      value: 1,
    })
    // It cuts times to milliseconds.
    expect(value.time % 1_000).toBe(0)
    await eventually(async () => {
      const [metric] = decoded(
        await server.root.query('producer.metrics', args(['match', type.string, str('prometheus.go_goroutines')])),
      )
      expect(metric).toMatchObject({
        type: 'double',
        description: 'Number of goroutines that currently exist.',
        details: { labels: 'any' },
      })
    })
    const buckets = await query('prometheus.prometheus_http_request_duration_seconds_bucket', { handler: '/metrics' })
    expect(buckets.find(({ le }: { le: string }) => le === '+Inf').value).toBeGreaterThan(0)
    const sensors = decoded(await server.root.query('producer.sensors'))
    expect(sensors.find(({ name }: { name: string }) => name === 'prometheus/default')).toMatchObject({
      state: 'listening',
      counters: { refusedLabels: 0, refusedSeries: 0 },
    })
  })
})

describe('vmagent', () => {
  beforeEach((context) => {
    if (!isThere('vmagent')) context.skip('needs vmagent: apt-get install victoria-metrics')
    if (!isThere('prometheus')) context.skip('needs Prometheus: apt-get install prometheus')
  })

  it('writes, and the end of its target is the end of the series', async () => {
    const { port, child } = await prometheus()
    writeFileSync(
      join(directory, 'vmagent.yml'),
      `global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: other, static_configs: [{targets: ['127.0.0.1:${port}']}]}
`,
    )
    run(
      'vmagent',
      '-promscrape.config=vmagent.yml',
      `-remoteWrite.url=${server.url}/api/v1/write`,
      '-remoteWrite.bearerTokenFile=token',
      '-remoteWrite.tmpDataPath=agent',
      `-httpListenAddr=127.0.0.1:${await freePort()}`,
    )
    const ofAgent = { job: 'other' }
    await eventually(async () => expect(await query('prometheus.prometheus_build_info', ofAgent)).toHaveLength(1))
    const seat = await server.producer.seat()
    const id = await seat.collect('prometheus.prometheus_build_info', args(['job', type.string, str('other')]))
    await seat.ok((seq) => command.subscribe(seq, id))
    child.kill('SIGKILL')
    for (;;) {
      const { value } = decoded(await seat.value())
      if (value === null) break
    }
    expect(await query('prometheus.prometheus_build_info', ofAgent)).toEqual([])
    // It may stand in another request: vmagent has several under way.
    await eventually(async () => expect((await query('prometheus.up', ofAgent))[0]).toMatchObject({ value: 0 }))
  })
})
