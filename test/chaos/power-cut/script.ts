/**
 * A random workload over real queues on the real store: values given, sent, committed in and out of order, stopped,
 * released, lost by overflow; channels made and deleted; quiet times, clean stops. Every promise goes into the history
 * the moment it is made, never later.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Queue } from '../../../server/kernel/channels/queue.ts'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import type { Batch, ChannelRow } from '../../../storage/store.ts'
import type { Random } from '../../support/random.ts'
import type { Line } from './history.ts'
import { framesIn, headOf, nextIdOf, Queues, tailOf } from './queues.ts'

const METRICS = [41, 42, 43]
const MAX_CHANNELS = 6
const PAUSE_MS = 10

export interface ScriptOptions {
  readonly directory: string
  readonly random: Random
  /** How many batches; then it ends cleanly, unless `abrupt`. */
  readonly batches: number
  readonly abrupt: boolean
  /** After so long without a batch the log is carried over and cut to nothing. */
  readonly idleMs: number
  /** At so many pages the log is carried over. */
  readonly checkpointPages: number
  readonly note: (line: Line) => void
  readonly record: (batch: Batch) => void
}

export class Script {
  readonly #options: ScriptOptions
  #store: SqliteStore
  #queues: Queues
  /** Ids that consumers have read and not committed, since they connected. */
  readonly #unsettled = new Map<number, number[]>()
  #wall = 0
  /** Batches before the journal that is there now. */
  #base = 0
  #counter = 1
  #nextChannel = 1
  #failed = false

  constructor(options: ScriptOptions) {
    this.#options = options
    this.#store = this.#newStore()
    this.#queues = this.#newQueues()
  }

  async run(): Promise<void> {
    const { batches, random, abrupt, note } = this.#options
    await this.#open()
    while (this.#wall < batches && !this.#failed) {
      for (let steps = 1 + random.below(4); steps > 0; steps--) await this.#step()
      await nextTurn()
      if (random.below(3) > 0) while (this.#queues.journal.busy && !this.#failed) await nextTurn()
    }
    if (this.#failed) await this.#store.close()
    if (this.#failed || abrupt) return
    await this.#close()
    if (!this.#failed) note({ on: 'end' })
  }

  #newStore(): SqliteStore {
    const { directory, idleMs, checkpointPages } = this.#options
    return new SqliteStore({ directory, idleMs, checkpointPages, retryMs: 5, reserveBytes: 1 << 20 })
  }

  #newQueues(): Queues {
    this.#base = this.#wall
    const write = (batch: Batch): void => {
      this.#options.record(batch)
      this.#options.note({ on: 'written', batch: batch.wall })
      this.#store.write(batch)
    }
    return new Queues(write, () => ++this.#wall)
  }

  async #open(): Promise<void> {
    const queues = this.#queues
    const { note } = this.#options
    const recovered = await this.#store.open({
      onDurable: (number) => {
        queues.journal.onDurable(number)
        note({
          on: 'durable',
          batch: this.#base + number,
          stored: [...queues.byId].map(([id, queue]): [number, number] => [id, queue.status().stored]),
        })
      },
      onFull: () => {
        queues.host.refusing = 'full'
        note({ on: 'full' })
      },
      onRoom: () => {
        queues.host.refusing = undefined
        note({ on: 'room' })
      },
      onFailed: ({ code, message }) => {
        if (this.#failed) return
        this.#failed = true
        queues.journal.stop()
        note({ on: 'failed', code, message })
      },
    })
    note({ on: 'opened' })
    queues.restore(recovered)
    for (const [id, queue] of queues.byId) {
      this.#unsettled.set(id, [])
      queue.attach()
    }
  }

  /** A clean end, as the server's. */
  async #close(): Promise<void> {
    for (const queue of this.#queues.byId.values()) queue.close()
    this.#queues.journal.change({ put: 'closed', row: {} })
    while (this.#queues.journal.busy && !this.#failed) await nextTurn()
    await this.#store.close()
  }

  async #reopen(): Promise<void> {
    await this.#close()
    if (this.#failed) return
    this.#store = this.#newStore()
    this.#queues = this.#newQueues()
    await this.#open()
  }

  async #step(): Promise<void> {
    const { random } = this.#options
    const { byId, host } = this.#queues
    if (byId.size < 2 || (byId.size < MAX_CHANNELS && random.below(40) === 0)) {
      this.#define()
      return
    }
    const [id, queue] = random.pick([...byId])
    const what = random.below(100)
    if (what < 40) this.#give(id, queue)
    else if (what < 60) await this.#send(id, queue)
    else if (what < 80) this.#commit(id, queue)
    else if (what < 84) this.#reconnect(id, queue)
    else if (what < 88) this.#release(queue)
    else if (what < 90) await this.#stop(id, queue)
    else if (what < 91) this.#delete(id)
    else if (what < 93) {
      // Longer than a channel keeps its range of ids when it is quiet.
      host.now += 11_000
      for (const one of byId.values()) one.expire()
    } else if (what < 98) await sleep(PAUSE_MS)
    else await this.#reopen()
  }

  #define(): void {
    const { random, note } = this.#options
    const id = this.#nextChannel++
    const overflow = random.pick(['drop-oldest', 'drop-oldest', 'drop-newest', 'keep-latest'] as const)
    const maxBytes = random.pick([1 << 15, 1 << 20])
    this.#queues.define({ ...rowOf(id, 1 + random.below(1000)), overflow, maxBytes })
    note({ on: 'channel', channel: id, reported: overflow !== 'keep-latest', batch: this.#mark() })
    this.#unsettled.set(id, [])
    this.#queues.byId.get(id)?.attach()
  }

  #delete(id: number): void {
    this.#queues.remove(id)
    this.#options.note({ on: 'deleted', channel: id, batch: this.#mark() })
  }

  #give(channel: number, queue: Queue): void {
    const { random, note } = this.#options
    const values: [number, number, number][] = []
    const waiting = random.below(5) === 0
    for (let count = 1 + random.below(12); count > 0; count--) {
      const metric = random.pick(METRICS)
      const counter = this.#counter++
      const [id, before] = [nextIdOf(queue), queue.status()]
      queue.append(waiting ? metric : 0, headOf(metric), tailOf(counter), counter)
      const after = queue.status()
      const taken = !waiting && after.gaps === before.gaps && nextIdOf(queue) === id + 1
      values.push([counter, metric, taken ? id : 0])
    }
    note({ on: 'given', channel, values })
  }

