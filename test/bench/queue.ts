/**
 * The channel queue by itself: values in, out by the outbox, committed, stored by SQLite in its worker with fsync. No
 * sockets. One turn takes in what a feed of 2-byte values gives in 16 KiB, as the server's feeds do, and feeds pause
 * while more than 16 MiB wait to be stored.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { FRAME_TRANSACTION, GAP_FRAME_BYTES } from '../../protocol/monitor/message.ts'
import { getUint53 } from '../../server/kernel/channels/block.ts'
import { Inlets } from '../../server/kernel/channels/inlets.ts'
import { Journal } from '../../server/kernel/channels/journal.ts'
import { noDrops } from '../../server/kernel/channels/ledger.ts'
import { type ChannelConnection, Outbox } from '../../server/kernel/channels/outbox.ts'
import { Pool } from '../../server/kernel/channels/pool.ts'
import { Queue } from '../../server/kernel/channels/queue.ts'
import { TurnScheduler } from '../../server/kernel/channels/turn-scheduler.ts'
import { systemClock } from '../../server/kernel/core/clock.ts'
import { framePrefix } from '../../server/kernel/metrics/instance.ts'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import { type Batch, BLOCK_WIDTH } from '../../storage/store.ts'
import { optionsIn } from '../rig/options.ts'

const SERIES = 100
const FRAME_BYTES = 124
const VALUES_PER_TURN = 8192
const UNSTORED_BYTES = 16 << 20
const SETTINGS = {
  durable: true,
  window: 65_536,
  windowBytes: 8 << 20,
  maxBytes: 64 << 20,
  maxAgeMs: 7 * 86_400_000,
  overflow: 'drop-oldest',
} as const

interface Options {
  readonly values: number
  readonly fan: number
  readonly shuffle: number
  readonly through: boolean
  /** The consumer commits only what is stored: every block is written. */
  readonly writeAll: boolean
  readonly absent: boolean
  /** The consumer comes when all values are there. */
  readonly late: boolean
  readonly dir: string
}

