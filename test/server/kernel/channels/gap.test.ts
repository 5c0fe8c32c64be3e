import { describe, expect, it } from 'vitest'
import { GapReason } from '../../../../protocol/monitor/constants.ts'
import { GAP_FRAME_BYTES } from '../../../../protocol/monitor/message.ts'
import { GapEntry } from '../../../../server/kernel/channels/gap.ts'

const loss = { reason: GapReason.overflow, metric: 7, count: 5, from: 1_700_000_000_000_000, to: 1_700_000_000_000_000 }

describe('a GAP', () => {
  it('is encoded as specified [MON 16]', () => {
    const frame = new GapEntry(1, 0, 13, loss).frame()
    expect(Buffer.from(frame).toString('hex')).toBe(
      '0000002cfffffffc000000000000000d00000007000000000000000500060a24181e400000060a24181e400000000001',
    )
    expect(frame.length).toBe(GAP_FRAME_BYTES)
  })

  it('takes in a loss beside it: counts add up, the range widens, several metrics are none', () => {
    const gap = new GapEntry(1, 0, 13, { ...loss, from: 10, to: 20 })
    gap.merge({ ...loss, count: 2, from: 5, to: 12 }, 15)
    expect([gap.metric, gap.count, gap.from, gap.to, gap.transaction]).toEqual([7, 7, 5, 20, 15])
    gap.merge({ ...loss, metric: 8, from: 30, to: 31 }, 14)
    expect([gap.metric, gap.count, gap.from, gap.to, gap.transaction]).toEqual([0, 12, 5, 31, 15])
  })

  it('knows nothing any more once it has taken in something unknown', () => {
    const gap = new GapEntry(1, 0, 13, loss)
    gap.merge({ ...loss, count: 0, from: 0, to: 0 }, 14)
    gap.merge(loss, 15)
    expect([gap.count, gap.from, gap.to]).toEqual([0, 0, 0])
  })
})
