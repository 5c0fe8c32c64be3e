/**
 * What a consumer that is frozen (SIGSTOP) costs the others: `--consumers` (200) with a durable channel each follow one
 * metric; in every second run the one that has a process to itself is stopped. Reports the median over `--pairs` (5) of
 * the others' p99 from sending to arriving, with and without, and by how much the server grew meanwhile.
 */

import { type ChildProcess, fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { join, str, type, u32 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { decoded, type Json } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'
import type { Measured } from './frozen-consumer.ts'

const POLL_MS = 20
const USER = 'frozen'
const PASSWORD = 'a password for the benchmark'

export async function benchFrozen(argv: string[]): Promise<object> {
  const { values: options } = parseArgs({
    args: argv,
    options: {
      consumers: { type: 'string', default: '200' },
      pairs: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '10' },
      rate: { type: 'string', default: '50' },
    },
  })
  const consumers = Number(options.consumers)
  const port = await freePort()
  const server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${port}"\n[log]\nlevel = "error"\n`)
  const children: ChildProcess[] = []
  try {
    await server.start()
    const { peer, channel } = await server.login()
    const watcher = new Seat(peer, channel)
    await watcher.execute('user.add', ['user', type.string, str(USER)], ['password', type.string, str(PASSWORD)])
    const others = await start(server.tcpPort, consumers - 1, children)
    const frozen = await start(server.tcpPort, 1, children)
    const run = async (freeze: boolean): Promise<{ p99Ms: number; grownMiB: number }> => {
      await allCommitted(watcher)
      const before = rssMiB(server.pid)
      if (freeze) frozen.kill('SIGSTOP')
      await feed(port, Number(options.rate), Number(options.seconds))
      await setTimeout(500)
      const { p99Ms, p50Ms, values } = await measured(others)
      const grownMiB = rssMiB(server.pid) - before
      if (freeze) frozen.kill('SIGCONT')
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
    for (let pair = 0; pair < Number(options.pairs); pair++) {
      without.push(await run(false))
      withOne.push(await run(true))
    }
    const ratios = withOne.map(({ p99Ms }, at) => p99Ms / (without[at]?.p99Ms ?? 1))
    peer.destroy()
    return {
      consumers,
      p99WithoutMs: round(median(without.map(({ p99Ms }) => p99Ms))),
      p99WithOneFrozenMs: round(median(withOne.map(({ p99Ms }) => p99Ms))),
      ratioOfPairs: round(median(ratios)),
      grownWithoutMiB: Math.max(...without.map(({ grownMiB }) => grownMiB)),
      grownWithOneFrozenMiB: Math.max(...withOne.map(({ grownMiB }) => grownMiB)),
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await server.remove()
  }
}

async function start(port: number, count: number, children: ChildProcess[]): Promise<ChildProcess> {
  const program = fileURLToPath(new URL('frozen-consumer.ts', import.meta.url))
  const child = fork(program, [String(port), USER, PASSWORD, String(count)], { execArgv: ['--import', 'tsx'] })
  children.push(child)
  await once(child, 'message')
  return child
}

async function measured(child: ChildProcess): Promise<Measured> {
  child.send('measured?')
  const [message] = (await once(child, 'message')) as [Measured]
  return message
}

/** `rate` values a second, each with the time of its sending. */
async function feed(port: number, rate: number, seconds: number): Promise<void> {
  const socket = createSocket('udp4')
  for (let sent = 0; sent < rate * seconds; sent++) {
    const now = String(Number(process.hrtime.bigint()) / 1e6)
    const packet = join(u32(0), str('double'), str('frozen'), str(now), str('ms'), u32(3), u32(60), u32(0))
    socket.send(packet, port, '127.0.0.1')
    await setTimeout(1_000 / rate)
  }
  socket.close()
}

async function allCommitted(watcher: Seat): Promise<void> {
  for (;;) {
    const rows: Json[] = decoded(await watcher.query('producer.channels'))
    const others = rows.filter(({ channel }) => channel !== watcher.channel)
    if (others.every(({ in_flight, queued }) => in_flight === 0 && queued === 0)) return
    await setTimeout(POLL_MS)
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

function rssMiB(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round(Number(line?.[1] ?? 0) / 1024)
}
