/** A name of another producer that no catalogue has: after a start that is every one, until its upstream is connected. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32 } from '../../../support/bytes.ts'
import { EPOCH } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { Tree } from '../../../support/tree.ts'

let tree: Tree
let seat: Seat
let id: number
beforeEach(async () => {
  tree = await Tree.start()
  tree.lower.emit(0)
  await tree.connected()
  await tree.until(async () => expect((await tree.state()).counters.metrics).toBeGreaterThan(0))
  seat = await tree.upper.seat('watcher')
  await seat.execute(
    'channel.configure',
    ['channel', type.uint32, u32(0)],
    ['overflow', type.string, str('keep-latest')],
  )
  id = await seat.collect('test.a', args(['producer', type.string, str('east')]))
  await seat.ok((seq) => command.subscribe(seq, id, 0))
  await tree.bound(1)
})
afterEach(() => tree.stop())

/** Whether values of the binding carry labels, as the upper server knows it now. */
const carriesLabels = (): boolean | undefined => {
  const all = [...tree.upper.server.parts.producer.instances.all()]
  return all.find((instance) => instance.id === id)?.selection.carriesLabels()
}

describe('a binding that is restored while its upstream is away', () => {
  it('keeps the newest value of each series of a channel that keeps only those', async () => {
    for (const host of ['h1', 'h2', 'h3']) tree.lower.push.push('test.a', { type: 2, value: 7 }, EPOCH + 1, host)
    await tree.inTime(seat.values(3))
    await tree.stopLower()
    const { channel } = seat
    await tree.restartUpper()
    seat = await tree.upper.seat('watcher')
    await seat.setChannel(channel)
    const values = (await tree.inTime(seat.values(4))).filter(({ metric }) => metric === id)
    expect(values.map((value) => decoded(value).host).sort()).toEqual(['h1', 'h2', 'h3'])
    expect(await seat.ledger()).toMatchObject({ dropped: { superseded: 0 } })
  })

  it('has labels again as soon as the catalogue says so', async () => {
    expect(carriesLabels()).toBe(true)
    await tree.restartUpper()
    await tree.until(() => expect(carriesLabels()).toBe(true))
  })
})
