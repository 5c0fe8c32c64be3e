/**
 * What is bound at an upstream is stored here before it is bound there [MON 9.13], and compared with what is bound there at each
 * connection: whatever became of it meanwhile, nothing is lost or repeated without a report.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Metric, PolledSensor } from '../../../../server/kernel/metrics/metric.ts'
import type { UpstreamBindingRow } from '../../../../storage/store.ts'
import { isValue } from '../../../conformance/mutations.ts'
import { done } from '../../../support/administration.ts'
import { args, command, str, type, u32 } from '../../../support/bytes.ts'
import { EPOCH } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { Tree, type TreeOptions } from '../../../support/tree.ts'

const [COLLECT, SUBSCRIBE] = [1, 3]
const [PURGED, REPLACED] = [4, 9]

let tree: Tree
let seat: Seat
afterEach(() => tree.stop())

async function begin(options: TreeOptions = {}): Promise<void> {
  tree = await Tree.start(options)
  await tree.connected()
  seat = await tree.upper.seat('watcher')
}

type Argument = readonly [name: string, type: number, value: Uint8Array]
const of = (text: string): Argument => ['producer', type.string, str(text)]
const h1: Argument = ['host', type.string, str('h1')]

async function follow(metric = 'test.a', ...more: readonly Argument[]): Promise<number> {
  const id = await seat.collect(metric, args(of('east'), ...(more.length === 0 ? [h1] : more)))
  await seat.ok((seq) => command.subscribe(seq, id, 0))
  return id
}

/** Takes the channel up again at the upper server, which has begun again. */
async function again(): Promise<void> {
  const { channel } = seat
  seat = await tree.upper.seat('watcher')
  await seat.setChannel(channel)
}

const numbers = async (count: number): Promise<unknown[]> =>
  (await tree.inTime(seat.values(count))).map((value) => decoded(value))
const gap = () => tree.inTime(seat.gap())

/** The rows that the upper server has on its disk. */
async function rows(): Promise<readonly UpstreamBindingRow[]> {
  const copy = tree.upper.store.copy()
  const { upstreamBindings } = await copy.open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })
  return upstreamBindings
}

/** The ids that the channel at the lower server binds. */
const idsBelow = async (): Promise<number[]> => ((await tree.below()).bindings as Json[]).map(({ metric }) => metric)

/** How many commands of one number the lower server has got, but for the changes of its catalogue. */
const sent = (number: number, of: string): number =>
  tree.commands.filter((frame) => frame.readUInt32BE(4) === number && frame.includes(Buffer.from(of, 'hex'))).length

/** Everything of the upper server is on its disk, and committed below. */
const drained = (count: number) =>
  tree.until(async () => expect(await tree.below()).toMatchObject({ committed: count, in_flight: 0, queued: 0 }))

/** Somebody with the rights of the upper server does something below, with the channel that it empties. */
async function asMain(act: (main: Seat, channel: number) => Promise<unknown>): Promise<void> {
  const main = await tree.lower.seat('main')
  const { channel } = (await tree.below()) as { readonly channel: number }
  await act(main, channel)
  main.peer.destroy()
}

/** The upper server ends, something happens, and it begins again. */
async function whileAway(act: () => Promise<void>): Promise<void> {
  const { store } = tree.upper
  const open = store.open.bind(store)
  store.open = async (events) => {
    store.open = open
    await act()
    return open(events)
  }
  await tree.restartUpper()
}

/** Values wait at the lower server: the upper one does not store what comes, and then dies. */
async function dieWhile(act: () => void | Promise<void>): Promise<void> {
  tree.upper.store.manual = true
  await act()
  await tree.crashUpper()
  await again()
}

