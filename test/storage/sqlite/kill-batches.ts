/** The batches of the kill test: number n is the same in the process that is killed and in the one that checks. */
import type { AuditRow, Batch, Change } from '../../../storage/store.ts'
import { batch, frames, gapRow, numbersOf, type TestBlock } from '../../contracts/store-batch.ts'

/** Stores, replaces, moves, settles and removes, so that half a batch would show. `wall` is the number. */
export function batchOf(number: number): Batch {
  const blocks: TestBlock[] = Array.from({ length: 1 + (number % 7) }, (_, index) => ({
    id: number * 10 + index,
    channel: index,
    lane: index % 2 === 0 ? 0 : 40,
    first: number,
    values: number % 100,
    frames: frames(number + index, 50 + ((number * 37 + index * 911) % 3000)),
  }))
  const before = (number - 1) * 10
  return batch(number, {
    blocks: [...blocks, { id: before, channel: 0, first: number, frames: frames(number, 700) }],
    moved: [[before + 1, 0, number]],
    settled: [[number * 10, frames(number, 9)]],
    removed: [(number - 6) * 10, (number - 6) * 10 + 1, (number - 3) * 10 + 2],
    channels: [numbersOf(number % 5, number)],
    gaps: [gapRow(number * 10 + 9, number % 5, 0, number)],
    gapsRemoved: [(number - 4) * 10 + 9],
    changes: [
      { put: 'binding', row: { channel: number % 5, metric: number % 11, mode: 'subscribe', since: 1 } },
      { put: 'place', row: { channel: number % 5, metric: number % 11, reached: number } },
      ...rights(number),
      { put: 'audit', row: record(number) },
      ...(number % 9 === 0 ? [{ remove: 'audit', through: number - 4 } as const] : []),
    ],
  })
}

function rights(number: number): Change[] {
  const [id, at, digest] = [number, number, frames(number, 32)]
  const rule = { number, role: 'r', effect: 'allow', command: '*', object: `o${number}`, where: '{}' } as const
  return [
    { put: 'rule', row: rule },
    { remove: 'rule', number: number - 5 },
    { put: 'token', row: { id, user: number % 4, name: '', hash: digest, scope: '', made: at, expires: undefined } },
    { remove: 'user', id: (number + 1) % 4 },
    { put: 'execution', row: { user: number % 4, control: 'c', key: `${number % 6}`, digest, at, result: undefined } },
  ]
}

function record(number: number): AuditRow {
  const texts = { action: 'a', actor: `${number}`, tenant: '', address: '', object: '', args: '{}', outcome: '' }
  return { ...texts, detail: '', number, time: number, hash: frames(number, 32) }
}
