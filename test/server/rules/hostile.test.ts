import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { command, frame, join, status, str, u32 } from '../../support/bytes.ts'
import { DeafPeer } from '../../support/deaf-peer.ts'
import { times } from '../../support/long.ts'
import { TestProducer } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'
import { atH1 } from '../../support/seat.ts'

let producer: TestProducer
beforeAll(async () => {
  producer = await TestProducer.start()
})
afterAll(() => producer.stop())

const KIB = 1_024
const MIB = 1_024 * KIB

describe('random frames', () => {
  const body = fc.uint8Array({ maxLength: 50 }).map((bytes) => join(bytes, new Uint8Array(-bytes.length & 3)))
  const code = fc.oneof({ weight: 6, arbitrary: fc.nat(15) }, fc.integer({ min: 0, max: 0xffffffff }))
  const ids = fc.constantFrom(0, 1, 7, 0x7fffffff, 0xffffffff).map(u32)
  const fields = fc.oneof(
    body,
    fc.tuple(ids, ids).map((pair) => join(...pair)),
    ids,
  )
  const frames = fc.array(fc.tuple(code, fields), { minLength: 1, maxLength: 40 }).map((list) => {
    return list.map(([cmd, rest], seq) => frame(u32(cmd), u32(seq), rest))
  })

  /** Each was answered once, in any order, or the connection was closed and no more than that. */
  async function expectAnswered(peer: RawPeer, count: number): Promise<void> {
    const seen = new Map<number, number>()
    while (seen.size < count) {
      const message = await peer.next()
      if (message.kind === 'closed') break
      if (message.kind !== 'response' || message.seq >= 0xfff00000) continue
      seen.set(message.seq, (seen.get(message.seq) ?? 0) + 1)
      expect(message.status).not.toBe(status.INTERNAL)
    }
    await producer.settle()
    expect([...seen.values()].every((times) => times === 1)).toBe(true)
    expect(peer.pending().filter(({ kind }) => kind === 'response')).toEqual([])
    expect(peer.closed || seen.size === count).toBe(true)
    peer.destroy()
  }

  it('before AUTH get one response each, or a close', async () => {
    await fc.assert(
      fc.asyncProperty(frames, async (list) => {
        const peer = producer.connect()
        peer.send(...list)
        await expectAnswered(peer, list.length)
      }),
      { numRuns: times({ short: 50, long: 100 }) },
    )
  })

  it('after AUTH get one response each, or a close', async () => {
    await fc.assert(
      fc.asyncProperty(frames, async (list) => {
        const { peer } = await producer.login()
        peer.send(...list)
        await expectAnswered(peer, list.length)
      }),
      { numRuns: times({ short: 50, long: 100 }) },
    )
  })

  it('that are no frames at all do no harm to others', async () => {
    const other = await producer.seat('other')
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 500 }), fc.boolean(), async (bytes, authenticated) => {
        const peer = authenticated ? (await producer.login()).peer : producer.connect()
        peer.send(bytes)
        await producer.settle()
        peer.destroy()
        expect(await other.ok((seq) => command.nop(seq))).toBe(0)
      }),
      { numRuns: times({ short: 40, long: 80 }) },
    )
    expect(producer.logged.filter((line) => line.includes('a command failed'))).toEqual([])
  })
})

const repeated = (bytes: Uint8Array, length = 64 * KIB) =>
  join(...new Array<Uint8Array>(Math.floor(length / bytes.length)).fill(bytes))

