/**
 * What the thread of the history does: it takes frames of channels, and stores samples together with the position up to which the
 * channel was taken. What comes again after a crash stands at or before that position, and is passed over.
 */
import type { HistoryBatch, HistoryLoss, HistoryPosition, HistoryStore } from '../../../storage/history/store.ts'
import { BackgroundWork, passing } from './background.ts'
import { SampleColumns } from './columns.ts'
import { ChannelDecoder } from './decoder.ts'
import type { Beginning, Figures, FromThread, TenantFigures, ToThread } from './messages.ts'
import { FIRST_TENANT, noRecorded, SERVER } from './messages.ts'
import { type QueryServices, ThreadQueries } from './queries.ts'
import { type TaskStore, ThreadTasks } from './tasks.ts'

/** What waits for a commit is at most this part of the window of its channel: the rest goes on meanwhile. */
const PART = 4

export interface RecorderServices extends QueryServices {
  /** The memory of the buffers goes over to the server. */
  readonly post: (message: FromThread, buffers?: readonly ArrayBuffer[]) => void
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Has something done after the messages that are there. */
  readonly later: (act: () => void) => void
  /** Everything is closed. */
  readonly ended: () => void
}

/** `commit` may wait for something else; then it calls `HistoryRecorder.goOn`. */
export type RecordedStore = HistoryStore & Pick<TaskStore, 'isWaiting'>

interface Recorded {
  /** The one that it has now. */
  connection: number
  readonly channel: number
  readonly tenant: string
  readonly generation: string
  readonly decoder: ChannelDecoder
  /** Values, and bytes of them, that may be sent and not committed. */
  window: number
  windowBytes: number
  /** Those that were taken since the last commit. */
  bytes: number
  /** What the store was given. */
  appended: number
  /** What this connection has come to with what is being stored. */
  storing: number
  /** What this connection was told of. */
  reported: number
}

export class HistoryRecorder {
  readonly #store: RecordedStore
  readonly #services: RecorderServices
  readonly #queries: ThreadQueries
  readonly #tasks: ThreadTasks
  readonly #background: BackgroundWork
  readonly #channels = new Map<number, Recorded>()
  /** By the number of the connection. */
  readonly #connected = new Map<number, Recorded>()
  /** What was said last; undefined before the first commit. */
  #problem: string | undefined
  /** Why nothing can be stored; empty if it can. */
  #storeProblem = ''
  /** What was appended is not stored yet. */
  #isStoring = false
  /** It goes on later. */
  #isLater = false
  /** More was taken meanwhile that is to be stored, and what is to be done when it is. */
  #isWanted = false
  #afterwards: (() => void)[] = []
  #isClosed = false

  constructor(store: RecordedStore, services: RecorderServices) {
    this.#store = store
    this.#services = services
    this.#queries = new ThreadQueries(store, services)
    this.#tasks = new ThreadTasks(store, services)
    this.#background = new BackgroundWork(store, { ...services, changed: () => this.#report() })
  }

  /** What it throws, nothing but a new thread can mend. */
  handle(message: ToThread): void {
    switch (message.kind) {
      case 'begin':
        this.#begin(message)
        break
      case 'bind':
        this.#connected.get(message.connection)?.decoder.bind(message.metrics)
        break
      case 'values':
        this.#take(message.connection, message.bytes)
        break
      case 'commit':
        // Somebody may read it now.
        this.#commit()
        this.#askAbout()
        break
      case 'tick':
        this.#queries.sweep()
        this.#commit()
        this.#askAbout()
        // Where there is no room, it makes some.
        this.#background.begin()
        break
      case 'tenants':
        this.#keepOnly(message.tenants, message.generation)
        break
      case 'limit':
        this.#store.limit(message.limits)
        break
      case 'figures':
        this.#services.post({ kind: 'figures', figures: this.#figures() })
        break
      case 'described':
        for (const metric of message.metrics) this.#store.describe(message.tenant, metric)
        break
      case 'request':
        // Up to now.
        this.#commit(() => this.#tasks.handle(message))
        break
      case 'close':
        this.#close()
        break
      case 'news':
        this.#queries.news.handle(message)
        break
      case 'queries':
        this.#queries.handleAll(message.queries)
        break
      default:
        this.#queries.handle(message)
    }
  }

