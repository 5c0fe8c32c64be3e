/** The consumer in Python that was written from the protocol's page: it is killed again and again, and so is the server. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CounterFeed } from '../support/counter-feed.ts'
import { freePort } from '../support/free-port.ts'
import { ledgerWhen } from '../support/records.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const CONSUMER = join(import.meta.dirname, '../../docs/examples/consumer.py')
const KILLS = 5
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
/** Files in the directory of the server. */
let secret: string
let journal: string

beforeEach(async () => {
  udpPort = await freePort()
  tcpPort = await freePort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { tcp: tcpPort })
  await server.start()
  secret = join(server.directory, 'secret.txt')
  journal = join(server.directory, 'journal.txt')
  writeFileSync(secret, `${PASSWORD}\n`, { mode: 0o600 })
})
afterEach(async () => {
  consumer?.kill('SIGKILL')
  await server.remove()
})

const lines = (): string[] => (existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').slice(0, -1) : [])

function start(port = tcpPort, program = CONSUMER, output: string[] = [journal]): ChildProcess {
  const args = [program, `127.0.0.1:${port}`, 'admin', secret, 'gmetric.counter', 'counter reader', ...output]
  return spawn('python3', args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function channelOf(name: string): Promise<number> {
  const { peer } = await server.login()
  const { channel } = await ledgerWhen(peer, name, ({ bound }) => bound === 1)
  peer.destroy()
  return Number(channel)
}

async function when(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    if (consumer?.exitCode !== null) throw new Error(`the consumer ended with exit code ${consumer?.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

// Skipped only where Python is missing; the message above says how to install it.
it.skipIf(missing !== undefined)(`has each value once after ${KILLS} kills`, { timeout: 180_000 }, async () => {
  consumer = start()
  // What comes before the binding is for nobody.
  const channel = await channelOf('counter reader')
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
  expect(valuesOf(lines())).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
  expect(new Set(lines().map((line) => Number(line.split('/')[0])))).toEqual(new Set([channel]))
})

/** Lines are channel and generation, transaction, metric and (time, value), or that the server was killed: a GAP of reason 5. */
function valuesOf(from: readonly string[]): number[] {
  return from
    .filter((line) => !/^\d+\/[0-9a-f]{16} \d+ GAP \(0, 0, 0, 0, 5\)$/.test(line))
    .map((line) => Number(/^\d+\/[0-9a-f]{16} \d+ \d+ \(\d+, .*'value': (\d+)\}\)$/.exec(line)?.[1]))
}

// Skipped only where Python is missing; the message above says how to install it.
it.skipIf(missing !== undefined)('continues without a file of its own; a kill may repeat values', async () => {
  let output = ''
  const begin = (): void => {
    consumer = start(tcpPort, CONSUMER, [])
    consumer.stdout?.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const values = (): number[] => valuesOf(output.split('\n').slice(0, -1))
  begin()
  const channel = await channelOf('counter reader')
  const feed = new CounterFeed(udpPort)
  for (const until of [VALUES, 2 * VALUES]) {
    feed.send(VALUES)
    await when(() => values().length >= until)
    const gone = once(consumer as ChildProcess, 'close')
    consumer?.kill('SIGKILL')
    await gone
    // Nobody is there while these come.
    feed.send(VALUES)
    begin()
  }
  await when(() => values().at(-1) === feed.sent - 1)
  feed.close()
  expect([...new Set(values())]).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
  expect(await channelOf('counter reader')).toBe(channel)
})

/** Passes everything on, but the answers to DEF_CHANNEL and to what follows it only after a NOP. */
async function slowAnswers(): Promise<Server> {
  const isCommand = (bytes: Buffer, number: number): boolean => bytes.length >= 8 && bytes.readUInt32BE(4) === number
  const between = createServer((client) => {
    const producer = connect(tcpPort, '127.0.0.1')
    for (const socket of [client, producer]) socket.on('error', () => {})
    // The consumer waits for each answer, so that a command comes by itself.
    client.on('data', (bytes) => {
      if (isCommand(bytes, 7)) producer.pause()
      else if (isCommand(bytes, 0)) producer.resume()
      producer.write(bytes)
    })
    producer.on('data', (bytes) => void client.write(bytes))
    client.on('close', () => producer.destroy())
    producer.on('close', () => client.destroy())
  })
  between.listen(0, '127.0.0.1')
  await once(between, 'listening')
  return between
}

// Skipped only where Python is missing; the message above says how to install it.
it.skipIf(missing !== undefined)('waits for an answer that comes after its NOP', async () => {
  const impatient = join(server.directory, 'impatient.py')
  const source = readFileSync(CONSUMER, 'utf8')
  expect(source).toContain('timeout=15')
  writeFileSync(impatient, source.replace('timeout=15', 'timeout=0.5'))
  const between = await slowAnswers()
  consumer = start((between.address() as AddressInfo).port, impatient)
  // It uses the channel that it was given.
  expect(await channelOf('counter reader')).toBeGreaterThan(0)
  consumer.kill('SIGKILL')
  await new Promise((resolve) => between.close(resolve))
})
