import { describe, expect, it } from 'vitest'
import { TransactionIds } from '../../../../server/kernel/channels/transaction-ids.ts'

describe('transaction ids', () => {
  it('are given in order, and known from the first to the last', () => {
    const ids = new TransactionIds(100)
    expect([ids.give(), ids.give(5), ids.give()]).toEqual([100, 101, 106])
    expect([99, 100, 106, 107].map((id) => ids.wasGiven(id))).toEqual([false, true, true, false])
  })

  it('are reserved by a batch, but only once it is durable', () => {
    const ids = new TransactionIds(100)
    ids.give()
    const end = ids.submit(true)
    expect([end - ids.next, ids.reserved, ids.durableNext]).toEqual([1 << 21, 100, 100])
    ids.give()
    ids.durable()
    expect([ids.reserved, ids.durableNext]).toEqual([end, 101])
  })

  it('are given back by a quiet channel, at once: what is given back may not be on disk any more', () => {
    const ids = new TransactionIds(100)
    ids.submit(true)
    ids.durable()
    ids.give()
    expect(ids.submit(false)).toBe(101)
    expect(ids.reserved).toBe(101)
  })

  it('are skipped up to the end of the range after an unclean end, and only then', () => {
    const [clean, unclean] = [new TransactionIds(100), new TransactionIds(100)]
    for (const ids of [clean, unclean]) ids.restore(120, 500)
    clean.recovered(true)
    unclean.recovered(false)
    expect([clean.next, unclean.next]).toEqual([120, 500])
    expect([clean.durableNext, unclean.durableNext]).toEqual([120, 120])
  })
})
