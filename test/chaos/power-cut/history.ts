/**
 * What the process under test says about itself, one line each, in the order in which it happened: what was promised to
 * whom, and what was sent. A batch is named by a running number that is also its wall clock in the store.
 */
import type { Batch } from '../../../storage/store.ts'

export type Line =
  | { readonly on: 'begun'; readonly pid: number }
  /** The store was opened: at the start, or again after a clean end. */
  | { readonly on: 'opened' }
  /** Channel made, with batch `batch` at the latest. `reported`: every loss on it is reported by a GAP with a count. */
  | { readonly on: 'channel'; readonly channel: number; readonly reported: boolean; readonly batch: number }
  /** In batch `batch` at the latest the channel is gone. */
  | { readonly on: 'deleted'; readonly channel: number; readonly batch: number }
  /** Values accepted; id 0: not known yet. */
  | {
      readonly on: 'given'
      readonly channel: number
      readonly values: readonly (readonly [counter: number, metric: number, id: number])[]
    }
  /** Values and GAPs that a consumer has read. */
  | {
      readonly on: 'sent'
      readonly channel: number
      readonly values: readonly (readonly [counter: number, id: number])[]
      readonly gaps: readonly (readonly [id: number, count: number])[]
    }
  | { readonly on: 'committed'; readonly channel: number; readonly ids: readonly number[]; readonly batch: number }
  | { readonly on: 'stopped'; readonly channel: number; readonly metric: number }
  | { readonly on: 'written'; readonly batch: number }
  /** Answered: the batch is durable, and on each channel everything up to an id is stored. */
  | {
      readonly on: 'durable'
      readonly batch: number
      readonly stored: readonly (readonly [channel: number, through: number])[]
    }
  | { readonly on: 'full' | 'room' | 'end' }
  | { readonly on: 'failed'; readonly code: string; readonly message: string }

/** What is known of a channel at a moment. */
export class Account {
  readonly reported: boolean
  /** It is there from one batch until before another. */
  readonly made: number
  deleted = Number.POSITIVE_INFINITY
  /** By counter. */
  readonly ids = new Map<number, number>()
  readonly metrics = new Map<number, number>()
  /** By id: what a consumer has seen under it. */
  readonly seen = new Map<number, number>()
  readonly gaps = new Map<number, number>()
  /** Ids whose COMMIT was sent, by the batch that holds it. */
  readonly committed = new Map<number, number>()
  readonly stopped = new Set<number>()
  stored = 0
  highest = 0

  constructor(reported: boolean, made: number) {
    this.reported = reported
    this.made = made
  }
}

/** The history up to a line. */
export class Known {
  readonly accounts = new Map<number, Account>()
  /** The last batch that was answered, and the last that was begun. */
  durable = 0
  written = 0

  add(line: Line): void {
    if (line.on === 'written') this.written = line.batch
    if (line.on === 'durable') this.#durable(line)
    if (line.on === 'channel') this.accounts.set(line.channel, new Account(line.reported, line.batch))
    if (!('channel' in line)) return
    const account = this.accounts.get(line.channel)
    if (account === undefined) throw new Error(`the history knows no channel ${line.channel}`)
    if (line.on === 'deleted') account.deleted = line.batch
    else addTo(account, line)
  }

  #durable(line: Extract<Line, { on: 'durable' }>): void {
    this.durable = line.batch
    for (const [channel, through] of line.stored) {
      const account = this.accounts.get(channel)
      if (account !== undefined) account.stored = through
    }
  }
}

function addTo(account: Account, line: Extract<Line, { channel: number }>): void {
  if (line.on === 'given') {
    for (const [counter, metric, id] of line.values) {
      account.metrics.set(counter, metric)
      if (id > 0) account.ids.set(counter, id)
    }
  } else if (line.on === 'sent') {
    for (const [counter, id] of line.values) {
      account.ids.set(counter, id)
      account.seen.set(id, counter)
      account.highest = Math.max(account.highest, id)
    }
    for (const [id, count] of line.gaps) {
      account.gaps.set(id, count)
      account.highest = Math.max(account.highest, id)
    }
  } else if (line.on === 'committed') {
    for (const id of line.ids) if (!account.committed.has(id)) account.committed.set(id, line.batch)
  } else if (line.on === 'stopped') {
    for (const [counter, metric] of account.metrics) if (metric === line.metric) account.stopped.add(counter)
  }
}

/** A batch as a line of text and back. */
export function batchToText({ data, dataLength, changes, reserves, number, age, wall, ...arrays }: Batch): string {
  const rows = Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, [...(array as Float64Array)]]))
  const bytes = Buffer.from(data, 0, dataLength).toString('base64')
  return JSON.stringify({ ...rows, data: bytes, changes, reserves, number, age, wall })
}

export function batchFromText(text: string): Batch {
  const { data, changes, reserves, number, age, wall, ...rows } = JSON.parse(text)
  const bytes = new Uint8Array(Buffer.from(data, 'base64'))
  const arrays = Object.entries(rows).map(([name, row]) => [name, Float64Array.from(row as number[])])
  const rest = { changes, reserves, number, age, wall }
  return { ...Object.fromEntries(arrays), data: bytes.buffer, dataLength: bytes.length, ...rest }
}
