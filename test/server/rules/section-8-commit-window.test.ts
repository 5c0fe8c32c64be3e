/** Section 8, COMMIT and Window: what may be committed, how much is sent ahead of it, and what stops the reading. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command, join, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { numberOf, type Seat, type ValueMessage } from '../../support/seat.ts'

const OK = 0
const NO_SUCH_TRANSACTION = 14
const WINDOW_FULL = 1

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(() => producer.stop())

/** A channel of the seat with these settings; it is the current one. */
async function configured(...settings: readonly (readonly [string, number, Uint8Array])[]): Promise<number> {
  const channel = await seat.defChannel(...settings)
  await seat.setChannel(channel)
  return channel
}

async function unread(kind: string, of = seat): Promise<unknown[]> {
  await producer.settle()
  return of.rest().filter((message) => message.kind === kind)
}

describe('COMMIT', () => {
  async function given(count: number): Promise<ValueMessage[]> {
    await seat.follow('test.a')
    for (let value = 0; value < count; value++) producer.emit(value)
    return seat.values(count)
  }

  it('of any id the channel has given is OK, also again, and counts once', async () => {
    const [first] = await given(2)
    for (let i = 0; i < 3; i++) expect((await seat.commit(first?.transaction ?? 0)).status).toBe(OK)
    expect(await seat.ledger()).toMatchObject({ committed: 1, in_flight: 1 })
  })

  it('out of order is fine', async () => {
    const values = await given(6)
    for (const index of [4, 1, 5, 0, 3]) {
      expect((await seat.commit(values[index]?.transaction ?? 0)).status).toBe(OK)
    }
    expect(await seat.ledger()).toMatchObject({ committed: 5, in_flight: 1 })
    seat.peer.destroy()
    await producer.settle()
    const next = await producer.seat()
    await next.setChannel(seat.channel)
    expect(numberOf(await next.value())).toBe(2)
    expect(await unread('value', next)).toEqual([])
  })

  it('0 is OK and does nothing, on a channel that has given nothing too', async () => {
    expect((await seat.commit(0)).status).toBe(OK)
    await given(1)
    expect((await seat.ask((seq) => command.commitThrough(seq, 0))).status).toBe(OK)
    expect(await seat.ledger()).toMatchObject({ committed: 0, in_flight: 1 })
  })

  it('of any other id is NO_SUCH_TRANSACTION: below the first, above the last, and beyond 2^53', async () => {
    const values = await given(2)
    const [first, last] = values.map(({ transaction }) => transaction) as [number, number]
    expect(first).toBeGreaterThanOrEqual(1)
    expect(first).toBeLessThanOrEqual(2 ** 52)
    for (const transaction of [1, first - 1, last + 1, 2 ** 53, 2 ** 63]) {
      expect((await seat.commit(transaction)).status).toBe(NO_SUCH_TRANSACTION)
    }
  })

  it('of another channel’s id is NO_SUCH_TRANSACTION, with the same words', async () => {
    const [value] = await given(1)
    const other = await producer.seat()
    await other.follow('test.b')
    producer.emit(1, 'test.b')
    await other.value()
    const refused = await other.commit(value?.transaction ?? 0)
    const unknown = await other.commit(1)
    expect(refused.status).toBe(NO_SUCH_TRANSACTION)
    expect(refused.detail).toBe(unknown.detail)
  })

  it('of an id whose value was stopped, purged or dropped is OK and changes no count', async () => {
    const values = await given(2)
    await seat.ok((seq) => command.stop(seq, values[0]?.metric ?? 0))
    for (const { transaction } of values) expect((await seat.commit(transaction)).status).toBe(OK)
    expect(await seat.ledger()).toMatchObject({ committed: 0, in_flight: 0, dropped: { stopped: 2 } })
  })

  describe('in runs, in one write', () => {
    /** Sends COMMITs of these seqs and ids together; gives seq and status of each response, those of the same status in order. */
    async function together(commits: readonly (readonly [number, number])[]): Promise<number[][]> {
      seat.peer.send(join(...commits.map(([seq, transaction]) => command.commit(seq, transaction))))
      const responses = (await unread('response')) as { seq: number; status: number }[]
      // What is refused need not wait for the disk.
      return responses.map(({ seq, status }) => [seq, status]).sort((one, other) => other[1]! - one[1]!)
    }

    it('is answered for each id by itself: those never given are refused where they stand', async () => {
      const values = await given(6)
      const first = values[0]!.transaction
      const commits = Array.from({ length: 10 }, (_, index) => [9_000 + index, first - 2 + index] as const)
      const refused = [9_000, 9_001, 9_008, 9_009].map((seq) => [seq, NO_SUCH_TRANSACTION])
      const taken = [9_002, 9_003, 9_004, 9_005, 9_006, 9_007].map((seq) => [seq, OK])
      expect(await together(commits)).toEqual([...refused, ...taken])
      expect(await together(commits)).toEqual([...refused, ...taken])
      expect(await seat.ledger()).toMatchObject({ committed: 6, in_flight: 0 })
    })

    it('is answered where seqs or ids do not follow each other, or begin anew', async () => {
      const values = await given(8)
      const ids = values.map(({ transaction }) => transaction) as [number, ...number[]]
      const seqs = [9_000, 9_001, 9_001, 9_003, 0xffff_fffe, 0xffff_ffff, 0, 1]
      const commits = seqs.map((seq, index) => [seq, ids[index]!] as const)
      expect(await together(commits)).toEqual(seqs.map((seq) => [seq, OK]))
      expect(await seat.ledger()).toMatchObject({ committed: 8, in_flight: 0 })
    })

    it('counts what was committed before once', async () => {
      const ids = (await given(8)).map(({ transaction }) => transaction)
      expect((await seat.commit(ids[2]!)).status).toBe(OK)
      expect(await together(ids.map((id, index) => [9_000 + index, id]))).toEqual(ids.map((_, n) => [9_000 + n, OK]))
      expect(await seat.ledger()).toMatchObject({ committed: 8, in_flight: 0 })
    })

    it('is answered beyond 2^53, where numbers are not exact', async () => {
      await given(1)
      const commits = [2 ** 53, 2 ** 53 + 2, 2 ** 53 + 4].map((id, index) => [9_000 + index, id] as const)
      expect(await together(commits)).toEqual(commits.map(([seq]) => [seq, NO_SUCH_TRANSACTION]))
    })

    it('is answered when it is stored, each in its place between other commands', async () => {
      const values = await given(3)
      await producer.settle()
      producer.store.manual = true
      const commits = values.map(({ transaction }, index) => command.commit(9_000 + index, transaction))
      seat.peer.send(join(...commits, command.nop(9_500), command.commit(9_003, values[0]!.transaction)))
      expect(await unread('response')).toMatchObject([{ seq: 9_500, status: OK }])
      producer.store.complete()
      const responses = (await unread('response')) as { seq: number }[]
      expect(responses.map(({ seq }) => seq)).toEqual([9_000, 9_001, 9_002, 9_003])
    })
  })

  it('is answered when it is stored, not before', async () => {
    const [value] = await given(1)
    await producer.settle()
    producer.store.manual = true
    const seq = seat.send((next) => command.commit(next, value?.transaction ?? 0))
    expect(await unread('response')).toEqual([])
    producer.store.complete()
    expect((await seat.response(seq)).status).toBe(OK)
  })
})

