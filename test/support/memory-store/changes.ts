/** What a batch does to what a store in memory holds: the reference for what a store has to do. */
import { declarationOf, ROW_KINDS, type RowKind } from '../../../storage/rows.ts'
import {
  type Batch,
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  type Change,
  GAP_WIDTH,
  MOVE_WIDTH,
  SETTLED_WIDTH,
} from '../../../storage/store.ts'
import { type Contents, columnsText, keyOf } from './contents.ts'

export function applyBatch(contents: Contents, batch: Batch): void {
  for (const change of batch.changes) applyChange(contents, change)
  applyBlocks(contents, batch)
  for (const row of rowsOf(batch.channels, CHANNEL_WIDTH)) contents.numbers.set(row[0]!, row)
  for (const row of rowsOf(batch.gaps, GAP_WIDTH)) {
    contents.gaps.set(row[0]!, row)
    contents.nextBlockId = Math.max(contents.nextBlockId, row[0]! + 1)
  }
  for (const id of batch.gapsRemoved) contents.gaps.delete(id)
  contents.age = batch.age
  contents.wall = batch.wall
}

function applyBlocks(contents: Contents, batch: Batch): void {
  const { blocks, settled } = contents
  for (const row of rowsOf(batch.blocks, BLOCK_WIDTH)) {
    const [id = 0, , , , , offset = 0, length = 0] = row
    blocks.set(id, { row: row.with(5, 0), bytes: new Uint8Array(batch.data, offset, length).slice() })
    contents.nextBlockId = Math.max(contents.nextBlockId, id + 1)
  }
  for (const [id = 0, lane = 0, first = 0] of rowsOf(batch.moved, MOVE_WIDTH)) {
    const block = blocks.get(id)
    if (block !== undefined) blocks.set(id, { ...block, row: block.row.with(2, lane).with(3, first) })
  }
  for (const [id = 0, offset, length] of rowsOf(batch.settled, SETTLED_WIDTH)) {
    if (blocks.has(id)) settled.set(id, new Uint8Array(batch.data, offset, length).slice())
  }
  for (const id of batch.removed) {
    blocks.delete(id)
    settled.delete(id)
  }
}

function applyChange(contents: Contents, change: Change): void {
  if ('put' in change) put(contents, change)
  else remove(contents, change)
}

function put(contents: Contents, change: Extract<Change, { put: unknown }>): void {
  if (change.put === 'closed' || change.put === 'recovered') return
  const { counter } = declarationOf(change.put)
  const rows: Map<string, object> = contents.rows[change.put]
  const key = keyOf(change.put, change.row)
  // So that it is the last one in the order in which rows were stored.
  rows.delete(key)
  rows.set(key, change.row)
  if (counter !== undefined) contents.next[counter] = Math.max(contents.next[counter], idIn(key) + 1)
  if (change.put === 'audit') contents.audited = { number: change.row.number, hash: change.row.hash }
}

function idIn(key: string): number {
  const [id] = JSON.parse(key) as [number]
  return id
}

function remove({ rows, ...contents }: Contents, change: Extract<Change, { remove: unknown }>): void {
  switch (change.remove) {
    case 'audit':
      removeAll(rows.audit, ({ number }) => number <= change.through)
      return
    case 'execution':
      removeAll(rows.execution, ({ at }) => at < change.before)
      return
    default:
      rows[change.remove].delete(keyOf(change.remove, change))
  }
  if (change.remove === 'channel') removeNumbers(contents, change.id)
  removeDependents(rows, change.remove, keyOf(change.remove, change))
}

function removeAll<Row>(rows: Map<string, Row>, isRemoved: (row: Row) => boolean): void {
  for (const [key, row] of rows) if (isRemoved(row)) rows.delete(key)
}

function removeDependents(rows: Contents['rows'], owner: RowKind, key: string): void {
  for (const kind of ROW_KINDS) {
    const found = declarationOf(kind).goesWith?.find((one) => one.kind === owner)
    if (found !== undefined) removeAll<object>(rows[kind], (row) => columnsText(row, found.by) === key)
  }
}

/** What belongs to a channel and is no row. */
function removeNumbers({ numbers, blocks, settled, gaps }: Omit<Contents, 'rows'>, channel: number): void {
  numbers.delete(channel)
  for (const [id, { row }] of blocks) {
    if (row[1] !== channel) continue
    blocks.delete(id)
    settled.delete(id)
  }
  for (const [id, row] of gaps) if (row[1] === channel) gaps.delete(id)
}

function* rowsOf(numbers: Float64Array, width: number): Generator<number[]> {
  for (let at = 0; at < numbers.length; at += width) yield [...numbers.subarray(at, at + width)]
}
