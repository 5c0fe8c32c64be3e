/** A consumer whose connection is cut again and again, at any byte in either direction: every value is handled once. */

import { afterEach, beforeEach, expect, it } from 'vitest'
import type { ClientClock } from '../../client/clock.ts'
import { streamTransport } from '../../client/dial/stream.ts'
import { connect, type Handler, type Sample } from '../../client/index.ts'
import { type Fault, TcpProxy } from '../chaos/proxy.ts'
import { CounterFeed } from '../support/counter-feed.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { ledgerWhen } from '../support/records.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const CUTS = 8
const GROUP = 50
/** What waits is sent again on every connection: more than some of them let through. */
const MAX_WAITING = 200
const SEED = 20_261_121

let server: ServerProcess
let proxy: TcpProxy
let feed: CounterFeed

beforeEach(async () => {
  const udpPort = await freePort()
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${udpPort}"\n`)
  await server.start()
  proxy = await TcpProxy.open(server.tcpPort)
  feed = new CounterFeed(udpPort)
})
afterEach(async () => {
  feed.close()
  await proxy.close()
  await server.remove()
})

/** Every connection seems to have lasted: the next one is not waited for longer and longer. */
const clock: ClientClock = {
  monotonicMs: () => performance.now() * 1000,
  setTimeout(callback, delayMs) {
    const timer = setTimeout(callback, delayMs)
    return { cancel: () => clearTimeout(timer) }
  },
}

it.each(['handler', 'async handler', 'loop'])('with a %s', { timeout: 120_000 }, async (taking) => {
  const random = new Random(SEED)
  let dialled = 0
  const fault = (): Fault => {
    const direction = random.pick(['up', 'down'] as const)
    // The first has to be let in. For the others the login, taking the channel up, and what comes then; up that is little.
    const most = direction === 'up' ? 1_000 : 15_000
    return { direction, after: dialled === 1 ? 5_000 : 700 + random.below(most), how: random.pick(['cut', 'reset']) }
  }
  const dial = async () => {
    dialled++
    const handling = dialled <= CUTS ? { fault: fault() } : {}
    const { client } = await proxy.connect(handling)
    return streamTransport(client, { loopback: true, encrypted: false })
  }
  const consumer = await connect('tcp://127.0.0.1', { identity: 'admin', password: PASSWORD }, { dial, clock })
  const handled: number[] = []
  const take = ({ number = Number.NaN }: Sample) => handled.push(number)
  const takeLater: Handler = (sample) => new Promise((resolve) => setImmediate(() => resolve(take(sample))))
  const handlers: Record<string, Handler> = { handler: take, 'async handler': takeLater }
  await consumer.follow('gmetric.counter', {}, handlers[taking])
  const running = handlers[taking] ? consumer.run() : loop()
  async function loop() {
    for await (const sample of consumer) take(sample)
  }

  const { peer } = await server.login()
  while (dialled <= CUTS) {
    feed.send(GROUP)
    await ledgerWhen(peer, consumer.channel, ({ accepted, queued, in_flight }) => {
      return accepted >= feed.sent && (queued + in_flight < MAX_WAITING || dialled > CUTS)
    })
  }
  await ledgerWhen(peer, consumer.channel, ({ committed }) => committed >= feed.sent)
  expect(handled).toEqual(Array.from({ length: feed.sent }, (_, number) => number))
  expect(dialled).toBeGreaterThan(CUTS)
  await consumer.close()
  await running
})
