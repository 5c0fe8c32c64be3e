import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Block, getUint53, numberFrames, setUint53 } from '../../../../server/kernel/channels/block.ts'
import { MAX_BLOCK_BYTES, Pool } from '../../../../server/kernel/channels/pool.ts'
import { append, headOf } from './rig.ts'

function blockOf(count: number, tail = 4): Block {
  const block = new Block(1, 0, 100)
  for (let i = 0; i < count; i++) {
    block.reserve(24 + tail, MAX_BLOCK_BYTES, new Pool())
    append(block, headOf(7), new Uint8Array(tail), 100 + i, 1_000 + i)
  }
  return block
}

describe('a block', () => {
  it('holds frames as they go over the wire', () => {
    const block = new Block(1, 0, 2 ** 40 + 5)
    block.reserve(28, MAX_BLOCK_BYTES, new Pool())
    append(block, headOf(7), Uint8Array.of(0, 0, 0, 11), 2 ** 40 + 5, 1_700_000_000_000_000)
    const bytes = Buffer.from(block.chunk!.bytes.subarray(0, block.length))
    expect(bytes.toString('hex')).toBe('00000018' + '00000007' + '0000010000000005' + '00060a24181e4000' + '0000000b')
  })

  it('knows the range of times even when they do not ascend, and the metric if there is only one', () => {
    const block = new Block(1, 0, 100)
    for (const time of [5, 3, 9, 4]) {
      block.reserve(28, MAX_BLOCK_BYTES, new Pool())
      append(block, headOf(7), new Uint8Array(4), 0, time)
    }
    expect([block.minTime, block.maxTime, block.metric]).toEqual([3, 9, 7])
    block.reserve(28, MAX_BLOCK_BYTES, new Pool())
    append(block, headOf(8), new Uint8Array(4), 0, 6)
    expect(block.metric).toBe(0)
  })

  it('grows up to its limit, and takes one frame of any size', () => {
    const pool = new Pool()
    const block = blockOf(1)
    expect(block.reserve(1_000, 1_024, pool)).toBe(false)
    expect(block.reserve(900, 1_024, pool)).toBe(true)
    expect(new Block(2, 0, 0).reserve(1 << 20, 1_024, pool)).toBe(true)
  })

  it('settles values once each, in any order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 39 }), { maxLength: 80 }), (ordinals) => {
        const block = blockOf(40)
        const settled = new Set<number>()
        for (const ordinal of ordinals) {
          expect(block.settle(ordinal)).toBe(!settled.has(ordinal))
          settled.add(ordinal)
        }
        for (let ordinal = 0; ordinal < 40; ordinal++) expect(block.isSettled(ordinal)).toBe(settled.has(ordinal))
        let prefix = 0
        while (settled.has(prefix)) prefix++
        expect(block.settledPrefix).toBe(prefix)
        const bitmap = block.bitmap()
        for (let ordinal = 0; ordinal < 40; ordinal++) {
          const bit = (bitmap[ordinal >> 3]! >> (ordinal & 7)) & 1
          expect(bit).toBe(settled.has(ordinal) ? 1 : 0)
        }
        const again = blockOf(40)
        again.restoreBitmap(bitmap)
        for (let ordinal = 0; ordinal < 40; ordinal++) expect(again.isSettled(ordinal)).toBe(settled.has(ordinal))
      }),
    )
  })

  it('goes on settling after it has grown', () => {
    const block = blockOf(3)
    block.settle(2)
    for (let i = 3; i < 30; i++) {
      block.reserve(28, MAX_BLOCK_BYTES, new Pool())
      append(block, headOf(7), new Uint8Array(4), 100 + i, 0)
    }
    block.settle(29)
    expect([2, 3, 28, 29].map((ordinal) => block.isSettled(ordinal))).toEqual([true, false, false, true])
    expect(block.lastUnsettled).toBe(128)
  })

  it('counts what is neither stored nor settled', () => {
    const block = blockOf(10)
    block.durable = 4
    block.settle(4)
    block.settle(7)
    expect([block.countUnstored, block.settledFrom(block.durable)]).toEqual([4, 104])
  })

  it('gives waiting frames their ids, across the border of 32 bits', () => {
    const block = blockOf(3, 8)
    block.number(0xffff_ffff)
    const ids = [0, 32, 64].map((at) => getUint53(block.chunk!.view, at + 8))
    expect(ids).toEqual([0xffff_ffff, 0x1_0000_0000, 0x1_0000_0001])
    const view = new DataView(new ArrayBuffer(28))
    view.setUint32(0, 24)
    numberFrames(view, 28, 9)
    expect(getUint53(view, 8)).toBe(9)
  })

  it('writes numbers below 2^53 as uint64', () => {
    const view = new DataView(new ArrayBuffer(8))
    for (const number of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 52 + 3, Number.MAX_SAFE_INTEGER]) {
      setUint53(view, 0, number)
      expect(view.getBigUint64(0)).toBe(BigInt(number))
      expect(getUint53(view, 0)).toBe(number)
    }
  })
})