  async #send(channel: number, queue: Queue): Promise<void> {
    const { random, note } = this.#options
    for (let room = 1 + random.below(40_000); room > 0; ) {
      const next = queue.next(room)
      if (next.kind === 'nothing' || next.kind === 'window') return
      if (next.kind === 'load') {
        const blocks = queue.readAhead()
        const read = await this.#store.read(blocks.map(({ id }) => id)).catch(() => [])
        if (read.length === 0 || this.#queues.byId.get(channel) !== queue) return
        blocks.forEach((block, index) => {
          queue.loaded(block, read[index]?.bytes)
        })
        continue
      }
      room -= next.bytes.length
      const frames = framesIn(next.bytes)
      const values = frames.flatMap((frame) =>
        frame.kind === 'value' ? [[frame.counter, frame.id] as [number, number]] : [],
      )
      const gaps = frames.flatMap((frame) =>
        frame.kind === 'gap' ? [[frame.id, frame.count] as [number, number]] : [],
      )
      note({ on: 'sent', channel, values, gaps })
      this.#unsettled.get(channel)?.push(...frames.map(({ id }) => id))
      next.chunk?.unhold()
    }
  }

  #commit(channel: number, queue: Queue): void {
    const { random, note } = this.#options
    const sent = this.#unsettled.get(channel) ?? []
    if (sent.length === 0) return
    const through = random.below(4) === 0
    const id = sent[random.below(random.below(2) === 0 ? sent.length : Math.min(sent.length, 4))] as number
    const ids = through ? sent.filter((one) => one <= id) : [id]
    this.#unsettled.set(
      channel,
      sent.filter((one) => !ids.includes(one)),
    )
    queue.commit(id, through)
    note({ on: 'committed', channel, ids, batch: this.#mark() })
  }

  #reconnect(id: number, queue: Queue): void {
    queue.detach()
    this.#unsettled.set(id, [])
    queue.attach()
  }

  /** GET: nothing of it is sent before its response, which waits until the release is stored. */
  #release(queue: Queue): void {
    const hold = queue.holdBack()
    queue.release(this.#options.random.pick(METRICS))
    void this.#queues.journal.whenStored().then(() => hold.release())
  }

  async #stop(channel: number, queue: Queue): Promise<void> {
    const metric = this.#options.random.pick(METRICS)
    this.#options.note({ on: 'stopped', channel, metric })
    const read = async ({ id }: { id: number }) => (await this.#store.read([id]).catch(() => []))[0]?.bytes
    await queue.stop(metric, read)
    if (this.#queues.byId.get(channel) !== queue) return
    for (const [of, through] of queue.stops) {
      this.#queues.journal.change({ put: 'stop', row: { channel, metric: of, through } })
    }
  }

  /** The batch that holds everything changed so far. */
  #mark(): number {
    return this.#base + this.#queues.journal.mark()
  }
}

function rowOf(id: number, origin: number): ChannelRow {
  return {
    id,
    user: 1,
    name: '',
    url: '',
    defined: true,
    configured: true,
    durable: true,
    window: 65_536,
    windowBytes: 8 << 20,
    maxBytes: 1 << 20,
    maxAgeMs: 1e12,
    expireMs: 1e12,
    overflow: 'drop-oldest',
    origin,
    lastUsed: 0,
    paused: false,
  }
}
