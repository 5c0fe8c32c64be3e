/** Who takes gmetric datagrams in the `gmetric` benchmark: Cinnabar, gmond, and a Node socket that does nothing with them. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dropsIn } from '../../server/kit/io/udp.ts'
import { cpuSecondsOf } from '../rig/process-costs.ts'
import { command } from '../support/bytes.ts'
import { Child } from '../support/child.ts'
import { freePort } from '../support/free-port.ts'
import type { Json } from '../support/records.ts'
import { answerTo } from './asking.ts'
import { Commits } from './commits.ts'
import { BenchConnection, Local } from './connection.ts'
import { MeasuredServer } from './measured.ts'

export const GMOND = '/usr/sbin/gmond'
export const METRICS: readonly string[] = Array.from({ length: 100 }, (_, index) => `reading.${index}`)
const POLL_MS = 50
const CONSUMER_BUFFER_BYTES = 1 << 20
const RECEIVE_BUFFER_BYTES = 8 << 20
/** What a socket gets at most. gmond ends if it gets less than it asked for; Node takes what it is given. */
const MAX_RECEIVE_BUFFER = '/proc/sys/net/core/rmem_max'

export interface Taker {
  readonly pid: number
  readonly port: number
  /** Datagrams that it took, if it can tell. */
  taken(): Promise<number | undefined>
  stop(): Promise<void>
}

export function cpuOf(taker: Taker): number {
  return cpuSecondsOf(taker.pid)
}

/** Datagrams that the kernel threw away for it. */
export function dropsOf({ port }: Pick<Taker, 'port'>): number {
  const drops = dropsIn(readFileSync('/proc/net/udp', 'utf8'), '127.0.0.1', port)
  if (drops === undefined) throw new Error(`nobody listens on udp port ${port}`)
  return drops
}

/** `consumed`: every value goes to a durable channel too, whose consumer commits `through`. */
export async function startCinnabar(consumed: boolean): Promise<Taker> {
  const server = new MeasuredServer()
  await server.start()
  const user = new Local(server.localSecret)
  const asker = await BenchConnection.open(server.tcpPort, user)
  const consumer = consumed ? await consumeReadings(server.tcpPort, user) : undefined
  return {
    pid: server.pid,
    port: server.gmetricPort,
    async taken() {
      const sensors: Json[] = await answerTo(asker, 'producer.sensors')
      return Number(sensors.find(({ name }) => name === 'gmetric').counters.packets)
    },
    async stop() {
      asker.close()
      consumer?.close()
      await server.remove()
    },
  }
}

/** A consumer of all readings, which commits `through`. */
export async function consumeReadings(port: number, user: Local): Promise<BenchConnection> {
  const consumer = await BenchConnection.open(port, user, CONSUMER_BUFFER_BYTES)
  const commits = new Commits(true)
  const metric = await consumer.ask((seq) => command.collect(seq, 'gmetric.reading.*'))
  consumer.listener = {
    value: (view, at) => commits.add(view, at),
    read: () => {
      const bytes = commits.take()
      if (bytes !== undefined) consumer.write(bytes)
    },
  }
  await consumer.ask((seq) => command.subscribe(seq, metric))
  return consumer
}

/** With a receive buffer as large as Cinnabar's. */
export async function startGmond(): Promise<Taker> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-gmond-'))
  const file = join(directory, 'gmond.conf')
  const buffer = Math.min(RECEIVE_BUFFER_BYTES, Number(readFileSync(MAX_RECEIVE_BUFFER, 'utf8')))
  const [port, tcpPort] = [await freePort(), await freePort()]
  writeFileSync(
    file,
    `globals { daemonize = no setuid = no mute = yes deaf = no host_dmax = 0 }
     cluster { name = "bench" }
     udp_recv_channel { bind = 127.0.0.1 port = ${port} buffer = ${buffer} }
     tcp_accept_channel { bind = 127.0.0.1 port = ${tcpPort} }`,
  )
  const child = new Child(GMOND, ['-c', file, '-f'])
  const stop = async (): Promise<void> => {
    await child.end('SIGKILL')
    rmSync(directory, { recursive: true })
  }
  const taker = { pid: child.pid, port, taken: async () => undefined, stop }
  while (dropsIn(readFileSync('/proc/net/udp', 'utf8'), '127.0.0.1', port) === undefined) {
    if (!child.isRunning) throw new Error(`${GMOND} ended with exit code ${child.exitCode}: ${child.errors}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return taker
}

export async function startReader(): Promise<Taker> {
  const program = fileURLToPath(new URL('./gmetric-reader.mjs', import.meta.url))
  const child = new Child(process.execPath, [program], { hasChannel: true })
  const { port } = (await child.message()) as { readonly port: number }
  return {
    pid: child.pid,
    port,
    async taken() {
      const { read } = (await child.ask('read')) as { readonly read: number }
      return read
    },
    async stop() {
      await child.end('SIGKILL')
    },
  }
}

export function hasGmond(): boolean {
  return existsSync(GMOND)
}
