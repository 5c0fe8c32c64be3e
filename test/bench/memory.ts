/**
 * The memory of a server whose consumer never commits, while `--values` (10 million) gmetric datagrams arrive for its
 * durable channel: a process of its own, read from /proc. It has to stay flat. `--parts`: what the parts need, in footprint.ts.
 */

import { createSocket } from 'node:dgram'
import { optionsIn } from '../rig/options.ts'
import { memoryMiB } from '../rig/process-costs.ts'
import { args, command, hex, join, str, type, u32 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { ledgerOf } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'
import { benchFootprint } from './footprint.ts'
import { WITHOUT_HISTORY } from './measured.ts'

/** Datagrams handed to the kernel between two looks at the event loop. */
const SLICE = 64
const POLL_MS = 50

export async function benchMemory(argv: string[]): Promise<object> {
  // The sizes of the parts are options of their own.
  if (argv.includes('--parts')) return benchFootprint(argv)
  const { values: wanted } = optionsIn(argv, { values: 10_000_000 })
  const port = await freePort()
  const server = new ServerProcess(`${WITHOUT_HISTORY}[gmetric]\nlisten = "127.0.0.1:${port}"\n`)
  await server.start()
  const { peer } = await server.login()
  const watcher = (await server.login()).peer
  peer.send(command.defChannel(1))
  const { result: channel } = await peer.response(1)
  peer.send(
    command.setChannel(2, channel),
    command.collect(3, 'gmetric.load', args(['host', type.string, str('127.0.0.1')])),
  )
  const { result: metric } = await peer.response(3)
  peer.send(command.subscribe(4, metric))
  await peer.response(4)
  // From here on the consumer reads and never commits.
  peer.stream.removeAllListeners('data')
  peer.stream.resume()

  const stop = flood(port)
  const series: { values: number; rssMiB: number }[] = []
  const started = performance.now()
  let accepted = 0
  while (accepted < wanted) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    accepted = (await ledgerOf(watcher, channel)).accepted
    if (accepted >= (series.length + 1) * (wanted / 10)) {
      series.push({ values: accepted, rssMiB: memoryMiB(server.pid) })
      console.log(`${String(accepted).padStart(12)} values  ${String(memoryMiB(server.pid)).padStart(5)} MiB`)
    }
  }
  const seconds = (performance.now() - started) / 1000
  stop()
  const ledger = await ledgerOf(watcher, channel)
  peer.destroy()
  watcher.destroy()
  await server.remove()
  const rss = series.map((point) => point.rssMiB)
  return {
    values: accepted,
    valuesPerSecond: Math.round(accepted / seconds),
    droppedByOverflow: ledger.dropped.overflow,
    queuedMiB: Math.round(ledger.queued_bytes / 2 ** 20),
    rssAfterFirstTenthMiB: rss[0],
    rssAtEndMiB: rss[rss.length - 1],
    rssMostMiB: Math.max(...rss),
  }
}

/** Sends a double value as gmond does (id 135), over and over, as fast as the kernel takes it. */
function flood(port: number): () => void {
  const socket = createSocket('udp4')
  const packet = join(u32(135), str('vm'), str('load'), u32(0), str('%.2f'), hex('3fe0000000000000'))
  let going = true
  const slice = (): void => {
    if (!going) {
      socket.close()
      return
    }
    let left = SLICE
    const sent = (): void => {
      if (--left === 0) setImmediate(slice)
    }
    for (let i = 0; i < SLICE; i++) socket.send(packet, port, '127.0.0.1', sent)
  }
  slice()
  return () => {
    going = false
  }
}