describe('a binding at an upstream', () => {
  it('is on the disk here, with its id there, before SUBSCRIBE is sent', async () => {
    await begin()
    await tree.inTime(follow('test.b'))
    await tree.bound(1)
    const before = await rows()
    tree.upper.store.manual = true
    const id = await seat.collect('test.a', args(of('east'), h1))
    seat.send((seq) => command.subscribe(seq, id, 0))
    await tree.until(() => expect(sent(COLLECT, Buffer.from('test.a').toString('hex'))).toBe(1))
    const subscribed = sent(SUBSCRIBE, '')
    for (let turn = 0; turn < 20; turn++) await tree.upper.settle()
    expect([sent(SUBSCRIBE, ''), await rows()]).toEqual([subscribed, before])
    tree.upper.store.manual = false
    tree.upper.store.complete()
    await tree.bound(2)
    const { channel } = await tree.below()
    const ids = await idsBelow()
    const [row] = (await rows()).filter(({ selection }) => selection === '["test.a",["host","h1"]]')
    expect(row).toEqual({
      upstream: 'default/east',
      generation: 'first',
      channel,
      metric: ids.find((id) => id !== before[0]?.metric),
      selection: '["test.a",["host","h1"]]',
    })
  })

  it('is stored no more when nobody wants it', async () => {
    await begin()
    const id = await follow()
    await tree.bound(1)
    await seat.ok((seq) => command.stop(seq, id, 0))
    await tree.bound(0)
    await tree.until(async () => expect(await rows()).toEqual([]))
  })

  it('of a channel that is not durable is not stored', async () => {
    await begin()
    await seat.execute('channel.configure', ['channel', type.uint32, u32(0)], ['durable', type.boolean, u32(0)])
    await follow()
    await tree.boundLive(1)
    expect(await rows()).toEqual([])
  })

  it('waits for a disk that is full, and keeps nobody from stopping', async () => {
    await begin()
    await follow('test.b')
    await tree.bound(1)
    tree.upper.store.full = true
    const id = await seat.collect('test.a', args(of('east'), h1))
    seat.send((seq) => command.subscribe(seq, id, 0))
    await tree.until(() => expect(sent(COLLECT, Buffer.from('test.a').toString('hex'))).toBe(1))
    await tree.inTime(tree.upper.stop())
    tree.upper.store.full = false
    expect(await idsBelow()).toHaveLength(1)
    tree.upper = await tree.upper.restart()
  })

  it('is known by its id: the upstream may have added arguments, as a cluster does', async () => {
    let measured = 0
    const load: Metric = {
      name: 'node.load',
      kind: 'continuous',
      type: BasicType.UINT32,
      unit: '',
      description: '',
      parameters: [{ name: 'host', type: BasicType.STRING, description: '', selects: 'own' }],
    }
    const sensor: PolledSensor = {
      polled: true,
      family: 'node.',
      owner: 'producer',
      personal: false,
      node: 'node-a',
      metrics: () => [load],
      metric: (name) => (name === load.name ? load : undefined),
      labels: ({ name }) => ({ name, host: 'node-a' }),
      check() {},
      measure: () => ({ value: { type: BasicType.UINT32, value: ++measured }, time: EPOCH + measured }),
    }
    await begin()
    tree.lower.server.parts.hub.add(sensor)
    await follow('node.load', ['interval_ms', type.uint32, u32(1000)])
    await tree.bound(1)
    const ids = await idsBelow()
    const there = tree.lower.server.parts.producer.instances.all()
    const [selection] = [...there].map(({ selection }) => selection).filter(({ name }) => name === load.name)
    expect(selection?.args).toContainEqual({ name: 'host', type: type.string, value: 'node-a' })
    await dieWhile(() => tree.until(() => expect(measured).toBeGreaterThan(5)))
    const values = await numbers(measured)
    expect(values).toEqual(values.map((_, index) => index + 1))
    expect(await idsBelow()).toEqual(ids)
  })

  it('of which there are more than one frame lists is taken over all the same', async () => {
    await begin()
    const ids: number[] = []
    for (let i = 0; i < 300; i++) {
      ids.push(await follow('test.a', ['host', type.string, str(`${'h'.repeat(4_000)}${i}`)]))
    }
    await tree.bound(300)
    const before = await rows()
    await tree.restartUpper()
    await tree.connected()
    await tree.until(async () => expect(await tree.below()).toMatchObject({ bound: 300, state: 'connected' }))
    expect(await rows()).toEqual(before)
    expect(sent(COLLECT, Buffer.from('hhhh').toString('hex'))).toBe(300)
  })
})

