/**
 * `memory --parts`: what the server needs at rest, beside the bare parts that it is made of, and what each channel, binding, series
 * and connection adds to it. RSS from /proc after a collection of garbage, so that what is measured is what is kept.
 */
import { setTimeout } from 'node:timers/promises'
import { tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { memoryMiB } from '../rig/process-costs.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { Child } from '../support/child.ts'
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
  const { calm: calmMs, ...sizes } = optionsIn(argv, {
    parts: true,
    channels: 10_000,
    bindings: 10_000,
    series: 50_000,
    connections: 2_000,
    calm: CALM_MS,
  })
  const rest: Record<string, number> = {}
  for (const [name, program] of Object.entries(BARE)) rest[name] = await rssOfBare(program, calmMs)
  const { atRestMiB, added } = await measure({ ...sizes, calmMs })
  rest['cinnabar'] = atRestMiB
  const atRest = Object.entries(rest).map(([name, mib]) => [name, String(mib)])
  console.log(tableOf(['at rest', 'RSS MiB'], atRest))
  const adding = Object.entries(added).map(([name, { count, kiB }]) => [name, String(count), kiB.toFixed(2)])
  console.log(tableOf(['each', 'number', 'KiB'], adding))
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
  const child = new Child(process.execPath, ['--input-type=module', '-e', program])
  await setTimeout(calmMs)
  const mib = memoryMiB(child.pid)
  await child.end('SIGKILL')
  return mib
}
