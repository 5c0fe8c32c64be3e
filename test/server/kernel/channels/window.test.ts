import { describe, expect, it } from 'vitest'
import { Block } from '../../../../server/kernel/channels/block.ts'
import { GapEntry } from '../../../../server/kernel/channels/gap.ts'
import { Lane } from '../../../../server/kernel/channels/lane.ts'
import { Window } from '../../../../server/kernel/channels/window.ts'
import { SETTINGS } from './rig.ts'

function windowOf(settings: Partial<typeof SETTINGS> = {}): { window: Window; ready: () => number } {
  let calls = 0
  const window = new Window(() => {
    calls++
  })
  window.configure({ ...SETTINGS, ...settings })
  return { window, ready: () => calls }
}

describe('a window', () => {
  it('counts values, bytes and GAPs in flight, of each block and in all', () => {
    const { window } = windowOf({ window: 4, windowBytes: 1_000 })
    const [one, other] = [new Block(1, 0, 100), new Block(2, 0, 110)]
    window.add(one, 3, 301)
    expect([window.isFull, window.roomForValues, window.roomForBytes]).toEqual([false, 1, 699])
    window.add(other, 1, 99)
    expect([window.values, window.bytes, window.isFull]).toEqual([4, 400, true])
    window.remove(one, 1)
    expect([one.inFlight, one.inFlightBytes, window.values, window.bytes]).toEqual([2, 201, 3, 300])
    window.remove(one, 2)
    expect([one.inFlightBytes, window.bytes]).toEqual([0, 99])
    window.addGap(new GapEntry(3, 0, 120, { reason: 1, metric: 0, count: 1, from: 0, to: 0 }))
    expect([window.values, window.roomForValues]).toEqual([1, 2])
  })

  it('has room for one value when nothing is in flight, however small it is', () => {
    const { window } = windowOf({ window: 0, windowBytes: 0 })
    expect([window.isEmpty, window.isFull, window.roomForValues]).toEqual([true, false, 1])
  })

  it('has no bounds where the channel is not durable', () => {
    const { window } = windowOf({ durable: false, window: 1, windowBytes: 1 })
    expect([window.roomForValues, window.roomForBytes]).toEqual([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY])
  })

  it('is empty again when the connection is gone', () => {
    const { window } = windowOf()
    const lane = new Lane(0)
    const block = new Block(1, 0, 100)
    block.count = block.unsettled = 3
    block.advance(3, 300)
    lane.push(block)
    lane.cursor = 1
    window.add(block, 3, 300)
    window.clear(lane)
    expect([window.isEmpty, window.bytes, block.inFlight, block.sent, block.sentLength]).toEqual([true, 0, 0, 0, 0])
  })

  it('reports once that it is open again after it stood still', () => {
    const { window, ready } = windowOf()
    window.reopen()
    expect(ready()).toBe(0)
    window.standStill()
    window.reopen()
    window.reopen()
    expect(ready()).toBe(1)
  })

  it('is limited by the lowest barrier until that is released', () => {
    const { window, ready } = windowOf()
    const first = window.holdBack(105)
    const second = window.holdBack(110)
    expect([window.limitBy(200), window.limitBy(104), window.hasBarriers]).toEqual([105, 104, true])
    first.release()
    expect([window.limitBy(200), ready()]).toEqual([110, 1])
    second.release()
    expect([window.limitBy(200), window.hasBarriers]).toEqual([200, false])
  })
})
