/** Who takes what the rows of `doors` send by HTTP, and at what cost. */
import { setTimeout } from 'node:timers/promises'
import { connect } from '../../../client/index.ts'
import { cpuSecondsOf, memoryMiB } from '../../rig/process-costs.ts'
import { tokenOfPublisher } from '../../rig/prometheus-stack.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { WITHOUT_HISTORY } from '../measured.ts'
import type { Cost, Sizes } from './row.ts'

export interface Taker {
  readonly url: string
  readonly pid: number
  readonly headers: Readonly<Record<string, string>>
  remove(): Promise<void>
}

/** What is sent to a taker: a request of so many values after another, at a steady rate. */
export interface Sending {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly values: number
  /** Values a second. */
  readonly rate: number
  readonly body: (nowMs: number) => Uint8Array<ArrayBuffer>
}

/** What it costs each of them. */
export async function costsOf(
  takers: Readonly<Record<string, () => Promise<Taker>>>,
  sending: Sending,
  { seconds, warmUp }: Sizes,
): Promise<Record<string, Cost>> {
  const costs: Record<string, Cost> = {}
  for (const [name, start] of Object.entries(takers)) {
    const taker = await start()
    try {
      await send(taker, sending, warmUp)
      const before = cpuSecondsOf(taker.pid)
      const values = await send(taker, sending, seconds)
      const cpu = cpuSecondsOf(taker.pid) - before
      costs[name] = { cpuPerMillion: ((cpu * 1e6) / values).toFixed(2), rssMiB: memoryMiB(taker.pid) }
    } finally {
      await taker.remove()
    }
  }
  return costs
}

/** Sends for so many seconds; gives the number of values. */
async function send(taker: Taker, { path, headers, values, rate, body }: Sending, seconds: number): Promise<number> {
  const requests = Math.ceil((seconds * rate) / values)
  const started = performance.now()
  for (let sent = 0; sent < requests; sent++) {
    const dueMs = (sent * values * 1_000) / rate
    await setTimeout(Math.max(0, started + dueMs - performance.now()))
    const request = { method: 'POST', headers: { ...headers, ...taker.headers }, body: body(Date.now()) }
    const answer = await fetch(taker.url + path, request)
    if (!answer.ok) throw new Error(`${taker.url}: ${answer.status} ${await answer.text()}`)
    await answer.arrayBuffer()
  }
  return requests * values
}

/** A server of ours. `isBound`: a consumer reads the metrics from a durable channel; otherwise nobody has bound them. */
export async function cinnabar(metrics: string, isBound: boolean): Promise<Taker> {
  const server = new ServerProcess(`${WITHOUT_HISTORY}[channels]\nmax_bytes = 1073741824\n`)
  await server.start()
  const seat = await server.seat()
  const token = await tokenOfPublisher(seat, metrics, ';COLLECT *')
  seat.peer.destroy()
  const url = `tcp://127.0.0.1:${server.tcpPort}`
  const consumer = await connect(url, { identity: 'admin', password: PASSWORD }, { commit: 'automatic' })
  if (isBound) await consumer.follow(metrics, {}, () => {})
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
