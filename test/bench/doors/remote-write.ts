/**
 * The row `remote-write`: a sender with a thousand series hands over six samples of each in a request, at a steady rate, to Cinnabar,
 * where nobody has bound them or a consumer reads them from a durable channel, and to Prometheus.
 */
import { setTimeout } from 'node:timers/promises'
import { connect } from '../../../client/index.ts'
import { encodeWriteRequest } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { cpuSecondsOf, memoryMiB } from '../../rig/process-costs.ts'
import { StackProgram, tokenOfPublisher, WRITE, WRITE_HEADERS } from '../../rig/prometheus-stack.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import type { Cost, Sizes } from './row.ts'

const SERIES = 1_000
const SAMPLES = 6
/** So many samples a second are sent. */
const RATE = 60_000
const LABELS = ['instance', 'job', 'cluster', 'namespace', 'pod', 'container'] as const

/** Where samples are written to. */
interface Taker {
  readonly url: string
  readonly pid: number
  readonly headers: Readonly<Record<string, string>>
  remove(): Promise<void>
}

/** By who takes the samples. */
export async function remoteWriteRow({ seconds, warmUp }: Sizes, withPeers: boolean): Promise<Record<string, Cost>> {
  const takers: Record<string, () => Promise<Taker>> = {
    cinnabar: () => cinnabar(true),
    cinnabarUnbound: () => cinnabar(false),
    ...(withPeers && { prometheus }),
  }
  const costs: Record<string, Cost> = {}
  for (const [name, start] of Object.entries(takers)) {
    const taker = await start()
    try {
      await write(taker, warmUp)
      const before = cpuSecondsOf(taker.pid)
      const samples = await write(taker, seconds)
      const cpu = cpuSecondsOf(taker.pid) - before
      costs[name] = { cpuPerMillion: ((cpu * 1e6) / samples).toFixed(2), rssMiB: memoryMiB(taker.pid) }
    } finally {
      await taker.remove()
    }
  }
  return costs
}

/** Writes for so many seconds; gives the number of samples. */
async function write({ url, headers }: Taker, seconds: number): Promise<number> {
  const requests = Math.ceil((seconds * RATE) / (SERIES * SAMPLES))
  const started = performance.now()
  for (let sent = 0; sent < requests; sent++) {
    const dueMs = (sent * SERIES * SAMPLES * 1_000) / RATE
    await setTimeout(Math.max(0, started + dueMs - performance.now()))
    const body = Uint8Array.from(finish(encodeWriteRequest(seriesAt(Date.now()))))
    const answer = await fetch(url + WRITE, { method: 'POST', headers: { ...WRITE_HEADERS, ...headers }, body })
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
    await answer.arrayBuffer()
  }
  return requests * SERIES * SAMPLES
}

function seriesAt(endMs: number) {
  return Array.from({ length: SERIES }, (_, series) => ({
    name: `bench_requests_${series % 50}_total`,
    labels: LABELS.map((label) => [label, `${label}-${Math.floor(series / 50)}`] as const),
    samples: Array.from({ length: SAMPLES }, (_, at) => ({ value: endMs % 1e6, timeMs: endMs - SAMPLES + 1 + at })),
  }))
}

async function cinnabar(isBound: boolean): Promise<Taker> {
  const server = new ServerProcess('[channels]\nmax_bytes = 1073741824\n')
  await server.start()
  const seat = await server.seat()
  const token = await tokenOfPublisher(seat, 'prometheus.*', ';COLLECT *')
  seat.peer.destroy()
  const url = `tcp://127.0.0.1:${server.tcpPort}`
  const consumer = await connect(url, { identity: 'admin', password: PASSWORD }, { commit: 'automatic' })
  if (isBound) await consumer.follow('prometheus.*', {}, () => {})
  const running = consumer.run()
  return {
    url: `http://127.0.0.1:${server.httpPort}`,
    pid: server.pid,
    headers: { authorization: `Bearer ${token}` },
    remove: async () => {
      await consumer.close()
      await running
      await server.remove()
    },
  }
}

async function prometheus(): Promise<Taker> {
  const program = await StackProgram.prometheus()
  await program.start()
  return program
}