describe('what was bound and is not any more', () => {
  it.each([
    ['this server was connected', false],
    ['this server was away', true],
  ])('is reported and bound anew if somebody has stopped it while %s', async (_, isAway) => {
    await begin()
    const id = await follow()
    await tree.bound(1)
    tree.lower.emit(1)
    expect(await numbers(1)).toEqual([1])
    await drained(1)
    const [metric = 0] = await idsBelow()
    const stop = async (): Promise<void> => {
      await asMain((main, channel) => main.ok((seq) => command.stop(seq, metric, channel)))
      tree.lower.emit(2)
    }
    if (isAway) {
      await whileAway(stop)
      await again()
    } else {
      await stop()
      await tree.restartLower()
    }
    await tree.bound(1)
    expect(await gap()).toMatchObject({ metric: id, reason: PURGED, count: 0 })
    tree.lower.emit(3)
    // The first one has no COMMIT yet, and so comes again.
    expect(await numbers(isAway ? 2 : 1)).toEqual(isAway ? [1, 3] : [3])
  })

  it('is reported once', async () => {
    await begin()
    await follow()
    await tree.bound(1)
    const [metric = 0] = await idsBelow()
    await asMain((main, channel) => main.ok((seq) => command.stop(seq, metric, channel)))
    await tree.restartLower()
    await tree.bound(1)
    await gap()
    await tree.crashUpper()
    await again()
    await tree.connected()
    await tree.restartLower()
    await tree.bound(1)
    tree.lower.emit(1)
    await numbers(1)
    expect(seat.rest().filter((message) => message.kind === 'gap' && message.reason === PURGED)).toHaveLength(1)
  })

  it('is reported if its right is withdrawn, and comes again when it is given back', async () => {
    await begin({ role: 'relay' })
    const id = await follow()
    await tree.bound(1)
    await tree.lower.addUser('root', { role: 'admin' })
    const root = await tree.lower.seat('root')
    const rule = { role: 'relay', command: 'COLLECT', object: 'test.a' }
    const denied: number = await done(root, 'role.deny', rule)
    tree.lower.emit(1)
    expect(await gap()).toMatchObject({ metric: id, reason: PURGED, count: 0 })
    await tree.until(async () => expect((await tree.state()).detail).toContain('test.a'))
    await done(root, 'role.forget', { rule: denied })
    // It asks again when it reads the catalogue.
    tree.lower.emit(2, 'test.new')
    for (let second = 1; second <= 5; second++) {
      tree.upper.clock.advance(1_000)
      await tree.upper.settle()
    }
    await tree.bound(1)
    tree.lower.emit(2)
    expect((await numbers(1)).at(-1)).toBe(2)
    root.peer.destroy()
  })

  it('is reported if its channel was deleted by its owner', async () => {
    await begin()
    const id = await follow()
    await tree.bound(1)
    await asMain((main, channel) => main.ok((seq) => command.delChannel(seq, channel)))
    expect(await gap()).toMatchObject({ metric: id, reason: PURGED, count: 0 })
    await tree.bound(1)
    tree.lower.emit(3)
    expect(await numbers(1)).toEqual([3])
  })

  it('is reported if its id stands for something else, which is stopped', async () => {
    let lies = false
    const other = (frame: Buffer): readonly Buffer[] => {
      if (lies && isValue(frame) && frame.includes('arguments')) {
        for (let at = frame.indexOf('test.a'); at >= 0; at = frame.indexOf('test.a', at + 1)) frame.write('test.b', at)
      }
      return [frame]
    }
    await begin({ mutation: () => other })
    const id = await follow()
    await tree.bound(1)
    const before = await idsBelow()
    lies = true
    await tree.restartLower()
    expect(await gap()).toMatchObject({ metric: id, reason: PURGED, count: 0 })
    await tree.until(async () => expect(await tree.below()).toMatchObject({ bound: 1 }))
    expect(await idsBelow()).not.toEqual(before)
  })

  it('is reported when an upstream has its old name again, after another has used its channel', async () => {
    await begin()
    const id = await follow()
    await tree.bound(1)
    tree.consume('west')
    await tree.until(() => expect(sent(SUBSCRIBE, '')).toBeGreaterThan(0))
    await tree.inTime(seat.query('producer.stats'))
    const west = await seat.collect('test.b', args(of('west'), h1))
    await seat.ok((seq) => command.subscribe(seq, west, 0))
    await tree.until(async () => expect((await tree.below()).bindings).toMatchObject([{ name: 'test.b' }]))
    tree.consume('east')
    expect(await gap()).toMatchObject({ metric: id, reason: PURGED, count: 0 })
    await tree.until(async () => expect((await tree.below()).bindings).toMatchObject([{ name: 'test.a' }]))
  })
})

