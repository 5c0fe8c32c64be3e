/**
 * `npm run bench -- upstream --fleet 200`: one server over so many others of 1,000 series each, which two processes speak for. Each
 * series goes through a durable channel. How long it takes until all are up, from the start of the server, after all connections
 * were cut at once, and after the server was killed; what that costs in memory and CPU; and whether every value came.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Consumer, connect } from '../../client/index.ts'
import { until } from '../rig/patience.ts'
import { Child } from '../support/child.ts'
import { MeasuredServer } from './measured.ts'
import type { Load, LoadTold } from './processes/upstream-load.ts'

const PROCESSES = 2
const PASSWORD = 'the password of the load'
const LOOK_MS = 50

export interface FleetOptions {
  readonly upstreams: number
  readonly series: number
  /** How often each series has a value before, between and after the disturbances. */
  readonly rounds: number
}

export async function benchFleet({ upstreams, series, rounds }: FleetOptions): Promise<object> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-'))
  const secret = join(directory, 'secret')
  writeFileSync(secret, PASSWORD)
  const loads = await Promise.all(
    Array.from({ length: PROCESSES }, () =>
      LoadProcess.start({ servers: Math.ceil(upstreams / PROCESSES), series, directory, password: PASSWORD }),
    ),
  )
  const ports = loads.flatMap((load) => load.ports).slice(0, upstreams)
  const tables = ports.map(
    (port, index) =>
      `[[upstream]]\nname = "u${index}"\nurl = "tcp://127.0.0.1:${port}"\nuser = "admin"\nsecret_file = ${JSON.stringify(secret)}\n`,
  )
  const server = new MeasuredServer(`[channels]\nmax_bytes = 1073741824\n${tables.join('')}`)
  try {
    await server.start()
    const emptyMiB = server.rssMiB
    const first = await FleetConsumer.connect(server, ports.length)
    const upSeconds = await first.allUp(performance.now())
    const following = performance.now()
    await first.follow()
    let value = 0
    const round = async (): Promise<void> => {
      value++
      await Promise.all(loads.map((load) => load.emit(value)))
    }
    // Values from before the bindings there are nobody's.
    const hasAll = async (): Promise<boolean> => {
      await round()
      return first.series >= ports.length * series
    }
    await until('each series has had a value', hasAll, { looks: 90_000, everyMs: 1 })
    await first.heard(value)
    const firstValuesSeconds = (performance.now() - following) / 1000
    const cpuBefore = server.cpu()
    const began = performance.now()
    for (let i = 0; i < rounds; i++) await round()
    await first.heard(value)
    const steadySeconds = (performance.now() - began) / 1000
    const cpuPerMillion = ((server.cpu().all - cpuBefore.all) * 1e6) / (rounds * ports.length * series)
    const steadyMiB = server.rssMiB
    server.resetPeak()
    server.resetLoopDelay()
    const cut = performance.now()
    for (const load of loads) load.cut()
    await round()
    const cutSeconds = await first.allUp(cut)
    await first.heard(value)
    const cutAllValuesSeconds = (performance.now() - cut) / 1000
    const loopDelayP99Ms = await server.loopDelayP99Ms()
    const { peakRssMiB } = server
    first.close()
    const killed = performance.now()
    await server.end('SIGKILL')
    await round()
    await server.start()
    const second = await FleetConsumer.connect(server, ports.length, first)
    const killSeconds = await second.allUp(killed)
    await second.follow()
    await second.heard(value)
    const killAllValuesSeconds = (performance.now() - killed) / 1000
    second.close()
    return {
      upstreams: ports.length,
      series: ports.length * series,
      upSeconds: upSeconds.toFixed(2),
      firstValuesSeconds: firstValuesSeconds.toFixed(2),
      valuesPerSecond: Math.round((rounds * ports.length * series) / steadySeconds),
      cpuPerMillion: cpuPerMillion.toFixed(2),
      emptyMiB,
      steadyMiB,
      kiBPerSeries: (((steadyMiB - emptyMiB) * 1024) / (ports.length * series)).toFixed(2),
      afterCutUpSeconds: cutSeconds.toFixed(2),
      afterCutAllValuesSeconds: cutAllValuesSeconds.toFixed(2),
      afterCutPeakMiB: peakRssMiB,
      afterCutLoopDelayP99Ms: loopDelayP99Ms,
      afterKillUpSeconds: killSeconds.toFixed(2),
      afterKillAllValuesSeconds: killAllValuesSeconds.toFixed(2),
      missing: second.missing(value),
      repeated: second.repeated,
    }
  } finally {
    for (const load of loads) load.close()
    await server.remove()
    rmSync(directory, { recursive: true })
  }
}