export async function benchQueue(args: string[]): Promise<object> {
  const options = optionsOf(args)
  const directory = mkdtempSync(join(options.dir, 'cinnabar-bench-'))
  try {
    return await new Run(options, directory).run()
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** How many values there are if nobody says it: those of a consumer that comes late all wait in the channel. */
const [VALUES, LATE_VALUES] = [10_000_000, 500_000]

function optionsOf(args: string[]): Options {
  const flags = { through: false, 'write-all': false, absent: false, late: false }
  const given = optionsIn(args, { values: 0, fan: 1, shuffle: 0, dir: tmpdir(), ...flags })
  const values = given.values || (given.late ? LATE_VALUES : VALUES)
  return { ...given, values, writeAll: given['write-all'] }
}

/** Takes what an outbox writes and commits it value by value, not before the next turn. */
class Consumer implements ChannelConnection {
  readonly queue: Queue
  readonly #options: Options
  readonly #journal: Journal
  #sent: { first: number; last: number; mark: number }[] = []
  #shuffled: number[] = []
  committed = 0
  readonly undrained = 0
  readonly behind = false

  constructor(queue: Queue, options: Options, journal: Journal) {
    this.queue = queue
    this.#options = options
    this.#journal = journal
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    written()
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const first = getUint53(view, FRAME_TRANSACTION)
    const isGap = bytes.length === GAP_FRAME_BYTES
    const last = isGap ? first : getUint53(view, bytes.length - FRAME_BYTES + FRAME_TRANSACTION)
    const mark = this.#options.writeAll ? this.#journal.mark() : 0
    this.#sent.push({ first, last, mark })
  }

  writeAnswers(): void {}
  notice(): void {}
  end(): void {}

  commit(): void {
    const { through, shuffle } = this.#options
    const due = this.#sent.filter(({ mark }) => mark <= this.#journal.durable)
    this.#sent = due.length === this.#sent.length ? [] : this.#sent.slice(due.length)
    for (const { first, last } of due) {
      this.committed += last - first + 1
      if (through) this.queue.commit(last, true)
      else if (shuffle > 0) this.#shuffle(first, last)
      else for (let id = first; id <= last; id++) this.queue.commit(id, false)
    }
  }

  #shuffle(first: number, last: number): void {
    for (let id = first; id <= last; id++) {
      this.#shuffled.push(id)
      if (this.#shuffled.length === this.#options.shuffle) this.#flush()
    }
  }

  /** Nothing more comes: commits the rest; true when nothing is left. */
  finish(): boolean {
    this.#flush()
    return this.queue.empty
  }

  #flush(): void {
    const ids = this.#shuffled
    this.#shuffled = []
    for (let left = ids.length; left > 0; left--) {
      const at = Math.floor(Math.random() * left)
      this.queue.commit(ids[at] as number, false)
      ids[at] = ids[left - 1] as number
    }
  }
}

class Run {
  readonly #options: Options
  readonly #store: SqliteStore
  readonly #journal: Journal
  readonly #clock = systemClock()
  readonly #turn = new TurnScheduler(this.#clock)
  readonly #consumers: Consumer[] = []
  readonly #outboxes: Outbox[] = []
  readonly #host = {
    pool: new Pool(),
    inlets: new Inlets(),
    id: 0,
    now: 0,
    unstored: 0,
    refused: 0,
    accepted: 0,
    sent: 0,
    dropped: noDrops(),
    refusing: undefined,
    refusesAbove: Number.POSITIVE_INFINITY,
    nextId(): number {
      return ++this.id
    },
    age(): number {
      return this.now
    },
    stamp(): number {
      return this.now
    },
  }
  readonly #heads = Array.from({ length: SERIES }, (_, index) => headOf(index))
  readonly #tail = tailOf()
  /** Values by block id, to count those that were written. */
  readonly #rows = new Map<number, number>()
  #writtenValues = 0
  #failure: Error | undefined

  constructor(options: Options, directory: string) {
    this.#options = options
    this.#store = new SqliteStore({ directory })
    const clock = { age: () => this.#host.now, wallMs: () => Date.now() }
    this.#journal = new Journal({ write: (batch) => this.#write(batch) }, this.#turn, clock)
  }

  async run(): Promise<object> {
    const { values, fan, absent, late } = this.#options
    await this.#store.open({
      onDurable: (number) => this.#journal.onDurable(number),
      onFull: () => this.#fail(new Error('the disk is full')),
      onRoom: () => {},
      onFailed: (error) => this.#fail(error),
    })
    for (let index = 0; index < fan; index++) this.#addChannel(index + 1)
    if (!absent && !late) this.#attach()
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const cpu = process.cpuUsage()
    const start = performance.now()
    await this.#feed(Math.ceil(values / fan))
    const lateStart = performance.now()
    if (late) this.#attach()
    if (!absent) await this.#turns(() => this.#consumers.every((consumer) => consumer.finish()))
    await this.#turns(() => !this.#journal.busy)
    const end = performance.now()
    const { user, system } = process.cpuUsage(cpu)
    delay.disable()
    await this.#store.close()
    const status = this.#consumers.map(({ queue }) => queue.status())
    const accepted = status.reduce((sum, { accepted }) => sum + accepted, 0)
    const seconds = (end - (late ? lateStart : start)) / 1000
    return {
      values: accepted,
      dropped: status.reduce((sum, { dropped }) => sum + dropped.overflow, 0),
      seconds: seconds.toFixed(2),
      valuesPerSecond: Math.round(accepted / seconds),
      cpuPerMillion: ((user + system) / accepted).toFixed(3),
      writtenShare: (this.#writtenValues / accepted).toFixed(3),
      peakRssMiB: Math.round(process.resourceUsage().maxRSS / 1024),
      loopDelayP99Ms: (delay.percentile(99) / 1e6).toFixed(1),
    }
  }

  #addChannel(id: number): void {
    const journal = this.#journal
    // Waiting for the disk must not be waiting for the window.
    const settings = this.#options.writeAll ? { ...SETTINGS, window: 1 << 20, windowBytes: 64 << 20 } : SETTINGS
    const queue: Queue = new Queue(id, 1, settings, this.#host, {
      changed: () => journal.touch(queue),
      ready: () => outbox.wake(),
      awaited() {},
      resultGone: () => {},
    })
    const outbox = new Outbox({
      tenant: 'load',
      queue,
      turn: this.#turn,
      clock: this.#clock,
      read: async (blocks) => (await this.#store.read(blocks.map(({ id }) => id))).map(({ bytes }) => bytes),
      standstill: () => {},
      failed: (error) => {
        throw error
      },
    })
    this.#consumers.push(new Consumer(queue, this.#options, journal))
    this.#outboxes.push(outbox)
  }

  #attach(): void {
    this.#outboxes.forEach((outbox, index) => {
      outbox.attach(this.#consumers[index] as Consumer)
    })
  }

  /** Values come, a slice in each turn. */
  async #feed(values: number): Promise<void> {
    const perTurn = Math.max(1, Math.floor(VALUES_PER_TURN / this.#options.fan))
    let fed = 0
    await this.#turns(() => {
      if (this.#host.unstored > UNSTORED_BYTES) return false
      const end = Math.min(values, fed + perTurn)
      for (; fed < end; fed++) {
        const head = this.#heads[fed % SERIES] as Uint8Array
        for (const { queue } of this.#consumers) queue.append(0, head, this.#tail, 1_700_000_000_000_000 + fed)
        if (this.#options.absent && fed % 1_000_000 === 0) this.#report(fed)
      }
      return fed === values
    })
  }

  #report(values: number): void {
    console.log(`${values / 1_000_000} million values: RSS ${Math.round(process.memoryUsage.rss() / 1048576)} MiB`)
  }

  /** Goes through turns of the loop until `done`. What was sent in one turn is committed in the next. */
  #turns(done: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        if (this.#failure !== undefined) {
          reject(this.#failure)
          return
        }
        this.#host.now = performance.now()
        for (const consumer of this.#consumers) consumer.commit()
        if (done()) resolve()
        else setImmediate(turn)
      }
      turn()
    })
  }

  #write(batch: Batch): void {
    for (const id of batch.removed) this.#rows.delete(id)
    for (let at = 0; at < batch.blocks.length; at += BLOCK_WIDTH) {
      const id = batch.blocks[at] as number
      const count = batch.blocks[at + 4] as number
      this.#writtenValues += count - (this.#rows.get(id) ?? 0)
      this.#rows.set(id, count)
    }
    this.#store.write(batch)
  }

  #fail(error: Error): void {
    this.#failure = error
  }
}

/** As a pattern over feeds gives it: name and source stand in the value. */
function headOf(series: number): Uint8Array {
  const labels = { name: `smon.reading.${String(series).padStart(4, '0')}`, source: 'bench-feed-1' }
  return framePrefix(7, labels, new Set(['name', 'source'] as const))
}

function tailOf(): Uint8Array {
  return new XdrWriter().uint32(BasicType.DOUBLE).double(20.5).copy()
}