describe('what is bound there and not known here', () => {
  it('is stopped', async () => {
    await begin()
    await follow()
    await tree.bound(1)
    const before = await idsBelow()
    await asMain(async (main, channel) => {
      const id = await main.collect('test.b')
      await main.ok((seq) => command.subscribe(seq, id, channel))
    })
    await tree.bound(2)
    await tree.restartLower()
    await tree.until(async () => expect(await idsBelow()).toEqual(before))
  })

  it('of a restored upstream is stopped: what waits there may have come before', async () => {
    await begin()
    const id = await follow()
    await tree.bound(1)
    tree.upper.store.manual = true
    for (const value of [1, 2]) tree.lower.emit(value)
    await tree.until(async () => expect(await tree.below()).toMatchObject({ in_flight: 2 }))
    const backup = tree.lower.store.copy()
    tree.upper.store.manual = false
    tree.upper.store.complete()
    expect(await numbers(2)).toEqual([1, 2])
    await drained(2)
    await tree.restoreLower(backup)
    expect(await gap()).toMatchObject({ metric: id, reason: REPLACED, count: 0 })
    await tree.bound(1)
    tree.lower.emit(3)
    expect(await numbers(1)).toEqual([3])
  })

  it('is taken over by what it selects if this server has stored no bindings yet, as before format 14', async () => {
    await begin()
    await follow()
    await tree.bound(1)
    const ids = await idsBelow()
    await dieWhile(async () => {
      for (const value of [1, 2]) tree.lower.emit(value)
      const crash = tree.upper.store.crash.bind(tree.upper.store)
      tree.upper.store.crash = () => {
        const survivor = crash()
        const open = survivor.open.bind(survivor)
        survivor.open = async (events) => ({ ...(await open(events)), upstreamBindings: [] })
        return survivor
      }
    })
    expect(await numbers(2)).toEqual([1, 2])
    expect(await idsBelow()).toEqual(ids)
    await tree.until(async () => expect((await rows()).map(({ metric }) => metric)).toEqual(ids))
  })
})

describe('an upstream that does not say what it binds', () => {
  const refuse = async (): Promise<void> => {
    await begin({ role: 'relay' })
    await tree.lower.addUser('root', { role: 'admin' })
    const root = await tree.lower.seat('root')
    await done(root, 'role.deny', { role: 'relay', command: 'COLLECT', object: 'producer.bindings' })
    root.peer.destroy()
  }

  it('is believed to bind what is stored here', async () => {
    await refuse()
    await follow()
    await tree.bound(1)
    const ids = await idsBelow()
    await dieWhile(() => {
      for (const value of [1, 2]) tree.lower.emit(value)
    })
    expect(await numbers(2)).toEqual([1, 2])
    expect(await idsBelow()).toEqual(ids)
  })

  it('says when that is tried whether it does', async () => {
    await refuse()
    const id = await follow()
    await tree.bound(1)
    const [metric = 0] = await idsBelow()
    await asMain((main, channel) => main.ok((seq) => command.stop(seq, metric, channel)))
    await tree.restartLower()
    expect(await gap()).toMatchObject({ metric: id, reason: PURGED, count: 0 })
    await tree.bound(1)
    tree.lower.emit(3)
    expect(await numbers(1)).toEqual([3])
  })
})
