/** What a store in memory holds, and what a batch does to it: the reference for what a store has to do. */
import {
  type Batch,
  type BindingRow,
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  type Change,
  type ChannelRow,
  GAP_WIDTH,
  type InstanceRow,
  MOVE_WIDTH,
  type Recovered,
  type ResultRow,
  SETTLED_WIDTH,
  type StopRow,
  type UserRow,
} from '../store.ts'

export interface StoredBlock {
  /** BLOCK_WIDTH numbers, offset 0. */
  readonly row: number[]
  readonly bytes: Uint8Array
}

export interface Contents {
  readonly tenants: Set<string>
  readonly users: Map<number, UserRow>
  readonly channels: Map<number, ChannelRow>
  readonly numbers: Map<number, number[]>
  readonly instances: Map<number, InstanceRow>
  readonly bindings: Map<string, BindingRow>
  readonly stops: Map<string, StopRow>
  readonly results: Map<number, ResultRow>
  readonly blocks: Map<number, StoredBlock>
  readonly settled: Map<number, Uint8Array>
  readonly gaps: Map<number, number[]>
  /** Ids of blocks that a read finds damaged. */
  readonly damaged: Set<number>
  readonly secret: Uint8Array
  nextUserId: number
  nextBlockId: number
  age: number
  wall: number
}

export function emptyContents(): Contents {
  return {
    tenants: new Set(),
    users: new Map(),
    channels: new Map(),
    numbers: new Map(),
    instances: new Map(),
    bindings: new Map(),
    stops: new Map(),
    results: new Map(),
    blocks: new Map(),
    settled: new Map(),
    gaps: new Map(),
    damaged: new Set(),
    secret: crypto.getRandomValues(new Uint8Array(32)),
    nextUserId: 1,
    nextBlockId: 1,
    age: 0,
    wall: 0,
  }
}

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
  switch (change.put) {
    case 'tenant':
      contents.tenants.add(change.row.name)
      return
    case 'user':
      contents.users.set(change.row.id, change.row)
      contents.nextUserId = Math.max(contents.nextUserId, change.row.id + 1)
      return
    case 'channel':
      contents.channels.set(change.row.id, change.row)
      return
    case 'instance':
      contents.instances.set(change.row.id, change.row)
      return
    case 'binding':
      contents.bindings.set(pair(change.row), change.row)
      return
    case 'stop':
      contents.stops.set(pair(change.row), change.row)
      return
    case 'result':
      contents.results.set(change.row.id, change.row)
      return
    case 'closed':
      return
  }
}

function remove(contents: Contents, change: Extract<Change, { remove: unknown }>): void {
  switch (change.remove) {
    case 'user':
      contents.users.delete(change.id)
      return
    case 'channel':
      removeChannel(contents, change.id)
      return
    case 'instance':
      contents.instances.delete(change.id)
      return
    case 'binding':
      contents.bindings.delete(pair(change))
      return
    case 'stop':
      contents.stops.delete(pair(change))
      return
    case 'result':
      contents.results.delete(change.id)
      return
  }
}

function removeChannel(contents: Contents, channel: number): void {
  const { channels, numbers, bindings, stops, results, blocks, settled, gaps } = contents
  channels.delete(channel)
  numbers.delete(channel)
  for (const [id, { row }] of blocks) {
    if (row[1] !== channel) continue
    blocks.delete(id)
    settled.delete(id)
  }
  for (const [id, row] of gaps) if (row[1] === channel) gaps.delete(id)
  for (const map of [bindings, stops]) {
    for (const [key, row] of map) if (row.channel === channel) map.delete(key)
  }
  for (const [id, row] of results) if (row.channel === channel) results.delete(id)
}

export function recovered(contents: Contents): Recovered {
  const copy = structuredClone(contents)
  const { secret, nextUserId, nextBlockId, age, wall, settled } = copy
  const byId = (a: { id: number }, b: { id: number }): number => a.id - b.id
  const byPair = (a: StopRow | BindingRow, b: StopRow | BindingRow): number =>
    a.channel - b.channel || a.metric - b.metric
  const byOrder = (a: number[], b: number[]): number => a[1]! - b[1]! || a[2]! - b[2]! || a[3]! - b[3]! || a[0]! - b[0]!
  const blocks = [...copy.blocks.values()].map(({ row }) => row)
  const flat = (rows: number[][]): Float64Array => Float64Array.from(rows.flat())
  return {
    tenants: [...copy.tenants].sort(),
    users: [...copy.users.values()].sort(byId),
    channels: [...copy.channels.values()].sort(byId),
    numbers: flat([...copy.numbers.values()].sort((a, b) => a[0]! - b[0]!)),
    instances: [...copy.instances.values()].sort(byId),
    bindings: [...copy.bindings.values()].sort(byPair),
    stops: [...copy.stops.values()].sort(byPair),
    results: [...copy.results.values()].sort(byId),
    blocks: flat(blocks.sort(byOrder)),
    gaps: flat([...copy.gaps.values()].sort(byOrder)),
    settled,
    nextUserId,
    nextBlockId,
    age,
    wall,
    secret,
  }
}

function pair({ channel, metric }: { readonly channel: number; readonly metric: number }): string {
  return `${channel} ${metric}`
}

function* rowsOf(numbers: Float64Array, width: number): Generator<number[]> {
  for (let at = 0; at < numbers.length; at += width) yield [...numbers.subarray(at, at + width)]
}
