/** `producer.connections`: who sees which connections, and what of them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, join, str, toHex, type, u32, u64 } from '../../../support/bytes.ts'
import { wrapDeflate } from '../../../support/layers.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

describe('producer.connections', () => {
  let producer: TestProducer
  beforeEach(async () => {
    producer = await TestProducer.start()
  })
  afterEach(() => producer.stop())

  interface Shown {
    readonly channel: number
    readonly identity: string
    readonly layers: string
  }
  const seen = async (seat: Seat, ...list: readonly Uint8Array[]): Promise<Shown[]> =>
    decoded(await seat.query('producer.connections', ...list))

  it('is one ARRAY of RECs with these fields in this order, and these types', async () => {
    const seat = await producer.seat()
    const shown = await seat.query('producer.connections')
    const field = (name: string, of: number, value: Uint8Array): Uint8Array => join(str(name), u32(of), value)
    const expected = join(
      u32(type.rec),
      u32(1),
      u32(7),
      field('channel', type.uint32, u32(seat.channel)),
      field('identity', type.string, str('tester')),
      field('address', type.string, str('127.0.0.1')),
      field('transport', type.string, str('tcp')),
      field('layers', type.string, str('')),
      field('method', type.string, str('scram-sha-256')),
      field('since', type.uint64, u64(EPOCH)),
    )
    expect(shown.type).toBe(type.array)
    expect(toHex(shown.value)).toBe(toHex(expected))
  })

  it('shows users their own connections, and admins all', async () => {
    await producer.addUser('root', { role: 'admin' })
    const [ann, bob] = [await producer.seat('ann'), await producer.seat('bob', 'north')]
    const [again, root] = [await producer.seat('ann'), await producer.seat('root')]
    expect((await seen(ann)).map(({ identity }) => identity)).toEqual(['ann', 'ann'])
    expect((await seen(bob)).map(({ identity }) => identity)).toEqual(['north/bob'])
    const all = await seen(root)
    expect(all.map(({ identity }) => identity).sort()).toEqual(['ann', 'ann', 'north/bob', 'root'])
    // Each is on a channel of its own, and `after` continues after one.
    const ids = all.map(({ channel }) => channel)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
    const after = args(['after', type.uint32, u32(ids[1] as number)])
    expect((await seen(root, after)).map(({ channel }) => channel)).toEqual(ids.slice(2))
    again.peer.destroy()
    await producer.settle()
    expect(await seen(ann)).toHaveLength(1)
  })

  it('follows SET_CHANNEL, and leaves out channels without a connection', async () => {
    const seat = await producer.seat()
    const channel = await seat.defChannel()
    await seat.setChannel(channel)
    await seat.defChannel()
    expect((await seen(seat)).map((one) => one.channel)).toEqual([channel])
  })

  it('shows the layers that WRAP has added', async () => {
    const seat = await producer.seat()
    const { peer } = await producer.login()
    await wrapDeflate(peer)
    const all = await seen(seat)
    expect(all.map(({ layers }) => layers).sort()).toEqual(['', 'deflate'])
  })
})