  #begin(beginning: Beginning): void {
    const { connection, channel, tenant, generation: ids, owner, window, windowBytes } = beginning
    const generation = `${ids} ${owner}`
    const before = this.#channels.get(channel)
    if (before !== undefined) this.#connected.delete(before.connection)
    if (before?.tenant === tenant && before.generation === generation) {
      // What was taken and is not stored yet comes again too.
      Object.assign(before, { connection, window, windowBytes, storing: 0, reported: 0 })
      before.decoder.seen = 0
      this.#connected.set(connection, before)
      return
    }
    this.#endOthers(tenant)
    const position = this.#positionOf(tenant, ids, generation)
    const isSame = position?.generation === generation && position.channel === channel
    const taken = isSame ? position.transaction : 0
    const decoder = new ChannelDecoder(this.#store, taken, position?.takenMs ?? this.#services.wallMs())
    const counts = { bytes: 0, appended: taken, storing: 0, reported: 0 }
    const recorded = { connection, channel, tenant, generation, decoder, window, windowBytes, ...counts }
    this.#channels.set(channel, recorded)
    this.#connected.set(connection, recorded)
    decoder.committed = committedOf(isSame ? position : undefined, beginning)
    if (position === undefined) return
    if (!isSame) this.#lose(decoder, position, 0, 'another channel')
    // These files are older than the database: values that the channel has committed are not in them.
    const missing = beginning.committed - decoder.committed
    if (missing > 0) {
      this.#lose(decoder, position, missing, 'older files of the history')
      decoder.committed = beginning.committed
    }
  }

