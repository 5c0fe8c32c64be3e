/** What a batch does to what a store in memory holds: the reference for what a store has to do. */
import {
  type Batch,
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  type Change,
  GAP_WIDTH,
  MOVE_WIDTH,
  SETTLED_WIDTH,
} from '../../../storage/store.ts'
import { type Contents, keyOf, type Pair } from './contents.ts'

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
      contents.tenants.set(change.row.name, change.row)
      return
    case 'user':
      contents.users.set(change.row.id, change.row)
      contents.nextUserId = Math.max(contents.nextUserId, change.row.id + 1)
      return
    case 'channel':
      contents.channels.set(change.row.id, change.row)
      return
    case 'lost name': {
      const key = nameKey(change.row)
      contents.lostNames.delete(key)
      contents.lostNames.set(key, change.row)
      return
    }
    case 'instance':
      contents.instances.set(change.row.id, change.row)
      return
    case 'binding':
      contents.bindings.set(pair(change.row), change.row)
      return
    case 'place':
      contents.places.set(pair(change.row), change.row)
      return
    case 'upstream':
      contents.upstreams.set(change.row.name, change.row)
      return
    case 'upstream binding':
      contents.upstreamBindings.set(`${change.row.upstream} ${change.row.metric}`, change.row)
      return
    case 'qmf agent':
      contents.qmfAgent = change.row
      return
    case 'stop':
      contents.stops.set(pair(change.row), change.row)
      return
    case 'result':
      contents.results.set(change.row.id, change.row)
      return
    case 'rule':
      contents.rules.set(change.row.number, change.row)
      contents.nextRule = Math.max(contents.nextRule, change.row.number + 1)
      return
    case 'token':
      contents.tokens.set(change.row.id, change.row)
      contents.nextTokenId = Math.max(contents.nextTokenId, change.row.id + 1)
      return
    case 'dial':
      contents.dials.set(change.row.channel, change.row)
      return
    case 'audit':
      contents.audit.set(change.row.number, change.row)
      contents.audited = { number: change.row.number, hash: change.row.hash }
      return
    case 'execution':
      contents.executions.set(keyOf(change.row), change.row)
      return
    case 'fence':
      contents.fences.add(change.row.sensor)
      return
    case 'recovered':
    case 'closed':
      return
  }
}

function remove(contents: Contents, change: Extract<Change, { remove: unknown }>): void {
  switch (change.remove) {
    case 'user':
      removeUser(contents, change.id)
      return
    case 'tenant':
      contents.tenants.delete(change.name)
      return
    case 'rule':
      contents.rules.delete(change.number)
      return
    case 'token':
      contents.tokens.delete(change.id)
      return
    case 'audit':
      for (const number of contents.audit.keys()) if (number <= change.through) contents.audit.delete(number)
      return
    case 'execution':
      for (const [key, { at }] of contents.executions) if (at < change.before) contents.executions.delete(key)
      return
    case 'fence':
      contents.fences.delete(change.sensor)
      return
    case 'upstream':
      contents.upstreams.delete(change.name)
      return
    case 'upstream binding':
      contents.upstreamBindings.delete(`${change.upstream} ${change.metric}`)
      return
    case 'channel':
      removeChannel(contents, change.id)
      return
    case 'lost name':
      contents.lostNames.delete(nameKey(change))
      return
    case 'instance':
      contents.instances.delete(change.id)
      return
    case 'binding':
      contents.bindings.delete(pair(change))
      contents.places.delete(pair(change))
      return
    case 'stop':
      contents.stops.delete(pair(change))
      return
    case 'result':
      contents.results.delete(change.id)
      return
  }
}

function removeUser({ users, tokens, executions, lostNames }: Contents, id: number): void {
  users.delete(id)
  for (const [token, { user }] of tokens) if (user === id) tokens.delete(token)
  for (const [key, { user }] of lostNames) if (user === id) lostNames.delete(key)
  for (const [key, { user }] of executions) if (user === id) executions.delete(key)
}

function nameKey({ user, name }: { readonly user: number; readonly name: string }): string {
  return `${user} ${name}`
}

function removeChannel(contents: Contents, channel: number): void {
  const { channels, numbers, bindings, places, stops, results, blocks, settled, gaps, dials } = contents
  channels.delete(channel)
  dials.delete(channel)
  numbers.delete(channel)
  for (const [id, { row }] of blocks) {
    if (row[1] !== channel) continue
    blocks.delete(id)
    settled.delete(id)
  }
  for (const [id, row] of gaps) if (row[1] === channel) gaps.delete(id)
  for (const map of [bindings, places, stops]) {
    for (const [key, row] of map) if (row.channel === channel) map.delete(key)
  }
  for (const [id, row] of results) if (row.channel === channel) results.delete(id)
}

function pair({ channel, metric }: Pair): string {
  return `${channel} ${metric}`
}

function* rowsOf(numbers: Float64Array, width: number): Generator<number[]> {
  for (let at = 0; at < numbers.length; at += width) yield [...numbers.subarray(at, at + width)]
}
