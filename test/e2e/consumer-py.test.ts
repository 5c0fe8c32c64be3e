/** The consumer in Python that was written from the protocol's page: it is killed again and again, and so is the server. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CounterFeed } from '../support/counter-feed.ts'
import { times } from '../support/long.ts'
import { ledgerWhen } from '../support/records.ts'
import { freeTcpPort, freeUdpPort, PASSWORD, ServerProcess } from '../support/server-process.ts'

const CONSUMER = join(import.meta.dirname, '../../docs/examples/consumer.py')
const KILLS = times({ short: 3, long: 10 })
// More at one time would not fit into the kernel's buffer while the server is busy.
const VALUES = 100

function pythonMissing(): string | undefined {
  try {
    execFileSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'python3 (3.10 or newer) is missing; install it with `apt-get install --no-install-recommends python3`'
  }
}
const missing = pythonMissing()
if (missing !== undefined) console.warn(`skipped: ${missing}`)

let server: ServerProcess
let consumer: ChildProcess | undefined
let udpPort: number
let tcpPort: number

beforeEach(async () => {
  udpPort = await freeUdpPort()
  tcpPort = await freeTcpPort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { tcp: tcpPort })
  await server.start()
})
afterEach(async () => {
  consumer?.kill('SIGKILL')
  await server.remove()
})

// Skipped only where Python is missing; the message above says how to install it.
it.skipIf(missing !== undefined)(`has each value once after ${KILLS} kills`, { timeout: 180_000 }, async () => {
  const [secret, journal] = [join(server.directory, 'secret.txt'), join(server.directory, 'journal.txt')]
  writeFileSync(secret, `${PASSWORD}\n`, { mode: 0o600 })
  const lines = (): string[] => (existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').slice(0, -1) : [])
  const start = (): ChildProcess =>
    spawn('python3', [CONSUMER, `127.0.0.1:${tcpPort}`, 'admin', secret, 'gmetric.counter', journal], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  const when = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) {
      if (consumer?.exitCode !== null) throw new Error(`the consumer ended with exit code ${consumer?.exitCode}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  consumer = start()
  await when(() => lines().length > 0)
  const channel = Number(lines()[0])
  const first = await server.login()
  // What comes before the binding is for nobody.
  await ledgerWhen(first.peer, channel, ({ bound }) => bound === 1)
  first.peer.destroy()
  const feed = new CounterFeed(udpPort)
  for (let kill = 0; kill < KILLS; kill++) {
    feed.send(VALUES)
    // How much of it was written and committed is left to chance.
    const before = lines().length
    await when(() => lines().length > before)
    if (kill % 2 === 0) {
      const gone = once(consumer, 'exit')
      consumer.kill('SIGKILL')
      await gone
      consumer = start()
    } else {
      // All that was sent is stored by then.
      const { peer } = await server.login()
      await ledgerWhen(peer, channel, ({ accepted, unstored }) => accepted >= feed.sent && unstored === 0)
      await server.end('SIGKILL')
      await server.start()
    }
  }
  const { peer } = await server.login()
  await ledgerWhen(peer, channel, ({ committed }) => committed >= feed.sent)
  feed.close()
  // The channel; then transaction, metric and (time, value), or that the server was killed: a GAP of reason 5.
  const values = lines()
    .slice(1)
    .filter((line) => !/^\d+ GAP \(0, 0, 0, 0, 5\)$/.test(line))
    .map((line) => Number(/^\d+ \d+ \(\d+, .*'value': (\d+)\}\)$/.exec(line)?.[1]))
  expect(values).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
  expect(Number(lines()[0])).toBe(channel)
})