  /** The channel that a tenant had before is gone; what was taken from it stays. */
  #endOthers(tenant: string): void {
    for (const [channel, recorded] of this.#channels) {
      if (recorded.tenant !== tenant) continue
      this.#append(recorded)
      this.#channels.delete(channel)
      this.#connected.delete(recorded.connection)
    }
  }

  /** Where the same ids belong to another user, the tenant was removed, and another one has its name: that one has no history. */
  #positionOf(tenant: string, ids: string, generation: string): HistoryPosition | undefined {
    const position = this.#store.positionOf(tenant)
    if (position === undefined || position.generation === generation) return position
    if (!position.generation.startsWith(`${ids} `)) return position
    this.#store.removeTenant(tenant)
    return undefined
  }

  /** What was taken between a position and now is nowhere. */
  #lose(decoder: ChannelDecoder, { takenMs }: HistoryPosition, count: number, reason: string): void {
    const toMs = Math.max(takenMs, this.#services.wallMs())
    decoder.losses.push({ native: '', fromMs: takenMs, toMs, count, reason })
  }

  #take(connection: number, bytes: Uint8Array<ArrayBuffer>): void {
    const recorded = this.#connected.get(connection)
    recorded?.decoder.decode(bytes, this.#services.wallMs())
    const { length, buffer } = bytes
    this.#services.post({ kind: 'taken', connection, bytes: length, piece: buffer }, [buffer])
    if (recorded === undefined) return
    const { decoder, window, windowBytes } = recorded
    recorded.bytes += length
    if (decoder.taken - recorded.appended >= window / PART || recorded.bytes >= windowBytes / PART) this.#commit()
  }

  /** Stores what was taken, and then does something, also if it cannot be stored now. */
  #commit(then?: () => void): void {
    if (then !== undefined) this.#afterwards.push(then)
    // What is in a log is stored as it is there.
    if (this.#isStoring && this.#store.isWaiting !== undefined) this.#isWanted = true
    else {
      for (const recorded of this.#channels.values()) {
        this.#append(recorded)
        recorded.storing = recorded.decoder.seen
      }
      this.#isStoring = true
      this.#isWanted = false
    }
    this.#storeOn()
  }

  /** What `commit` of the store has waited for is there. */
  goOn(): void {
    if (!this.#isClosed) this.#storeOn()
  }

  #storeOn(): void {
    if (this.#store.isWaiting === true) return
    try {
      if (!this.#store.commit()) {
        this.#storeLater()
        return
      }
    } catch (error) {
      // It is stored when there is room; until then no channel is committed, and none sends more than its window.
      this.#storeProblem = passing(error)
      this.#report()
      this.#doAfterwards()
      return
    }
    this.#isStoring = false
    this.#storeProblem = ''
    this.#report()
    for (const recorded of this.#channels.values()) {
      const { connection, storing } = recorded
      if (storing === recorded.reported) continue
      recorded.reported = storing
      this.#services.post({ kind: 'stored', connection, transaction: storing })
    }
    if (this.#isWanted) this.#commit()
    else this.#doAfterwards()
  }

  #doAfterwards(): void {
    for (const act of this.#afterwards.splice(0)) act()
  }

  /** Many series are new: others have their turn before the next of them are stored. */
  #storeLater(): void {
    if (this.#isLater || this.#store.isWaiting === true) return
    this.#isLater = true
    this.#services.later(() => {
      this.#isLater = false
      if (this.#isClosed) return
      if (this.#store.isWaiting === undefined) this.#commit()
      else this.#storeOn()
    })
  }

  #append(recorded: Recorded): void {
    const { channel, tenant, generation, decoder } = recorded
    const { losses, lossesOfServer } = decoder
    if (decoder.taken === recorded.appended && losses.length === 0) return
    const takenMs = this.#services.wallMs()
    // That of the channel comes last: it has the position.
    for (const [owner, columns] of decoder.columns) {
      if (owner !== tenant) this.#store.append(batchOf(owner, undefined, columns, []))
    }
    const shared = [...lossesOfServer, ...(tenant === FIRST_TENANT ? losses.flatMap(ofUnknown) : [])]
    if (shared.length > 0) this.#store.append(batchOf(SERVER, undefined, new SampleColumns(), shared))
    const columns = decoder.columns.get(tenant) ?? new SampleColumns()
    const { taken: transaction, committed } = decoder
    const position = { generation, channel, transaction, committed, takenMs }
    this.#store.append(batchOf(tenant, position, columns, [...losses]))
    recorded.appended = decoder.taken
    recorded.bytes = 0
    decoder.clear()
  }

  /** What the metrics of new series are, some at a time. */
  #askAbout(): void {
    if (this.#storeProblem !== '') return
    for (const { decoder } of this.#channels.values()) {
      const names = decoder.described.next()
      if (names !== undefined) this.#services.post({ kind: 'describe', ...names })
    }
  }

  /** A tenant that another database had, from before a restore, is not known to be removed. */
  #keepOnly(tenants: readonly string[], ids: string): void {
    for (const [channel, { tenant, connection }] of this.#channels) {
      if (tenants.includes(tenant)) continue
      this.#channels.delete(channel)
      this.#connected.delete(connection)
    }
    for (const tenant of this.#store.figures().tenants.keys()) {
      if (tenant === SERVER || tenants.includes(tenant)) continue
      const { generation = `${ids} ` } = this.#store.positionOf(tenant) ?? {}
      if (generation.startsWith(`${ids} `)) this.#store.removeTenant(tenant)
    }
  }

  #report(): void {
    const problem = this.#storeProblem || this.#background.problem
    if (problem === this.#problem) return
    this.#problem = problem
    this.#services.post({ kind: 'state', problem })
  }

  #figures(): Figures {
    const { tenants, bytes, merges, tooOld, late, daysOverBytes, damagedPages } = this.#store.figures()
    const shown = new Map<string, TenantFigures>()
    const counts = new Map([...this.#channels.values()].map(({ tenant, decoder }) => [tenant, decoder.counts]))
    for (const tenant of new Set([...tenants.keys(), ...counts.keys()])) {
      const { series = 0, samples: stored = 0, bytes = 0, oldestMs } = tenants.get(tenant) ?? {}
      shown.set(tenant, { ...(counts.get(tenant) ?? noRecorded()), series, stored, bytes, oldestMs })
    }
    return { tenants: shown, bytes, merges, tooOld, late, daysOverBytes, damagedPages }
  }

  #close(): void {
    this.#isClosed = true
    this.#background.end()
    const close = (): void => {
      // Also what has come since the last commit began.
      this.#isStoring = false
      this.#commit()
      this.#store.close()
      this.#services.ended()
    }
    const ending = this.#tasks.close()
    if (ending === undefined) close()
    else void ending.then(close)
  }
}

/**
 * What the channel has counted as committed when everything up to the position is. What was taken and then dropped counts too much,
 * but no longer than until the channel is empty; where nothing is known, so does everything that waits.
 */
function committedOf(position: HistoryPosition | undefined, { committed, unsettled }: Beginning): number {
  if (position === undefined) return committed
  const known = position.committed ?? committed + unsettled
  return unsettled === 0 ? Math.min(known, committed) : known
}

/** What is missing of an unknown metric may be of one that belongs to no tenant. How much is missing concerns the tenant alone. */
function ofUnknown(loss: HistoryLoss): HistoryLoss[] {
  return loss.native === '' ? [{ ...loss, count: 0 }] : []
}

function batchOf(
  tenant: string,
  position: HistoryPosition | undefined,
  { series, times, values, length }: SampleColumns,
  losses: HistoryBatch['losses'],
): HistoryBatch {
  return { tenant, position, series, times, values, length, losses }
}