describe('Window', () => {
  it('at most `window` values are sent and not committed; a COMMIT opens it when it is read, before it is stored', async () => {
    await configured(['window', type.uint32, u32(2)])
    await seat.follow('test.a')
    for (const value of [1, 2, 3, 4]) producer.emit(value)
    const [first, second] = await seat.values(2)
    expect(await unread('value')).toEqual([])
    expect(await seat.ledger()).toMatchObject({ state: 'window-full', in_flight: 2, queued: 2 })
    producer.store.manual = true
    const seq = seat.send((next) => command.commit(next, second?.transaction ?? 0))
    expect(numberOf(await seat.value())).toBe(3)
    expect(await unread('response')).toEqual([])
    producer.store.complete()
    await seat.response(seq)
    producer.store.manual = false
    producer.store.complete()
    await seat.commit(first?.transaction ?? 0)
    expect(numberOf(await seat.value())).toBe(4)
  })

  it('at most `window_bytes` are; one value may always be', async () => {
    // A frame of such a value has 32 bytes.
    await configured(['window_bytes', type.uint32, u32(70)])
    await seat.follow('test.a')
    for (const value of [1, 2, 3]) producer.emit(value)
    const [first] = await seat.values(2)
    expect(await unread('value')).toEqual([])
    await seat.commit(first?.transaction ?? 0)
    expect(numberOf(await seat.value())).toBe(3)

    await configured(['window_bytes', type.uint32, u32(1)])
    await seat.follow('test.b')
    for (const value of [1, 2]) producer.emit(value, 'test.b')
    const only = await seat.value()
    expect(await unread('value')).toEqual([])
    await seat.commit(only.transaction)
    expect(numberOf(await seat.value())).toBe(2)
  })

  it('NOTICE 1 comes once per standstill, after 1 s', async () => {
    const channel = await configured(['window', type.uint32, u32(1)])
    await seat.follow('test.a')
    producer.emit(1)
    producer.emit(2)
    const first = await seat.value()
    await producer.settle()
    producer.clock.advance(999)
    expect(await unread('notice')).toEqual([])
    producer.clock.advance(1)
    expect(await seat.notice()).toMatchObject({ code: WINDOW_FULL, channel })
    producer.emit(3)
    await producer.settle()
    producer.clock.advance(60_000)
    expect(await unread('notice')).toEqual([])
    await seat.commit(first.transaction)
    await seat.value()
    await producer.settle()
    producer.clock.advance(1000)
    expect(await seat.notice()).toMatchObject({ code: WINDOW_FULL, channel })
  })

  it('no notice comes where the window opens in time, or nothing is kept back', async () => {
    await configured(['window', type.uint32, u32(1)])
    await seat.follow('test.a')
    producer.emit(1)
    producer.emit(2)
    const first = await seat.value()
    await producer.settle()
    producer.clock.advance(500)
    await seat.commit(first.transaction)
    await seat.value()
    await producer.settle()
    producer.clock.advance(5000)
    expect(await unread('notice')).toEqual([])
  })

  it('is 65,536 values if nobody says otherwise', async () => {
    await seat.follow('test.a')
    for (let value = 0; value < 65_540; value++) producer.emit(value)
    const values = await seat.values(65_536)
    expect(await unread('value')).toEqual([])
    await seat.ask((seq) => command.commitThrough(seq, values[65_535]?.transaction ?? 0))
    await seat.values(4)
  })

  it('is 8 MiB if nobody says otherwise', async () => {
    await seat.follow('test.a')
    const text = Buffer.alloc(1 << 18, 0x61).toString()
    for (let i = 0; i < 40; i++) producer.push.push('test.a', { type: type.string as 7, value: text }, i)
    const sent = await seat.values(31)
    // A 32nd would be beyond it.
    expect((sent[0]?.bytes.length ?? 0) + 4).toBe((1 << 18) + 32)
    expect(await unread('value')).toEqual([])
    expect((await seat.ledger()).state).toBe('window-full')
  })

  it('a link that does not drain is handed 256 KiB of values; the rest waits, and commands are read all the same', async () => {
    const watcher = await producer.seat()
    await seat.follow('test.a')
    seat.peer.stream.pause()
    for (let value = 0; value < 30_000; value++) producer.emit(value)
    await producer.settle()
    const { in_flight, queued } = await watcher.ledger(seat.channel)
    expect(in_flight * 32).toBeGreaterThanOrEqual(1 << 18)
    // What the pipe of the test itself has taken is drained.
    expect(in_flight * 32).toBeLessThan((1 << 18) + (1 << 17))
    expect(in_flight + queued).toBe(30_000)
    seat.peer.send(command.defChannel(9001))
    await producer.settle()
    const all = await watcher.query('producer.channels')
    expect(all.value.readUInt32BE(4)).toBe(3)
    seat.peer.stream.resume()
    expect((await seat.values(30_000)).map(numberOf)).toEqual(Array.from({ length: 30_000 }, (_, value) => value))
  })

  it('reading stops while more than 1 MiB of responses is not drained', async () => {
    const watcher = await producer.seat()
    const channel = await watcher.defChannel()
    seat.peer.stream.pause()
    // A response of OK has 20 bytes.
    const nops = Math.ceil((1 << 20) / 20) + 20_000
    seat.peer.send(Buffer.alloc(12 * nops, command.nop(0)))
    seat.peer.send(command.delChannel(9_000_000, channel))
    await producer.settle()
    expect(await watcher.ledger(channel)).toBeDefined()
    seat.peer.stream.resume()
    expect((await seat.response(9_000_000)).status).toBe(OK)
    expect(await watcher.ledger(channel)).toBeUndefined()
  })

  it('reading stops while 262,144 commands are unanswered', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    await seat.value()
    await producer.settle()
    producer.store.manual = true
    producer.emit(2)
    await seat.value()
    await producer.settle()
    // Nobody asks for their responses: they may all have the same seq.
    const commits = (count: number): void => seat.peer.send(Buffer.alloc(20 * count, command.commit(0, 0)))
    commits(262_143)
    expect((await seat.ask((seq) => command.nop(seq))).status).toBe(OK)
    commits(1)
    const late = seat.send((seq) => command.nop(seq))
    expect(await unread('response')).toEqual([])
    producer.store.manual = false
    producer.store.complete()
    expect((await seat.response(late)).status).toBe(OK)
  })
})
