/** Section 8.9, `producer.bindings`: everything that a channel binds, and a channel with very many hides no other. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import { atH1, type Seat } from '../../support/seat.ts'

/** With names of this length, the bindings of one channel fit neither a record nor one answer. */
const MANY = 4_000
const longName = (index: number): string => `test.${'n'.repeat(240)}${index}`

describe('producer.bindings', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  const bindings = async (of: Seat, ...list: readonly (readonly [string, number, Uint8Array])[]): Promise<Json[]> =>
    decoded(await of.query('producer.bindings', args(...list)))
  const inChannel = (channel: number) => ['channel', type.string, str(String(channel))] as const
  const above = (metric: number) => ['after', type.uint32, u32(metric)] as const

  it('shows metric, name, mode and arguments of each binding, of the current channel if none is named', async () => {
    const [first, second] = [await seat.follow('test.a'), await seat.hoard('test.b')]
    const shown = [
      { channel: seat.channel, metric: first, name: 'test.a', mode: 'subscribe', arguments: { host: 'h1' } },
      { channel: seat.channel, metric: second, name: 'test.b', mode: 'buffer', arguments: { host: 'h1' } },
    ].sort((a, b) => a.metric - b.metric)
    expect(await bindings(seat)).toEqual(shown)
    expect(await bindings(seat, inChannel(0))).toEqual(shown)
    expect(await bindings(seat, inChannel(seat.channel), above(Math.min(first, second)))).toEqual(shown.slice(1))
    expect(await bindings(seat, inChannel(seat.channel), above(Math.max(first, second)))).toEqual([])
  })

  it('shows nobody the bindings of another user, except admins', async () => {
    await seat.follow('test.a')
    const stranger = await producer.seat('other')
    expect(await bindings(stranger, inChannel(seat.channel))).toEqual([])
    await producer.addUser('root', { role: 'admin' })
    const admin = await producer.seat('root')
    expect(await bindings(admin, inChannel(seat.channel))).toHaveLength(1)
    const { status } = await seat.ask((seq) =>
      command.query(seq, 'producer.bindings', args(['channel', type.string, str('mine')])),
    )
    expect(status).toBe(6)
  })

  it('of very many come in several answers, and producer.channels shows the first 256, their number, and all channels', async () => {
    const full = await seat.defChannel()
    const ids = await Promise.all(
      Array.from({ length: MANY }, async (_, index) => {
        const id = await seat.collect(longName(index), atH1)
        await seat.ok((seq) => command.subscribe(seq, id, full))
        return id
      }),
    )
    const watcher = await producer.seat()
    const channels: Json[] = decoded(await watcher.query('producer.channels'))
    expect(channels.map(({ channel }) => channel)).toEqual([seat.channel, watcher.channel, full].sort((a, b) => a - b))
    const ledger = channels.find(({ channel }) => channel === full)
    expect([ledger.bindings.length, ledger.bound]).toEqual([256, MANY])

    const found: number[] = []
    for (let answers = 1; ; answers++) {
      const page = await bindings(watcher, inChannel(full), above(found.at(-1) ?? 0))
      const isCut = page.at(-1).more === true
      for (const { metric } of isCut ? page.slice(0, -1) : page) found.push(metric)
      if (isCut) continue
      expect(answers).toBeGreaterThan(1)
      break
    }
    expect(found).toEqual(ids.sort((a, b) => a - b))
  })
})
