/** A history in memory, for tests of what is recorded: it keeps what was committed, and forgets the rest at a crash. */
import type {
  HistoryBatch,
  HistoryFigures,
  HistoryLimits,
  HistoryLoss,
  HistoryPosition,
  HistoryReadError,
  HistorySeries,
  HistoryStore,
} from '../../../../storage/history/store.ts'
import { StorageError } from '../../../../storage/store.ts'

interface State {
  /** As `tenant: name{labels} value time`; stale markers have the value `stale`. */
  readonly samples: string[]
  readonly losses: HistoryLoss[]
  readonly positions: Map<string, HistoryPosition>
}

const STALE = 0x7ff0000000000002n

export class FakeHistoryStore
  implements
    Pick<
      HistoryStore,
      | 'seriesOf'
      | 'positionOf'
      | 'append'
      | 'commit'
      | 'work'
      | 'removeTenant'
      | 'limit'
      | 'figures'
      | 'close'
      | 'uncommitted'
    >
{
  /** How many series may be there. */
  most = Number.POSITIVE_INFINITY
  isFull = false
  isLocked = false
  /** Whether work in the background finds no room. */
  isFullForWork = false
  /** Why work in the background fails. */
  unreadable: HistoryReadError | undefined
  commits = 0
  /** How many calls of `commit` store new series alone. */
  calls = 0
  /** Slices of work that are to be done. */
  slices = 0
  isClosed = false
  readonly asked: HistorySeries[] = []
  readonly lossesOfServer: HistoryLoss[] = []
  #durable: State
  #state: State
  readonly #references: string[] = []

  constructor(durable: State = { samples: [], losses: [], positions: new Map() }) {
    this.#durable = durable
    this.#state = copyOf(durable)
  }

  /** What is left of it when the process dies now. */
  crash(): FakeHistoryStore {
    return new FakeHistoryStore(this.#durable)
  }

  get samples(): readonly string[] {
    return this.#durable.samples
  }

  get losses(): readonly HistoryLoss[] {
    return this.#durable.losses
  }

  get uncommitted(): number {
    return this.#state.samples.length - this.#durable.samples.length
  }

  seriesOf(series: HistorySeries): number | undefined {
    this.asked.push(series)
    const { tenant, name, labels } = series
    const text = `${tenant}: ${name}{${labels.map(([label, value]) => `${label}=${value}`).join(',')}}`
    const known = this.#references.indexOf(text)
    if (known >= 0) return known
    if (this.#references.length >= this.most) return undefined
    return this.#references.push(text) - 1
  }

  positionOf(tenant: string): HistoryPosition | undefined {
    return this.#state.positions.get(tenant)
  }

  append({ tenant, position, series, times, values, length, losses }: HistoryBatch): number {
    const bits = new BigUint64Array(values.buffer)
    for (let at = 0; at < length; at++) {
      const value = bits[at] === STALE ? 'stale' : values[at]
      this.#state.samples.push(`${this.#references[series[at] as number]} ${value} ${times[at]}`)
    }
    // What belongs to no tenant has losses of its own.
    if (tenant === '') this.lossesOfServer.push(...losses)
    else this.#state.losses.push(...losses)
    if (position !== undefined) this.#state.positions.set(tenant, position)
    return length
  }

  commit(): boolean {
    if (this.isFull) throw new StorageError('FULL', 'the disk is full')
    if (this.isLocked) throw new StorageError('LOCKED', 'another program holds a lock')
    this.commits++
    if (this.calls > 0) {
      this.calls--
      return false
    }
    this.#durable = copyOf(this.#state)
    return true
  }

  work(): boolean {
    if (this.isFullForWork) throw new StorageError('FULL', 'the disk is full for a file')
    if (this.unreadable !== undefined) throw this.unreadable
    if (this.slices > 0) this.slices--
    return this.slices > 0
  }

  removeTenant(tenant: string): void {
    this.#state.positions.delete(tenant)
    const left = this.#state.samples.filter((sample) => !sample.startsWith(`${tenant}: `))
    this.#state.samples.splice(0, Number.POSITIVE_INFINITY, ...left)
    this.#durable = copyOf(this.#state)
  }

  limit(_: HistoryLimits): void {}

  figures(): HistoryFigures {
    const none = { refusedSeries: 0, refusedSamples: 0, tooOld: 0, late: 0, daysOverBytes: 0, damagedPages: 0 }
    const empty = { series: 0, samples: 0, bytes: 0, oldestMs: undefined }
    const tenants = new Map([...this.#state.positions.keys()].map((tenant) => [tenant, empty]))
    return { tenants, bytes: 0, merges: 0, ...none }
  }

  close(): void {
    this.isClosed = true
  }
}

function copyOf({ samples, losses, positions }: State): State {
  return { samples: [...samples], losses: [...losses], positions: new Map(positions) }
}
