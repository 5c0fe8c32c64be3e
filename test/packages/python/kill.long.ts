/** A durable consumer in Python is killed again and again, and so is the server: each value is in its file once. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Child } from '../../support/child.ts'
import { CounterFeed } from '../../support/counter-feed.ts'
import { freePort } from '../../support/free-port.ts'
import { ledgerWhen } from '../../support/records.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { missing, start } from './python.ts'

const KILLS = 6
const NAME = 'the journal'
// More at one time would not fit into the kernel's buffer while the server is busy.
const VALUES = 100

let server: ServerProcess
let feed: CounterFeed
let consumer: Child
let tcpPort: number
let journal: string

beforeEach(async () => {
  const udpPort = await freePort()
  tcpPort = await freePort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { tcp: tcpPort })
  await server.start()
  feed = new CounterFeed(udpPort)
  journal = join(server.directory, 'journal.txt')
  writeFileSync(join(server.directory, 'password'), `${PASSWORD}\n`, { mode: 0o600 })
})
afterEach(async () => {
  feed.close()
  await consumer?.end('SIGKILL')
  await server.remove()
})

const lines = (): string[] => (existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').slice(0, -1) : [])

function begin(): void {
  const url = `tcp://127.0.0.1:${tcpPort}`
  consumer = start('journal.py', [url, join(server.directory, 'password'), NAME, 'gmetric.counter', journal])
}

async function when(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    if (!consumer.isRunning)
      throw new Error(`the consumer ended with exit code ${consumer.exitCode}: ${consumer.errors}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Its ledger is as wanted. */
async function channelWhen(isWanted: (ledger: Readonly<Record<string, number>>) => boolean): Promise<number> {
  const { peer } = await server.login()
  const { channel } = await ledgerWhen(peer, NAME, isWanted)
  peer.destroy()
  return Number(channel)
}

// Skipped only where Python is missing; the message of python.ts says how to install it.
it.skipIf(missing !== undefined)(`has each value once after ${KILLS} kills`, async () => {
  begin()
  // What comes before the binding is for nobody.
  const channel = await channelWhen(({ bound }) => bound === 1)
  for (let kill = 0; kill < KILLS; kill++) {
    feed.send(VALUES)
    // How much of it was written and committed is left to chance.
    const before = lines().length
    await when(() => lines().length > before)
    if (kill % 2 === 0) {
      await consumer.end('SIGKILL')
      begin()
    } else {
      // All that was sent is stored by then.
      await channelWhen(({ accepted = 0, unstored }) => accepted >= feed.sent && unstored === 0)
      await server.end('SIGKILL')
      await server.start()
    }
  }
  await channelWhen(({ committed = 0 }) => committed >= feed.sent)
  const values = lines().filter((line) => !/^\d+ [0-9a-f]{16} \d+ GAP restart$/.test(line))
  expect(values.map((line) => Number(line.split(' ')[3]))).toEqual(
    Array.from({ length: feed.sent }, (_, number) => number),
  )
  expect(new Set(lines().map((line) => Number(line.split(' ')[0])))).toEqual(new Set([channel]))
  expect(consumer.errors).toBe('')
})