describe('a peer that never reads', () => {
  const deaf = () => DeafPeer.login(producer, 'admin', 'admin-password')

  it.each<[string, Uint8Array]>([
    ['NOPs', command.nop(1)],
    ['commands that do not exist', command.unknown(1, 99)],
    ['commands that do not decode', frame(u32(1), u32(1))],
  ])('and sends %s makes the server hold 1 MiB and what one chunk causes', async (_, bytes) => {
    const peer = await deaf()
    expect(await peer.flood(() => repeated(bytes), 1_000)).toBeLessThan(100)
    expect(peer.waiting).toBeGreaterThan(MIB)
    expect(peer.waiting).toBeLessThan(2 * MIB)
    peer.destroy()
  })

  it('makes the server hold 64 KiB and what one chunk causes before AUTH, for 10 s', async () => {
    const peer = new DeafPeer(producer)
    expect(await peer.flood(() => repeated(command.nop(1), 4 * KIB), 100)).toBeLessThan(20)
    expect(peer.waiting).toBeGreaterThan(64 * KIB)
    expect(peer.waiting).toBeLessThan(80 * KIB)
    producer.clock.advance(9_999)
    expect(peer.ended).toBe(false)
    producer.clock.advance(1)
    expect(peer.destroyed).toBe(true)
  })

  it('and sends QUERYs makes the server hold 1 MiB and the answers of one turn', async () => {
    const peer = await deaf()
    const bytes = command.query(1, 'producer.metrics')
    expect(await peer.flood(() => repeated(bytes), 100)).toBeLessThan(2)
    expect(peer.waiting).toBeGreaterThan(MIB)
    expect(peer.waiting).toBeLessThan(4 * MIB)
    peer.destroy()
  })

  it('is given 256 KiB of values, and its commands go on being read', async () => {
    const peer = await deaf()
    const metric = await peer.ask(command.collect(2, 'test.flood', atH1))
    peer.send(command.subscribe(3, metric))
    await producer.settle()
    const before = peer.waiting
    for (let value = 0; value < 50_000; value++) producer.emit(value, 'test.flood')
    await producer.settle()
    expect(peer.waiting - before).toBeGreaterThan(200 * KIB)
    expect(peer.waiting - before).toBeLessThan(257 * KIB)
    expect(await peer.flood(() => repeated(command.nop(4), 1_200), 100)).toBe(100)
    peer.destroy()
  })

  it('is given no more by leaving the channel and taking it again', async () => {
    const peer = await deaf()
    const metric = await peer.ask(command.collect(2, 'test.flood', atH1))
    const [one, two] = [await peer.ask(command.defChannel(3)), await peer.ask(command.defChannel(4))]
    peer.send(command.subscribe(5, metric, one), command.subscribe(6, metric, two))
    await producer.settle()
    for (let value = 0; value < 50_000; value++) producer.emit(value, 'test.flood')
    await producer.settle()
    for (let round = 0; round < 50; round++) {
      peer.send(command.setChannel(7, one))
      await producer.settle()
      peer.send(command.setChannel(8, two))
      await producer.settle()
    }
    expect(peer.waiting).toBeGreaterThan(200 * KIB)
    expect(peer.waiting).toBeLessThan(300 * KIB)
    peer.send(command.delChannel(9, one), command.delChannel(10, two))
    peer.destroy()
  })

  it('cannot be made to hold more by another connection of its identity', async () => {
    const [peer, other] = [await deaf(), await producer.connect()]
    const channel = peer.result
    other.send(command.auth(1, 'password', join(str('admin'), str('admin-password'))))
    await other.response(1)
    other.send(command.collect(2, 'producer.metrics'))
    const { result } = await other.response(2)
    const statuses = new Set<number>()
    for (let seq = 3; seq < 2_000; seq++) {
      other.send(command.get(seq, result, channel))
      statuses.add((await other.response(seq)).status)
    }
    expect([...statuses]).toEqual([status.OK, status.BUSY])
    expect(peer.waiting).toBeLessThan(4 * MIB)
    peer.destroy()
  })
})

describe('what waits for a measurement', () => {
  it('is bounded: 65,536 of one identity, beyond that BUSY', async () => {
    const seat = await producer.seat('waiting')
    const query = (seq: number) => command.query(seq, 'slow.value')
    const { accounts, instances, measurements } = producer.server.parts.producer
    const account = accounts.list().find(({ name }) => name === 'waiting')
    const selection = finish(instances.select(accounts.identity(account!), 'slow.value', []))
    // Most of them wait as if a QUERY had asked; in the long form all are QUERYs.
    const others = times({ short: 60_000, long: 0 })
    for (let other = 0; other < others; other++) measurements.begin(selection)
    const count = 70_000 - others
    const room = 65_536 - others
    seat.peer.send(...Array.from({ length: count }, (_, seq) => query(seq)))
    const found = new Map<number, number>()
    for (let seq = 0; seq < count; seq++) {
      const { status: one } = await seat.peer.until('response')
      found.set(one, (found.get(one) ?? 0) + 1)
    }
    expect(Object.fromEntries(found)).toEqual({ [status.OK]: room, [status.BUSY]: count - room })
    for (const answer of producer.slow.asked.splice(0)) answer({ value: { type: 2, value: 1 }, time: 1 })
    expect(await seat.values(room)).toHaveLength(room)
    expect(await seat.ask((seq) => query(seq))).toMatchObject({ status: status.OK })
  })
})

describe('COLLECT and STOP without end', () => {
  it('leave nothing behind', async () => {
    const seat = await producer.seat('churn')
    for (let round = 0; round < 100; round++) {
      const id = await seat.collect('test.a')
      await seat.ok((seq) => command.stop(seq, id))
    }
    const { producer: parts } = producer.server.parts
    const user = parts.accounts.find('default', 'churn')?.id ?? 0
    expect(parts.instances.of(user)).toEqual([])
    const [session] = [...parts.registry.of(user)].map((channel) => channel.connection)
    expect(session).toMatchObject({ unboundInstances: new Set() })
    await seat.follow('test.a')
    expect(session).toMatchObject({ unboundInstances: new Set() })
  })
})
