/**
 * Opens a data directory with the store's own code, in this thread, and holds it against the history: the state is that
 * of one batch, whole, not older than the last that was answered; everything promised is delivered or reported; no id comes
 * twice.
 */
import { isDeepStrictEqual } from 'node:util'
import { recover } from '../../../storage/sqlite/damage/recovery.ts'
import { openDatabase } from '../../../storage/sqlite/database.ts'
import { DiskReserve, freeBytes } from '../../../storage/sqlite/disk-space.ts'
import { openTables } from '../../../storage/sqlite/tables.ts'
import { Writer, type WriterEvents } from '../../../storage/sqlite/writer.ts'
import { type Batch, BLOCK_WIDTH, CHANNEL_WIDTH, type Recovered } from '../../../storage/store.ts'
import { applyBatch } from '../../support/memory-store/changes.ts'
import { type Contents, emptyContents, recovered as recoveredOf } from '../../support/memory-store/contents.ts'
import type { Account, Known } from './history.ts'
import { deliver, headOf, isDamage, nextIdOf, Queues, type ToldGap, tailOf, type Value } from './queues.ts'

/** Above all counters of a script. */
const PROBE = 900_000_001
/** Which of the numbers of a channel says up to where its ids are reserved. */
const RESERVED = 3

export interface Opened {
  readonly recovered: Recovered
  read(block: number): Uint8Array | undefined
  /** Throws what the store would fail with. */
  write(batch: Batch): void
  /** What `PRAGMA integrity_check` says. */
  integrity(): string
  close(): void
}

const PATIENT = { retryMs: 1e8, idleMs: 1e8, checkpointPages: 1e6 }
const events: WriterEvents = {
  durable() {},
  full() {},
  room() {},
  failed(error) {
    throw error
  },
}

export function openState(directory: string): Opened {
  const opened = openDatabase({ directory, synchronous: 'normal' })
  const { database, begin, close } = opened
  try {
    const tables = openTables(database)
    const recovered = recover(opened, tables)
    begin()
    return {
      recovered,
      read: (block) => tables.blocks.read(block),
      write(batch) {
        const reserve = new DiskReserve(directory, 0)
        const space = () => freeBytes(directory)
        const writer = new Writer({
          database,
          freeBytes: space,
          tables,
          reserve,
          generation: opened.generation,
          events,
          ...PATIENT,
        })
        writer.write(batch)
        writer.close()
      },
      integrity: () => String(database.pragma('integrity_check', { simple: true })),
      close,
    }
  } catch (error) {
    close('untouched')
    throw error
  }
}

/** What the store has to hold after each batch, by replaying them in memory. */
export class Expected {
  readonly #batches: ReadonlyMap<number, Batch>
  readonly #contents: Contents = emptyContents()
  #at = 0
  readonly #states = new Map<number, { recovered: Recovered; frames: Map<number, Uint8Array> }>()

  constructor(batches: readonly Batch[]) {
    this.#batches = new Map(batches.map((batch) => [batch.wall, batch]))
  }

