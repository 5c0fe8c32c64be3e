import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Block } from '../../../../server/kernel/channels/block.ts'
import { GapEntry } from '../../../../server/kernel/channels/gap.ts'
import { type Entry, Lane } from '../../../../server/kernel/channels/lane.ts'

/** Ids first..last. */
function blockOf(first: number, count: number): Block {
  const block = new Block(first, 0, first)
  block.count = block.unsettled = count
  return block
}

function gapOf(transaction: number): GapEntry {
  return new GapEntry(transaction, 0, transaction, { reason: 1, metric: 0, count: 1, from: 0, to: 0 })
}

const kill = (entry: Entry): void => {
  if (entry.kind === 'gap') entry.settled = true
  else entry.unsettled = 0
}

describe('a lane', () => {
  it('finds the entry that has an id, and none for a hole', () => {
    const lane = new Lane(0)
    const entries = [blockOf(10, 5), gapOf(17), blockOf(20, 1), blockOf(21, 30)]
    for (const entry of entries) lane.push(entry)
    for (const [id, index] of [
      [10, 0],
      [14, 0],
      [17, 1],
      [20, 2],
      [21, 3],
      [50, 3],
    ] as const) {
      expect(lane.find(id)).toBe(index)
    }
    for (const id of [0, 9, 15, 16, 18, 19, 51]) expect(lane.find(id)).toBe(-1)
    expect(new Lane(0).find(1)).toBe(-1)
  })

  it('has neither head nor tail when everything was taken from it', () => {
    const lane = new Lane(0)
    lane.push(gapOf(1))
    lane.shift()
    expect([lane.head, lane.tail, lane.at(0), lane.at(-1), lane.length]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      0,
    ])
  })

  it('keeps its entries in order, and its cursor on the same entry, whatever goes and comes', () => {
    const change = fc.record({
      kind: fc.constantFrom('push', 'shift', 'insert', 'remove', 'kill', 'move'),
      at: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200 }), (changes) => {
        const lane = new Lane(0)
        const entries: Entry[] = []
        let next = 1
        for (const { kind, at } of changes) {
          const behind = lane.cursor + (at % (lane.length - lane.cursor + 1))
          if (kind === 'push') {
            const entry = blockOf(next++, 1)
            lane.push(entry)
            entries.push(entry)
          } else if (kind === 'insert') {
            const entry = gapOf(next++)
            const before = lane.at(behind)
            lane.insert(behind, entry)
            entries.splice(before === undefined ? entries.length : entries.indexOf(before), 0, entry)
          } else if (kind === 'kill' && lane.length > 0) {
            kill(lane.at(at % lane.length) as Entry)
          } else if (kind === 'move') {
            lane.cursor = behind
          } else if (kind === 'shift' && lane.length > 0) {
            entries.splice(entries.indexOf(lane.head as Entry), 1)
            lane.shift()
          } else if (kind === 'remove' && behind < lane.length) {
            entries.splice(entries.indexOf(lane.at(behind) as Entry), 1)
            lane.remove(behind)
          }
          // What is dead may be gone or not.
          const here = new Set(lane)
          expect([...lane]).toEqual(entries.filter((entry) => here.has(entry)))
          const isAlive = (entry: Entry): boolean => (entry.kind === 'gap' ? !entry.settled : entry.unsettled > 0)
          for (const entry of entries) if (isAlive(entry)) expect(here.has(entry)).toBe(true)
          expect(lane.cursor).toBeLessThanOrEqual(lane.length)
        }
      }),
    )
  })

  it.each([1, 2, 3])('keeps its cursor in its place when the entry at %i is removed', (index) => {
    const lane = new Lane(0)
    for (let id = 0; id < 5; id++) lane.push(blockOf(id, 1))
    lane.cursor = 1
    lane.remove(index)
    expect(lane.cursor).toBe(1)
    expect([...lane].map(({ first }) => first)).toEqual([0, 1, 2, 3, 4].toSpliced(index, 1))
  })

  it('does not grow for ever after a value that is never committed', () => {
    const lane = new Lane(0)
    lane.push(blockOf(1, 1))
    for (let id = 2; id < 100_000; id++) {
      const block = blockOf(id, 1)
      lane.push(block)
      lane.cursor = lane.length
      kill(block)
    }
    expect(lane.length).toBeLessThan(200)
    expect(lane.head?.first).toBe(1)
    expect(lane.cursor).toBe(lane.length)
  })
})
