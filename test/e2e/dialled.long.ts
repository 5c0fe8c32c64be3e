/** A consumer that the server connects to: killed, started again, and called again; and so is the server. Nothing is lost. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { connect } from '../../client/index.ts'
import { compiled } from '../support/compiled.ts'
import { CounterFeed } from '../support/counter-feed.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { type Json, ledgerWhen } from '../support/records.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const VALUES = 150
const KILLED = ['consumer', 'server', 'consumer', 'both']
const SECRET = 'a secret between the two of us'
const PROGRAM = compiled('test/e2e/consumers/called.ts')

let server: ServerProcess
let child: ChildProcess | undefined
let feed: CounterFeed
let url: string
let file: string

beforeEach(async () => {
  const udpPort = await freePort()
  const dial = '[dial]\nallow = ["tcp://127.0.0.1:*"]\n'
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n${dial}`, { tcp: await freePort() })
  await server.start()
  feed = new CounterFeed(udpPort)
  url = `tcp://127.0.0.1:${await freePort()}`
  file = join(server.directory, 'handled.txt')
})
afterEach(async () => {
  await endConsumer()
  feed.close()
  await server.remove()
})

async function startConsumer(): Promise<void> {
  child = spawn(process.execPath, [PROGRAM, url, file], {
    env: { ...process.env, CHANNEL_SECRET: SECRET },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout as NodeJS.ReadableStream, 'data')
}

async function endConsumer(): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

async function define(): Promise<number> {
  const credentials = { identity: 'admin', password: PASSWORD }
  const consumer = await connect(`tcp://127.0.0.1:${server.tcpPort}`, credentials)
  const metric = await consumer.collect('gmetric.counter')
  const channel = await consumer.defChannel(url, { secret: new TextEncoder().encode(SECRET) })
  await consumer.subscribe(metric, channel)
  await consumer.close()
  return channel
}

/** Settles with the ledger of the channel, when it says so. */
async function until(channel: number, isSo: (ledger: Json) => boolean): Promise<Json> {
  const { peer } = await server.login()
  const ledger = await ledgerWhen(peer, channel, isSo)
  peer.destroy()
  return ledger
}

const handled = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [])

it('has every value once, whichever end is killed', async () => {
  const channel = await define()
  await startConsumer()
  for (const killed of KILLED) {
    // What was committed before it was stored is in no ledger after a kill: it is counted from here on.
    const { accepted: before } = await until(channel, () => true)
    feed.send(VALUES)
    await until(channel, ({ accepted, unstored }) => accepted === before + VALUES && unstored === 0)
    // How much of it was handled and committed by now is left to chance.
    if (killed !== 'server') await endConsumer()
    if (killed !== 'consumer') {
      await server.end('SIGKILL')
      await server.start()
    }
    // While nobody answers, values wait.
    feed.send(VALUES)
    if (killed !== 'server') await startConsumer()
    await eventually(() => expect(handled()).toHaveLength(feed.sent))
    const values = handled().map((line) => Number(line.split(' ')[1]))
    expect(values).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
    await until(channel, ({ accepted, committed }) => accepted === committed)
  }
  const ids = handled().map((line) => line.split(' ')[0])
  expect(new Set(ids).size).toBe(ids.length)
})
