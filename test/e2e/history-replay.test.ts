/** What one server remembers is exported, imported into another one, and replayed to Debian's Prometheus and to a Cinnabar. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { connect } from '../../client/index.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { PROGRAM } from '../support/program.ts'
import { hasPrometheus, RealPrometheus } from '../support/real-prometheus.ts'
import { runToEnd } from '../support/run-to-end.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const SECTIONS = '[history]\nkeep = "30d"\nmetrics = ["prometheus.*"]\nresolution = "0"\n'
/** So many that the file goes to the server in several parts. */
const SERIES = 100
const SAMPLES = 90

let servers: ServerProcess[] = []
let prometheus: RealPrometheus | undefined
afterEach(async () => {
  for (const server of servers) await server.remove()
  servers = []
  await prometheus?.stop()
  prometheus = undefined
})

async function start(): Promise<ServerProcess> {
  const server = new ServerProcess(SECTIONS, { tcp: await freePort(), http: await freePort() })
  servers.push(server)
  await server.start()
  return server
}

async function cinnabar(of: ServerProcess, ...words: string[]): Promise<{ code: number | null; out: string }> {
  const options = { cwd: of.directory, env: process.env }
  return runToEnd(process.execPath, [PROGRAM, ...words, '--config', of.config], options)
}

/** Samples of two hours, a minute and a half apart. */
function dump(): string {
  const first = Math.floor(Date.now() / 1000) - SAMPLES * 80
  const lines: string[] = []
  for (let series = 0; series < SERIES; series++) {
    for (let at = 0; at < SAMPLES; at++)
      lines.push(`replayed{n="${series}"} ${series * 1000 + at} ${first + at * 80}.125`)
  }
  return `# TYPE replayed gauge\n${lines.join('\n')}\n# EOF\n`
}

async function remembered(of: ServerProcess): Promise<readonly string[]> {
  const consumer = await connect(`tcp://127.0.0.1:${of.tcpPort}`, { identity: 'admin', password: PASSWORD })
  const lines: string[] = []
  try {
    for await (const { name, labels, times, values } of consumer.history('replayed', { since: 0 })) {
      for (const [at, time] of times.entries()) lines.push(`${name} ${labels['n']} ${values[at]} ${time / 1_000}`)
    }
  } finally {
    await consumer.close()
  }
  return lines.sort()
}

describe('a history', () => {
  it('is imported, also twice, exported, and replayed to another server, also twice', {
    timeout: 120_000,
  }, async () => {
    const [one, other] = [await start(), await start()]
    const path = join(one.directory, 'dump')
    writeFileSync(path, dump())
    for (const _ of ['once', 'again']) {
      const done = await cinnabar(one, 'history', 'import', path)
      expect([done.code, done.out]).toEqual([0, expect.stringContaining(`${SERIES * SAMPLES} samples are stored`)])
    }
    const lines = await remembered(one)
    expect(lines).toHaveLength(SERIES * SAMPLES)
    const seat = await other.seat()
    const token = join(one.directory, 'token')
    writeFileSync(token, await tokenOfPublisher(seat, 'prometheus.*'), { mode: 0o600 })
    seat.peer.destroy()
    const to = ['--to', `http://127.0.0.1:${other.httpPort}/api/v1/write`, '--to-token-file', token]
    for (const _ of ['once', 'again']) {
      const done = await cinnabar(one, 'history', 'replay', 'replayed', '--since', '3h', ...to)
      expect([done.code, done.out]).toEqual([0, expect.stringContaining(`${SERIES * SAMPLES} samples are sent`)])
      await eventually(async () => expect(await remembered(other)).toEqual(lines))
    }
  })

  // Prometheus is not everywhere.
  it.skipIf(!hasPrometheus)('is replayed to Prometheus (apt install prometheus)', { timeout: 120_000 }, async () => {
    const one = await start()
    const path = join(one.directory, 'dump')
    writeFileSync(path, dump())
    expect((await cinnabar(one, 'history', 'import', path)).code).toBe(0)
    prometheus = await RealPrometheus.start({})
    const done = await cinnabar(
      one,
      'history',
      'replay',
      'replayed',
      '--since',
      '3h',
      '--to',
      `${prometheus.url}/api/v1/write`,
    )
    expect([done.code, done.out]).toEqual([0, expect.stringContaining('samples are sent')])
    const stored = await prometheus.read('replayed')
    expect(stored).toHaveLength(SERIES)
    const there = stored.flatMap(({ labels, samples }) =>
      samples.map(({ timeMs, bits }) => {
        const value = new Float64Array(BigUint64Array.of(bits).buffer)[0]
        return `replayed ${labels.get('n')} ${value} ${timeMs}`
      }),
    )
    expect(there.sort()).toEqual(await remembered(one))
  })
})
