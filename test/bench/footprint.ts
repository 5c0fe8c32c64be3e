/**
 * `memory --parts`: what the server needs at rest, beside the bare parts that it is made of, and what each channel, binding, series
 * and connection adds to it. RSS from /proc after a collection of garbage, so that what is measured is what is kept.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pc from 'picocolors'
import { type Column, formatTable } from '../../cli/output.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { BenchConnection, inTurns, Local, openMany } from './connection.ts'
import { GmetricFeed, valuePacket } from './gmetric-feed.ts'
import { MeasuredServer } from './measured.ts'

/** Long enough for V8 to give back what the start needed, and for the thread of bcrypt to end. */
const CALM_MS = 12_000
const METRICS_PER_HOST = 100
/** Nothing comes on these connections but what a login brings. */
const BUFFER_BYTES = 1024
const WAIT = 'setInterval(() => {}, 1e6)'
/** Programs that do nothing, by the parts that they load. */
const BARE: Readonly<Record<string, string>> = {
  node: WAIT,
  'node, fastify': `await import('fastify'); ${WAIT}`,
  'node, a worker': `const { Worker } = await import('node:worker_threads'); new Worker(${JSON.stringify(WAIT)}, { eval: true })`,
  'node, fastify, a worker with SQLite': `await import('fastify'); const { Worker } = await import('node:worker_threads');
    new Worker("const { default: D } = await import('better-sqlite3'); new D(':memory:'); setInterval(() => {}, 1e6)", { eval: true })`,
}

interface Sizes {
  readonly channels: number
  readonly bindings: number
  readonly series: number
  readonly connections: number
  /** Before and after a collection of garbage. */
  readonly calmMs: number
}

export async function benchFootprint(argv: string[]): Promise<object> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const { values: given } = parseArgs({
    args: argv,
    options: {
      parts: { type: 'boolean', default: true },
      channels: text('10000'),
      bindings: text('10000'),
      series: text('50000'),
      connections: text('2000'),
      calm: text(String(CALM_MS)),
    },
  })
  const [channels, bindings] = [Number(given.channels), Number(given.bindings)]
  const [series, connections] = [Number(given.series), Number(given.connections)]
  const rest: Record<string, number> = {}
  const calmMs = Number(given.calm)
  for (const [name, program] of Object.entries(BARE)) rest[name] = await rssOfBare(program, calmMs)
  const { atRestMiB, added } = await measure({ channels, bindings, series, connections, calmMs })
  rest['cinnabar'] = atRestMiB
  const left = { align: 'left' } as const
  const right = { align: 'right' } as const
  const atRest: Column[] = [
    { head: 'at rest', ...left },
    { head: 'RSS MiB', ...right },
  ]
  const each: Column[] = [
    { head: 'each', ...left },
    { head: 'number', ...right },
    { head: 'KiB', ...right },
  ]
  const colors = pc.createColors(false)
  const lines = Object.entries(rest).map(([name, mib]) => [name, String(mib)])
  console.log(formatTable(atRest, lines, colors))
  const adding = Object.entries(added).map(([name, { count, kiB }]) => [name, String(count), kiB.toFixed(2)])
  console.log(formatTable(each, adding, colors))
  return { rest, added }
}

async function measure({ channels, bindings, series, connections, calmMs }: Sizes) {
  const limits = `channels_per_identity = ${channels + connections + 100}\ninstances_per_identity = ${bindings + 100}\n`
  const server = new MeasuredServer(`[limits]\nconnections = ${connections + 100}\n${limits}`)
  await server.start(['--expose-gc'])
  const added: Record<string, { readonly count: number; readonly kiB: number }> = {}
  try {
    const user = new Local(server.localSecret)
    const maker = await BenchConnection.open(server.tcpPort, user)
    const feed = await GmetricFeed.open(server.gmetricPort, ['load'])
    // What the first logins need is no property of one connection.
    for (const first of await openMany(server.tcpPort, user, 50, BUFFER_BYTES)) first.close()
    const atRestMiB = await settled(server, calmMs)
    let before = atRestMiB
    const add = async (name: string, count: number, act: () => Promise<unknown>): Promise<void> => {
      if (count === 0) return
      await act()
      const after = await settled(server, calmMs)
      added[name] = { count, kiB: ((after - before) * 1024) / count }
      before = after
    }
    const source = args(['host', type.string, str('127.0.0.1')])
    await add('channel', channels, () => inTurns(channels, () => ask(maker, (seq) => command.defChannel(seq))))
    await add('binding', bindings, () =>
      inTurns(bindings, async () => {
        const metric = await maker.ask((seq) => command.collect(seq, 'gmetric.load', source))
        await ask(maker, (seq) => command.subscribe(seq, metric))
      }),
    )
    await add('series', series, async () => {
      const packets = Array.from({ length: series }, (_, index) => {
        const host = Math.floor(index / METRICS_PER_HOST)
        return valuePacket(`reading.${index % METRICS_PER_HOST}`, `10.1.${host >> 8}.${host & 255}:host${host}`)
      })
      const many = await GmetricFeed.of(server.gmetricPort, packets)
      // At a rate at which nothing is lost.
      for (let sent = 0; sent < series; sent += 1_000) {
        await many.send(Math.min(1_000, series - sent))
        await setTimeout(50)
      }
      many.close()
    })
    const idle: BenchConnection[] = []
    await add('connection', connections, async () => {
      idle.push(...(await openMany(server.tcpPort, user, connections, BUFFER_BYTES)))
    })
    for (const connection of [...idle, maker]) connection.close()
    feed.close()
    return { atRestMiB, added }
  } finally {
    await server.remove()
  }
}

async function ask(connection: BenchConnection, make: (seq: number) => Uint8Array): Promise<void> {
  await connection.ask(make)
}

async function settled(server: MeasuredServer, calmMs: number): Promise<number> {
  await setTimeout(calmMs)
  await server.collectGarbage()
  await setTimeout(calmMs)
  return server.rssMiB
}

async function rssOfBare(program: string, calmMs: number): Promise<number> {
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'ignore' })
  await setTimeout(calmMs)
  const kiB = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
  child.kill('SIGKILL')
  return Math.round(Number(kiB) / 1024)
}
