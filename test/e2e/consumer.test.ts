/** A consumer of a few lines, and a server that is killed again and again under it: nothing is lost, nothing comes twice. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { compiled } from '../support/compiled.ts'
import { CounterFeed } from '../support/counter-feed.ts'
import { freePort } from '../support/free-port.ts'
import { times } from '../support/long.ts'
import { ledgerWhen } from '../support/records.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const KILLS = times({ short: 2, long: 8 })
const VALUES = 150

let server: ServerProcess
let child: ChildProcess | undefined
let udpPort: number
let tcpPort: number

beforeEach(async () => {
  udpPort = await freePort()
  tcpPort = await freePort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`, { tcp: tcpPort })
  await server.start()
})
afterEach(async () => {
  child?.kill('SIGKILL')
  await server.remove()
})

it(`survives ${KILLS} kills of the server with every stored value handled once`, { timeout: 180_000 }, async () => {
  const file = join(server.directory, 'handled.txt')
  child = spawn(process.execPath, [compiled('test/e2e/consumers/counter.ts'), `tcp://127.0.0.1:${tcpPort}`, file], {
    env: { ...process.env, CINNABAR_PASSWORD: PASSWORD },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  const channel = Number(printed)
  const feed = new CounterFeed(udpPort)

  for (let kill = 0; kill < KILLS; kill++) {
    feed.send(VALUES)
    // All that was sent is stored before the kill; how much of it was handled and committed is left to chance.
    const { peer } = await server.login()
    await ledgerWhen(peer, channel, ({ accepted, unstored }) => accepted >= feed.sent && unstored === 0)
    await server.end('SIGKILL')
    await server.start()
  }

  const { peer } = await server.login()
  await ledgerWhen(peer, channel, ({ committed }) => committed >= feed.sent)
  const handled = readFileSync(file, 'utf8').trimEnd().split('\n').map(Number)
  expect(handled).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
  feed.close()
})
