/** The producers that an upstream consumes, as they are known here. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, it, vi } from 'vitest'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { networkOf } from '../../../support/memory-network.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { separateStore } from '../../../support/separate-store.ts'
import { Tree } from '../../../support/tree.ts'

const PASSWORD = 'the-password-of-the-uppermost'

let tree: Tree
/** A server that consumes the upper one of the tree. */
let top: TestProducer | undefined
const directory = mkdtempSync(join(tmpdir(), 'cinnabar-below-'))
afterEach(async () => {
  vi.restoreAllMocks()
  await top?.stop()
  top = undefined
  await tree.stop()
})
afterAll(() => rmSync(directory, { recursive: true }))

async function startTop(): Promise<TestProducer> {
  const secretFile = join(directory, 'secret')
  writeFileSync(secretFile, PASSWORD)
  await tree.upper.addUser('main', { role: 'consumer', password: PASSWORD })
  const limits = { intervalMs: 60_000, maxSeries: 1000, valuesPerSecond: 0 }
  const table = { name: 'main', url: 'tcp://upper', tenant: 'default', metrics: ['*'], controls: [], user: 'main' }
  return TestProducer.start({
    clock: tree.upper.clock,
    store: await separateStore('top'),
    config: { upstream: [{ ...table, ...limits, secretFile }] } as never,
    connect: networkOf({ upper: () => tree.upper.accept() }),
  })
}

/** The channel of the uppermost server at the upper one. */
async function channelOfTop(): Promise<Json> {
  const main = await tree.upper.seat('main')
  const channels = decoded(await main.query('producer.channels')) as Json[]
  main.peer.destroy()
  return channels.find(({ name }) => String(name).startsWith('upstream:'))
}

/** The names of all producers that the upper server may be asked for. */
function names(): string[] {
  const { sensors } = tree.upper.server.parts.hub
  return sensors.flatMap((one) => (one.polled === 'remote' ? [...one.producers()] : [])).map(({ name }) => name)
}

it('have changed when one has the ids and the name that two had together', async () => {
  tree = await Tree.start()
  await tree.connected()
  const { server } = tree.lower
  let changes = 1
  let below = [
    { id: 'x', name: 'a' },
    { id: 'y', name: 'b' },
  ]
  Object.defineProperties(server.parts.producer.self, {
    below: { value: () => below },
    changes: { get: () => changes },
  })
  server.sessions.sweep()
  await tree.until(() => expect(names()).toEqual(['east', 'east/a', 'east/b']))
  below = [{ id: 'x,b,y', name: 'a' }]
  changes++
  server.sessions.sweep()
  await tree.until(() => expect(names()).toEqual(['east', 'east/a']))
})

it('are followed before what is bound of them is compared, though the other connection learned of them first', async () => {
  tree = await Tree.start()
  await tree.connected()
  top = await startTop()
  let seat = await top.seat('watcher')
  const { channel } = seat
  const ofAll = args(['producer', type.string, str('main/*')], ['host', type.string, str('h1')])
  tree.lower.emit(6)
  await tree.until(async () => expect(decoded(await seat.query('test.a', ofAll))).toHaveLength(1))
  const id = await seat.collect('test.a', ofAll)
  await seat.ok((seq) => command.subscribe(seq, id, 0))
  await tree.bound(1)
  tree.lower.emit(7)
  await tree.until(async () => expect(await channelOfTop()).toMatchObject({ accepted: 1, committed: 1, bound: 1 }))
  const { bindings } = await channelOfTop()
  // A server that has much to do follows them later.
  let follow = (): void => {}
  const isTime = new Promise<void>((resolve) => {
    follow = resolve
  })
  const { producersChanged } = Hub.prototype
  vi.spyOn(Hub.prototype, 'producersChanged').mockImplementation(async function (this: Hub, sensor) {
    await isTime
    await producersChanged.call(this, sensor)
  })
  top = await tree.inTime(top.restart())
  await tree.until(() => {})
  tree.lower.emit(8)
  follow()
  seat = await top.seat('watcher')
  await seat.setChannel(channel)
  const values = await tree.inTime(seat.values(2))
  expect(values.map((value) => decoded(value).value)).toEqual([7, 8])
  expect((await channelOfTop()).bindings).toEqual(bindings)
})

it('are followed by the next connection if that has failed', async () => {
  tree = await Tree.start()
  await tree.connected()
  const { producersChanged } = Hub.prototype
  let calls = 0
  vi.spyOn(Hub.prototype, 'producersChanged').mockImplementation(async function (this: Hub, sensor) {
    // The first is that the upstream is there at all.
    if (calls++ === 1) throw new Error('a fault of the server')
    await producersChanged.call(this, sensor)
  })
  top = await startTop()
  const seat = await top.seat('watcher')
  const ofAll = args(['producer', type.string, str('main/*')], ['host', type.string, str('h1')])
  tree.lower.emit(6)
  await tree.until(async () => expect(decoded(await seat.query('test.a', ofAll))).toHaveLength(1))
  expect(calls).toBe(3)
})
