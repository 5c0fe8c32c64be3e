import { describe, expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { seriesKey, seriesKeyOfFrame } from '../../../../server/kernel/channels/series-key.ts'
import { framePrefix } from '../../../../server/kernel/metrics/instance.ts'

const open = new Set(['name', 'source', 'index'] as const)

function frameOf(head: Uint8Array, value: number): Uint8Array {
  const tail = new XdrWriter().uint32(BasicType.DOUBLE).double(value).copy()
  const frame = new Uint8Array(head.length + tail.length)
  frame.set(head)
  frame.set(tail, head.length)
  new DataView(frame.buffer).setUint32(0, frame.length - 4)
  // Transaction id and time, which are no part of the key.
  frame.fill(value, 8, 24)
  return frame
}

describe('the key of a series', () => {
  const head = framePrefix(7, { name: 'smon.a', source: 'x', index: '3' }, open)

  it('is the same from a template and from a frame, whatever its id, time and value', () => {
    const key = seriesKey(new WeakMap(), head)
    expect(seriesKeyOfFrame(frameOf(head, 1), true)).toBe(key)
    expect(seriesKeyOfFrame(frameOf(head, 200), true)).toBe(key)
  })

  it('differs by metric id and by every constant', () => {
    const heads = [
      head,
      framePrefix(8, { name: 'smon.a', source: 'x', index: '3' }, open),
      framePrefix(7, { name: 'smon.b', source: 'x', index: '3' }, open),
      framePrefix(7, { name: 'smon.a', source: 'y', index: '3' }, open),
      framePrefix(7, { name: 'smon.a', source: 'x', index: '4' }, open),
      framePrefix(7, { name: 'smon.a', source: 'x' }, open),
    ]
    const keys = heads.map((of) => seriesKeyOfFrame(frameOf(of, 5), true))
    expect(new Set(keys).size).toBe(heads.length)
  })

  it('is the metric id alone where the value stands by itself', () => {
    const plain = framePrefix(7, { name: 'smon.a' }, new Set())
    expect(seriesKeyOfFrame(frameOf(plain, 5), false)).toBe(seriesKey(new WeakMap(), plain))
  })
})
