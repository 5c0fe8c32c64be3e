/** The listeners for consumers are ready together. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { openListeners } from '../../../server/edge/listen.ts'
import { QueryOutcomes } from '../../../server/edge/query/outcomes.ts'
import { QueryThread } from '../../../server/edge/query/thread/query-thread.ts'
import { QueryTurns } from '../../../server/edge/query/turns.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { defaultConfig } from '../../../server/start/config.ts'
import { freePort } from '../../support/free-port.ts'
import { TestProducer } from '../../support/producer.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Opens HTTP and then TCP at this port, and resolves when that succeeds or fails, with the port of HTTP. */
async function open(tcpPort: number): Promise<number> {
  const producer = await TestProducer.start()
  ends.push(() => producer.stop())
  const { parts, sessions } = producer.server
  const config = defaultConfig()
  const host = '127.0.0.1'
  const port = await freePort()
  const listen = { tcp: { host, port: tcpPort }, tls: undefined, http: { host, port }, https: undefined }
  const opening = openListeners({
    config: { listen, producer: config.producer },
    http: () => config.http,
    metrics: () => config.metrics,
    query: () => config.query,
    turns: new QueryTurns(1, producer.clock),
    thread: new QueryThread(producer.clock),
    outcomes: new QueryOutcomes({ log: createLogger('silent'), clock: producer.clock, slowMs: () => 0 }),
    remembered: undefined,
    rules: [],
    acknowledging: undefined,
    tls: undefined,
    sessions,
    context: parts.producer,
    doors: [],
    clock: producer.clock,
    log: createLogger('silent'),
    storage: parts.storage,
    openFiles: parts.producer.openFiles,
    opened: (end) => ends.push(end),
  })
  await opening.catch(({ name }) => expect(name).toBe('ListenError'))
  return port
}

const readiness = async (port: number) => {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`)
  return [response.status, await response.json()]
}

test('/readyz is 200 when the port of the Monitoring Protocol takes connections, and not before', async () => {
  expect(await readiness(await open(0))).toEqual([200, { status: 'ready' }])
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  ends.push(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const reason = 'starting: not all listeners are open yet'
  expect(await readiness(await open(port))).toEqual([503, { status: 'not ready', reason }])
})
