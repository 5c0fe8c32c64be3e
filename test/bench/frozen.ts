/**
 * What a consumer that is frozen (SIGSTOP) costs the others: `--consumers` (200) with a durable channel each follow one
 * metric; in every second run the one that has a process to itself is stopped. Reports the median over `--pairs` (5) of
 * the others' p99 from sending to arriving, with and without, and by how much the server grew meanwhile.
 */

import { createSocket } from 'node:dgram'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { median, rounded } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { until } from '../rig/patience.ts'
import { memoryMiB } from '../rig/process-costs.ts'
import { gmetricPacket, str, type } from '../support/bytes.ts'
import { Child } from '../support/child.ts'
import { freePort } from '../support/free-port.ts'
import { decoded, type Json } from '../support/records.ts'
import type { Seat } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'
import type { Measured } from './frozen-consumer.ts'
import { WITHOUT_HISTORY } from './measured.ts'

const USER = 'frozen'
const PASSWORD = 'a password for the benchmark'

export async function benchFrozen(argv: string[]): Promise<object> {
  const { consumers, pairs, seconds, rate } = optionsIn(argv, { consumers: 200, pairs: 5, seconds: 10, rate: 50 })
  const port = await freePort()
  const server = new ServerProcess(
    `${WITHOUT_HISTORY}[gmetric]\nlisten = "127.0.0.1:${port}"\n[log]\nlevel = "error"\n`,
  )
  const children: Child[] = []
  try {
    await server.start()
    const watcher = await server.seat()
    await watcher.execute('user.add', ['user', type.string, str(USER)], ['password', type.string, str(PASSWORD)])
    const others = await start(server.tcpPort, consumers - 1, children)
    const frozen = await start(server.tcpPort, 1, children)
    const run = async (freeze: boolean): Promise<{ p99Ms: number; grownMiB: number }> => {
      await allCommitted(watcher)
      const before = memoryMiB(server.pid)
      if (freeze) frozen.signal('SIGSTOP')
      await feed(port, rate, seconds)
      await setTimeout(500)
      const { p99Ms, p50Ms, values } = await measured(others)
      const grownMiB = memoryMiB(server.pid) - before
      if (freeze) frozen.signal('SIGCONT')
      await allCommitted(watcher)
      await measured(frozen)
      const what = freeze ? 'one frozen' : 'none frozen'
      const figures = `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`
      console.log(`${what.padEnd(12)}${String(values).padStart(8)} values  ${figures}  server ${grownMiB} MiB more`)
      return { p99Ms, grownMiB }
    }
    await run(false)
    const without: { p99Ms: number; grownMiB: number }[] = []
    const withOne: { p99Ms: number; grownMiB: number }[] = []
    for (let pair = 0; pair < pairs; pair++) {
      without.push(await run(false))
      withOne.push(await run(true))
    }
    const ratios = withOne.map(({ p99Ms }, at) => p99Ms / (without[at]?.p99Ms ?? 1))
    watcher.peer.destroy()
    return {
      consumers,
      p99WithoutMs: rounded(median(without.map(({ p99Ms }) => p99Ms)), 2),
      p99WithOneFrozenMs: rounded(median(withOne.map(({ p99Ms }) => p99Ms)), 2),
      ratioOfPairs: rounded(median(ratios), 2),
      grownWithoutMiB: Math.max(...without.map(({ grownMiB }) => grownMiB)),
      grownWithOneFrozenMiB: Math.max(...withOne.map(({ grownMiB }) => grownMiB)),
    }
  } finally {
    for (const child of children) await child.end('SIGKILL')
    await server.remove()
  }
}

async function start(port: number, count: number, children: Child[]): Promise<Child> {
  const program = fileURLToPath(new URL('frozen-consumer.ts', import.meta.url))
  const args = ['--import', 'tsx', program, String(port), USER, PASSWORD, String(count)]
  const child = new Child(process.execPath, args, { hasChannel: true })
  children.push(child)
  await child.message()
  return child
}

async function measured(child: Child): Promise<Measured> {
  return (await child.ask('measured?')) as Measured
}

/** `rate` values a second, each with the time of its sending. */
async function feed(port: number, rate: number, seconds: number): Promise<void> {
  const socket = createSocket('udp4')
  for (let sent = 0; sent < rate * seconds; sent++) {
    const now = String(Number(process.hrtime.bigint()) / 1e6)
    const packet = gmetricPacket('double', 'frozen', now, 'ms')
    socket.send(packet, port, '127.0.0.1')
    await setTimeout(1_000 / rate)
  }
  socket.close()
}

async function allCommitted(watcher: Seat): Promise<void> {
  await until('the consumers have committed everything', async () => {
    const rows: Json[] = decoded(await watcher.query('producer.channels'))
    const others = rows.filter(({ channel }) => channel !== watcher.channel)
    return others.every(({ in_flight, queued }) => in_flight === 0 && queued === 0)
  })
}