  after(batch: number): { recovered: Recovered; frames: Map<number, Uint8Array> } {
    while (this.#at <= batch) {
      const next = this.#batches.get(this.#at)
      if (next !== undefined) applyBatch(this.#contents, next)
      const frames = new Map([...this.#contents.blocks].map(([id, { bytes }]) => [id, bytes]))
      this.#states.set(this.#at++, { recovered: recoveredOf(this.#contents), frames })
    }
    const state = this.#states.get(batch)
    if (state === undefined) throw new Error(`there is no batch ${batch}`)
    return state
  }
}

export interface Delivered {
  readonly values: Value[]
  readonly gaps: ToldGap[]
  /** The id that the next value gets. */
  readonly next: number
}

/** What consumers get from it, channel by channel; then a value more on each. */
export function deliverAll({ recovered, read }: Pick<Opened, 'recovered' | 'read'>): Map<number, Delivered> {
  const queues: Queues = new Queues(
    (batch) => queues.journal.onDurable(batch.number),
    () => 0,
  )
  queues.restore(recovered)
  const delivered = new Map<number, Delivered>()
  for (const [id, queue] of queues.byId) {
    queue.markChanged()
    queues.journal.atTurnEnd()
    const frames = deliver(queue, read)
    const next = nextIdOf(queue)
    queue.append(0, headOf(1), tailOf(PROBE), PROBE)
    queues.journal.atTurnEnd()
    const probe = deliver(queue, read)
    // A channel that is full and drops what is new tells it.
    if (probe.length === 0) throw new Error(`channel ${id}: a value is neither taken nor reported`)
    const values = frames.filter((frame) => frame.kind === 'value')
    const gaps = frames.filter((frame) => frame.kind === 'gap')
    if (queue.imbalance !== 0) throw new Error(`channel ${id}: the ledger is off by ${queue.imbalance}`)
    delivered.set(id, { values, gaps, next })
  }
  return delivered
}

/** Throws an Error that says what is wrong. */
export function checkState(opened: Opened, known: Known, expected: Expected): void {
  const integrity = opened.integrity()
  if (integrity !== 'ok') throw new Error(`integrity_check: ${integrity}`)
  const { recovered } = opened
  const batch = recovered.wall
  if (batch < known.durable) throw new Error(`batch ${known.durable} was answered, the store has only batch ${batch}`)
  if (batch > known.written) throw new Error(`the store has batch ${batch}, only ${known.written} were begun`)
  sameState(opened, expected.after(batch))
  const delivered = deliverAll(opened)
  for (const [channel, account] of known.accounts) {
    const got = delivered.get(channel)
    if (got !== undefined) {
      checkChannel(channel, account, got, batch)
      if (got.gaps.some(isDamage)) throw new Error(`channel ${channel}: damage is reported where there is none`)
    } else if (account.made <= batch && account.deleted > batch) throw new Error(`channel ${channel} is gone`)
  }
}

function sameState(opened: Opened, { recovered, frames }: ReturnType<Expected['after']>): void {
  for (const [part, wanted] of Object.entries(recovered)) {
    const found = opened.recovered[part as keyof Recovered]
    // What is examined is a copy, which is another generation.
    if (part === 'secret' || part === 'generation' || part === 'restored') continue
    if (part === 'numbers') sameNumbers(found as Float64Array, wanted as Float64Array, recovered.wall)
    else if (!isDeepStrictEqual(plain(found), plain(wanted)))
      throw new Error(`${part} are not those of batch ${recovered.wall}`)
  }
  const { blocks } = opened.recovered
  for (let at = 0; at < blocks.length; at += BLOCK_WIDTH) {
    const id = blocks[at] as number
    const [found, wanted] = [opened.read(id), frames.get(id)]
    if (found === undefined || wanted === undefined || Buffer.compare(found, wanted) !== 0)
      throw new Error(`block ${id} is not that of batch ${recovered.wall}`)
  }
}

/** A log that is torn has ids skipped: the more may be reserved. */
function sameNumbers(found: Float64Array, wanted: Float64Array, batch: number): void {
  const isSame = (value: number, at: number): boolean =>
    at % CHANNEL_WIDTH === RESERVED ? value >= (wanted[at] as number) : value === wanted[at]
  if (found.length !== wanted.length || !found.every(isSame)) throw new Error(`numbers are not those of batch ${batch}`)
}

/** Bitmaps are Buffers in one store and Uint8Arrays in the other. */
function plain(part: Recovered[keyof Recovered]): unknown {
  if (!(part instanceof Map)) return part
  return [...part].map(([id, bits]) => [id, [...bits]]).sort((a, b) => Number(a[0]) - Number(b[0]))
}

/** What was promised on a channel against what it delivers. `batch`: what is known to have survived. */
export function checkChannel(
  channel: number,
  account: Account,
  { values, gaps, next }: Delivered,
  batch: number,
): void {
  const fail = (what: string): never => {
    throw new Error(`channel ${channel}: ${what}`)
  }
  const delivered = new Set<number>()
  for (const { id, counter, intact } of values) {
    if (!account.metrics.has(counter)) fail(`${counter} was never given`)
    if (!intact) fail(`the bytes of ${counter} are wrong`)
    if (delivered.has(counter)) fail(`${counter} comes twice`)
    delivered.add(counter)
    const [under, seen] = [account.ids.get(counter), account.seen.get(id)]
    if (seen !== undefined && seen !== counter) fail(`id ${id} was that of ${seen}, now of ${counter}`)
    // Before it was sent an id may be lost with the batch that holds it, and given again.
    if (account.seen.has(under ?? 0) && under !== id) fail(`${counter} had id ${under}, now ${id}`)
    const settled = account.committed.get(id)
    if (settled !== undefined && settled <= batch) fail(`${counter}, committed and answered, comes again`)
  }
  if (next <= account.highest) fail(`the next id is ${next}, but ${account.highest} was sent`)
  // A GAP that was read and comes again tells the same.
  const reported = new Map([...account.gaps, ...gaps.map(({ id, count }) => [id, count] as const)])
  const missing: number[] = []
  for (const [counter, id] of account.ids) {
    const open = id <= account.stored && !account.committed.has(id) && !account.stopped.has(counter)
    if (open && !delivered.has(counter)) missing.push(id)
  }
  const losses = [...reported.values()].reduce((sum, count) => sum + count, 0)
  if (account.reported && missing.length > losses) {
    const ids = missing.sort((a, b) => a - b).join(' ')
    fail(`stored values are missing and ${losses} were reported, not ${missing.length}: ids ${ids}`)
  }
}
