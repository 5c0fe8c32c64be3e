/** Numbers of a decoder's memory: for what comes again, each for one key, and no more of them than may be. */
import { expect, it } from 'vitest'
import { type ColumnKey, ColumnWriter } from '../../../server/kit/columns.ts'
import { SeriesMemory } from '../../../server/kit/series-memory.ts'

function key(text: string): ColumnKey {
  return { bytes: Buffer.from(text), number: 0, numbering: '' }
}

/** The number that labels have when their key is asked for once more. */
function numberOf(memory: SeriesMemory<object>, labels: object): number {
  const found = memory.keyOf(labels, () => key('made'))
  return 'bytes' in found ? found.number : -1
}

it('what comes once has no number, and what comes again keeps the one that it gets', () => {
  const memory = new SeriesMemory<object>()
  const [one, other] = [{}, {}]
  expect([one, other, other, one, other, one].map((labels) => numberOf(memory, labels))).toEqual([0, 0, 1, 2, 1, 2])
  expect(memory.numbering()).toBe(memory.numbering())
})

it('what has no key has no number', () => {
  const memory = new SeriesMemory<object>()
  const labels = {}
  for (let asked = 0; asked < 3; asked++)
    expect(memory.keyOf(labels, () => ({ problem: 'no' }))).toEqual({ problem: 'no' })
  const next = {}
  numberOf(memory, next)
  expect(numberOf(memory, next)).toBe(1)
})

it('two memories have numberings of their own', () => {
  expect(new SeriesMemory().numbering()).not.toBe(new SeriesMemory().numbering())
})

it('when all numbers are given, the next request has others', () => {
  const memory = new SeriesMemory<object>({ mostNumbers: 2 })
  const all = [{}, {}, {}]
  const first = memory.numbering()
  expect(all.map((labels) => numberOf(memory, labels))).toEqual([0, 0, 0])
  // Within a request there are no more than that.
  expect(all.map((labels) => numberOf(memory, labels))).toEqual([1, 2, 0])
  expect(memory.numbering()).not.toBe(first)
  expect(all.map((labels) => numberOf(memory, labels))).toEqual([0, 0, 0])
  expect(all.map((labels) => numberOf(memory, labels)).reverse()).toEqual([0, 2, 1])
})

it('says what its bounds have cost, once', () => {
  const memory = new SeriesMemory<object>({ mostNumbers: 1 })
  expect(memory.forgotten()).toEqual({ labels: 0, numberings: 0 })
  const labels = {}
  for (let request = 0; request < 3; request++) {
    memory.numbering()
    for (let asked = 0; asked < 2; asked++) numberOf(memory, labels)
  }
  const large = new DataView(new ArrayBuffer(9 << 20))
  memory.labels.add(large, 0, large.byteLength, {})
  expect(memory.forgotten()).toEqual({ labels: 1, numberings: 2 })
  expect(memory.forgotten()).toEqual({ labels: 0, numberings: 0 })
})

it('a request that has begun before all numbers begin again has none of the new ones', () => {
  const memory = new SeriesMemory<object>({ mostNumbers: 1 })
  const [old, later] = [{}, {}]
  const writerOf = (): ColumnWriter => new ColumnWriter('otlp.', memory.numbering())
  const begin = (writer: ColumnWriter, labels: object, name: string): void =>
    writer.begin(
      name,
      memory.keyOf(labels, () => writer.keyOf(name, [])),
    )
  const first = writerOf()
  begin(first, old, 'old')
  begin(first, {}, 'between')
  begin(first, old, 'old')
  expect([...first.columns().remembered]).toEqual([0, 0, 1])
  // Both are decoded in steps, in turn.
  const second = writerOf()
  begin(second, later, 'later')
  begin(second, {}, 'between')
  begin(second, later, 'later')
  begin(first, later, 'later')
  expect([...second.columns().remembered]).toEqual([0, 0, 1])
  expect([...first.columns().remembered]).toEqual([0, 0, 1, 0])
})
