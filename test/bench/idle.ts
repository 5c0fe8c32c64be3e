/**
 * `--connections` (10,000) that log in and then do nothing: memory of each in the server, and what they cost while idle. They
 * log in by SCRAM with kept keys, as a library that reconnects does, so nobody waits for bcrypt. Needs `ulimit -n` above that.
 */
import { optionsIn } from '../rig/options.ts'
import { Local, openMany } from './connection.ts'
import { MeasuredServer } from './measured.ts'

/** After the logins, until memory is looked at. */
const CALM_MS = 5_000
/** Nothing comes on these connections but what a login brings. */
const BUFFER_BYTES = 1024

export async function benchIdle(argv: string[]): Promise<object> {
  const { connections: count, seconds } = optionsIn(argv, { connections: 10_000, seconds: 30 })
  const server = new MeasuredServer(`[limits]\nconnections = ${count + 100}\nchannels_per_identity = ${count + 100}\n`)
  await server.start()
  const user = new Local(server.localSecret)
  // What the first logins need is no property of one connection.
  for (const first of await openMany(server.tcpPort, user, 100, BUFFER_BYTES)) first.close()
  await calm()
  const before = server.rssMiB
  const cpuBefore = server.cpu()
  const started = performance.now()
  const connections = await openMany(server.tcpPort, user, count, BUFFER_BYTES)
  const loginSeconds = (performance.now() - started) / 1000
  const cpuOfLogins = server.cpu().all - cpuBefore.all
  const { rssMiB: rssAfterLoginsMiB } = server
  await calm()
  server.resetLoopDelay()
  const cpu = server.cpu()
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const spent = server.cpu().all - cpu.all
  const { rssMiB, peakRssMiB } = server
  const loopDelayP99Ms = await server.loopDelayP99Ms()
  for (const connection of connections) connection.close()
  await server.remove()
  return {
    connections: count,
    loginsPerSecond: Math.round(count / loginSeconds),
    cpuMsPerLogin: ((cpuOfLogins * 1000) / count).toFixed(2),
    rssBeforeMiB: before,
    rssAfterLoginsMiB,
    rssIdleMiB: rssMiB,
    peakRssMiB,
    kiBPerConnection: (((rssMiB - before) * 1024) / count).toFixed(1),
    idleShareOfCore: (spent / seconds).toFixed(3),
    loopDelayP99Ms,
  }
}

function calm(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, CALM_MS))
}