/** Takes every value of the fleet from a durable channel, and counts by series. */
class FleetConsumer {
  readonly #client: Consumer
  /** Has no values that its answers could wait for. */
  readonly #watcher: Consumer
  readonly #upstreams: number
  /** The last value of each series. */
  readonly #last: Map<string, number>
  repeated: number

  private constructor(client: Consumer, watcher: Consumer, upstreams: number, before: FleetConsumer | undefined) {
    this.#client = client
    this.#watcher = watcher
    this.#upstreams = upstreams
    this.#last = before === undefined ? new Map() : before.#last
    this.repeated = before?.repeated ?? 0
  }

  static async connect(server: MeasuredServer, upstreams: number, before?: FleetConsumer): Promise<FleetConsumer> {
    const who = { identity: 'local', password: server.localSecret }
    const url = `tcp://127.0.0.1:${server.tcpPort}`
    const [client, watcher] = [await connect(url, who, { name: 'fleet' }), await connect(url, who, { durable: false })]
    return new FleetConsumer(client, watcher, upstreams, before)
  }

  /** Waits until every upstream is up. Gives the seconds since `sinceMs`. */
  async allUp(sinceMs: number): Promise<number> {
    for (;;) {
      const { plain } = await this.#watcher.query('upstream.up')
      const states = plain as unknown as readonly { readonly value: boolean }[]
      if (states.filter((state) => state.value).length === this.#upstreams) return (performance.now() - sinceMs) / 1000
      await soon()
    }
  }

  async follow(): Promise<void> {
    await this.#client.follow('load.*', { producer: '*' }, ({ metric, labels, plain }) => {
      const round = Number(plain)
      const key = `${labels['producer']} ${metric}`
      const last = this.#last.get(key) ?? 0
      if (round <= last) this.repeated++
      else this.#last.set(key, round)
    })
    void this.#client.run()
  }

  /** Series of which a value has come. */
  get series(): number {
    return this.#last.size
  }

  /** Waits until all series have had this value. */
  async heard(round: number): Promise<void> {
    await until(`all series have had value ${round}`, () => this.missing(round) === 0, { looks: 90_000, everyMs: 1 })
  }

  /** Series whose last value is not this one. */
  missing(round: number): number {
    let missing = 0
    for (const last of this.#last.values()) if (last < round) missing++
    return missing
  }

  close(): void {
    void this.#client.close()
    void this.#watcher.close()
  }
}

class LoadProcess {
  readonly #child: Child
  readonly ports: readonly number[]

  private constructor(child: Child, ports: readonly number[]) {
    this.#child = child
    this.ports = ports
  }

  static async start(load: Load): Promise<LoadProcess> {
    const program = fileURLToPath(new URL('./processes/upstream-load.ts', import.meta.url))
    const args = ['--import', 'tsx', program, JSON.stringify(load)]
    const child = new Child(process.execPath, args, { hasChannel: true })
    const told = (await child.message()) as LoadTold
    if (told.kind !== 'ready') throw new Error(`a load process has said ${told.kind} where ready was due`)
    return new LoadProcess(child, told.ports)
  }

  async emit(value: number): Promise<void> {
    await this.#child.ask({ emit: value })
  }

  cut(): void {
    this.#child.process.send('cut')
  }

  close(): void {
    if (this.#child.process.connected) this.#child.process.disconnect()
  }
}

function soon(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_MS))
}
