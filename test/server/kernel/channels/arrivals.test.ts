import { describe, expect, it } from 'vitest'
import { Rig } from './rig.ts'

/** The lengths of the blocks in the sending order. */
function blockLengths(rig: Rig): number[] {
  const [sending = []] = rig.queue.lanes()
  return [...sending].flatMap((entry) => (entry.kind === 'block' ? [entry.length] : []))
}

describe('the blocks of a channel', () => {
  it.each([
    ['8 KiB', 8 << 10, 512, 1 << 10],
    ['64 KiB', 64 << 10, 7 << 10, 8 << 10],
    ['64 MiB', 64 << 20, 255 << 10, 256 << 10],
    // More than 32 bits, with which one shift made blocks of 1 KiB.
    ['2 GiB', 2 ** 31, 255 << 10, 256 << 10],
    ['4 GiB', 2 ** 32, 255 << 10, 256 << 10],
  ])('hold an eighth of one that may have %s, and 256 KiB at most', async (_, maxBytes, least, most) => {
    const rig = await Rig.connected({ maxBytes })
    rig.append(7, 10_000)
    const [first] = blockLengths(rig)
    expect(first).toBeGreaterThanOrEqual(least)
    expect(Math.max(...blockLengths(rig))).toBeLessThanOrEqual(most)
  })
})
