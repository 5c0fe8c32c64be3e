/**
 * QUERY: pipelined (`--outstanding` under way on one connection), and one at a time with percentiles, of a pushed metric
 * (gmetric, answered from memory) and of one that is measured when asked (`host.load.one`); `--only` pushed or measured.
 */
import { percentile } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { BenchConnection, Local } from './connection.ts'
import { GmetricFeed } from './gmetric-feed.ts'
import { limitServer } from './limit/start.ts'
import { MeasuredServer } from './measured.ts'
import type { Figures } from './ratios.ts'

const METRICS = {
  pushed: ['gmetric.load', args(['host', type.string, str('127.0.0.1')])],
  measured: ['host.load.one', args()],
} as const

export async function benchQuery(argv: string[]): Promise<object> {
  const server = new MeasuredServer()
  await server.start()
  const feed = await GmetricFeed.open(server.gmetricPort, ['load'])
  await feed.send(1)
  const figures = await run(server, new Local(server.localSecret), argv)
  feed.close()
  return figures
}

/** The same with the least that any server has to do; `measured`: figures of the same with the server. */
export async function limitOfQuery(argv: string[], measured: Figures): Promise<Figures> {
  const server = limitServer({ workload: 'query', frameBytes: Number(measured['frameBytes']) })
  await server.start()
  return run(server, undefined, argv)
}

/** `user`: undefined at a limit server. */
async function run(server: MeasuredServer, user: Local | undefined, argv: string[]): Promise<Figures> {
  const options = optionsIn(argv, { queries: 1_000_000, outstanding: 1_024, alone: 20_000, only: '' })
  const { queries: count, outstanding } = options
  const connection = await BenchConnection.open(server.tcpPort, user)
  const figures: Record<string, unknown> = {}
  for (const [kind, [metric, list]] of Object.entries(METRICS)) {
    if (options.only !== '' && options.only !== kind) continue
    const queries = new Queries(connection, metric, list)
    await queries.alone(1_000)
    const times = await queries.alone(options.alone)
    await queries.pipelined(50_000, outstanding)
    server.resetLoopDelay()
    const cpu = server.cpu()
    const started = performance.now()
    await queries.pipelined(count, outstanding)
    const seconds = (performance.now() - started) / 1000
    figures[`${kind}PerSecond`] = Math.round(count / seconds)
    figures[`${kind}CpuPerMillion`] = (((server.cpu().all - cpu.all) * 1e6) / count).toFixed(3)
    figures[`${kind}LoopDelayP99Ms`] = await server.loopDelayP99Ms()
    figures[`${kind}AloneP50Ms`] = percentile(times, 0.5).toFixed(3)
    figures[`${kind}AloneP99Ms`] = percentile(times, 0.99).toFixed(3)
    figures[`${kind}AloneP999Ms`] = percentile(times, 0.999).toFixed(3)
    figures['frameBytes'] = queries.frameBytes
  }
  figures['peakRssMiB'] = server.peakRssMiB
  connection.close()
  await server.remove()
  return figures
}

/** QUERYs of one metric on one connection; a QUERY is done when its value is there. */
class Queries {
  readonly #connection: BenchConnection
  readonly #frame: Uint8Array
  /** Of an answer's VALUE frame. */
  frameBytes = 0
  #done = 0
  #changed: () => void = () => {}

  constructor(connection: BenchConnection, metric: string, list: Uint8Array) {
    this.#connection = connection
    this.#frame = command.query(0, metric, list)
    connection.listener = {
      value: (view, at) => {
        this.#done++
        this.frameBytes = 4 + view.getUint32(at)
      },
      read: () => this.#changed(),
    }
  }

  /** One at a time; gives what each took, ms. */
  async alone(count: number): Promise<number[]> {
    const times: number[] = []
    for (let index = 0; index < count; index++) {
      const started = performance.now()
      this.#done = 0
      this.#connection.write(this.#frame)
      await this.#until(1)
      times.push(performance.now() - started)
    }
    return times
  }

  async pipelined(count: number, outstanding: number): Promise<void> {
    const frames = Buffer.concat(Array.from({ length: outstanding }, () => this.#frame))
    const write = (queries: number): void => this.#connection.write(frames.subarray(0, queries * this.#frame.length))
    this.#done = 0
    let sent = 0
    while (this.#done < count) {
      const more = Math.min(count - sent, outstanding - (sent - this.#done))
      if (more > 0) write(more)
      sent += more
      const { promise, resolve } = settable()
      this.#changed = resolve
      await promise
    }
  }

  #until(done: number): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = () => {
        if (this.#done >= done) resolve()
      }
    })
  }
}

function settable(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
