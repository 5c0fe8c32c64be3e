/**
 * What one channel's consumers saw, and what the server said of it. A value is `source-counter`; both become one number, a
 * key. Nothing is judged by time: only by ids, by counters, and by what was answered before and what came after.
 */
import type { Feeds } from './checker.ts'

/** `keep`: nothing may be lost. `overflow`: as much as GAPs tell. `latest`: of each source the newest comes. */
export type Policy = 'keep' | 'overflow' | 'latest'

export type Fault = 'lost' | 'unexpected' | 'duplicate' | 'reused' | 'order' | 'committed'

const COUNTERS = 2 ** 32
const RESTART = 5

export function keyOf(source: number, counter: number): number {
  return source * COUNTERS + counter
}

interface Told {
  count: number
  readonly reason: number
}

interface Bound {
  /** The first counter that has to come: SUBSCRIBE was answered before it was sent. */
  readonly from: number
  /** By life: everything up to this counter is stored. */
  readonly solid: number[]
}

export class History {
  readonly channel: number
  readonly policy: Policy
  readonly #feeds: Feeds
  readonly #fault: (fault: Fault, what: string, count?: number) => void
  readonly #values = new Map<number, number>()
  readonly #ids = new Map<number, number>()
  readonly #gaps = new Map<number, Told>()
  readonly #asked = new Set<number>()
  readonly #committed = new Set<number>()
  readonly #bound = new Map<number, Bound>()
  /** Keys that have to come, in whatever place: copies, results. */
  readonly #owed = new Set<number>()
  /** First and last id of what was stored, life by life: what a crash skipped lies between. */
  readonly #stored: [first: number, last: number][] = []
  /** The lives in which it was looked at, and the first id of each. */
  readonly #begun: { readonly life: number; readonly first: number }[] = []
  #life: [first: number, last: number] | undefined
  /** The connection that has it: what came on it, and the last id. */
  #seen = new Set<number>()
  #last = 0
  /** The last id that ever came: connections have everything up to it between them. */
  #reached = 0
  delivered = 0
  repeated = 0

  constructor(
    channel: number,
    policy: Policy,
    feeds: Feeds,
    fault: (fault: Fault, what: string, count?: number) => void,
  ) {
    this.channel = channel
    this.policy = policy
    this.#feeds = feeds
    this.#fault = (kind, what, count) => fault(kind, `channel ${channel}: ${what}`, count)
  }

  /** SUBSCRIBE or BUFFER of this source was answered OK. */
  bind(source: number): void {
    this.#bound.set(source, { from: this.#feeds.sent(source) + 1, solid: [] })
  }

  /** A connection takes the channel, or is about to: everything that is not committed comes again. */
  connect(): void {
    this.#seen = new Set()
    this.#last = 0
  }

  /** Keys of counters on the present connection that no COMMIT was sent for. */
  uncommitted(): number[] {
    return this.pending()
      .flatMap((id) => this.#values.get(id) ?? [])
      .filter((key) => key > 0)
  }

  value(id: number, source: number, counter: number): void {
    if (counter < 1 || counter > this.#feeds.sent(source)) {
      this.#fault('unexpected', `value ${source}-${counter} (id ${id}) was never sent`)
      return
    }
    this.#entry(id, keyOf(source, counter), `${source}-${counter}`)
  }

  /** The result of an EXECUTE: a value that is no counter. */
  result(id: number, metric: number): void {
    this.#entry(id, -metric, `the result ${metric}`)
  }

  owe(keys: Iterable<number>): void {
    for (const key of keys) this.#owed.add(key)
  }

  oweResult(metric: number): void {
    this.#owed.add(-metric)
  }

  #entry(id: number, key: number, what: string): void {
    this.#comes(id, what)
    const other = this.#values.get(id)
    if (other !== undefined && other !== key)
      this.#fault('reused', `id ${id} was given to ${nameOf(other)} and to ${what}`)
    const before = this.#ids.get(key)
    if (before !== undefined && before !== id) this.#fault('duplicate', `${what} came with ids ${before} and ${id}`)
    const gap = this.#gaps.get(id)
    // A limit's GAP has the id of the last value it tells of; a crash may take the drop back. All others have their own.
    if (gap !== undefined && (gap.reason === RESTART || this.policy !== 'overflow')) {
      this.#fault('reused', `id ${id} was given to a GAP and to ${what}`)
    }
    if (before === undefined) this.delivered++
    else this.repeated++
    this.#values.set(id, key)
    this.#ids.set(key, id)
  }

  gap(id: number, count: number, reason: number): void {
    this.#comes(id, `a GAP of ${count} (reason ${reason})`)
    if (this.#values.has(id) && (reason === RESTART || this.policy !== 'overflow')) {
      this.#fault('reused', `id ${id} was given to ${nameOf(this.#values.get(id)!)} and to a GAP`)
    }
    const reported = this.#gaps.get(id)
    if (reported === undefined) this.#gaps.set(id, { count, reason })
    else if (reported.reason !== reason)
      this.#fault('reused', `id ${id} was given to GAPs of reasons ${reported.reason} and ${reason}`)
    else reported.count = Math.max(reported.count, count)
  }

  #comes(id: number, what: string): void {
    if (id <= this.#last) this.#fault('order', `${what} came with id ${id} after id ${this.#last}`)
    if (this.#committed.has(id))
      this.#fault('committed', `${what} (id ${id}) came again after its COMMIT was answered OK`)
    // It comes again, so a COMMIT that was sent for it before and not answered was not stored.
    this.#asked.delete(id)
    this.#last = id
    this.#reached = Math.max(this.#reached, id)
    this.#seen.add(id)
  }

  /** Ids of the present connection that no COMMIT was sent for, ascending. */
  pending(): number[] {
    return [...this.#seen].filter((id) => !this.#asked.has(id))
  }

  /** A COMMIT is sent. Gives the ids it settles, for `committed`. */
  committing(id: number, through: boolean): number[] {
    const ids = through ? [...this.#seen].filter((seen) => seen <= id && !this.#committed.has(seen)) : [id]
    for (const each of ids) this.#asked.add(each)
    return ids
  }

  /** The COMMIT was answered OK. */
  committed(ids: readonly number[]): void {
    for (const id of ids) this.#committed.add(id)
  }

  /** The COMMIT was answered OK by a server that was left since: another one may not have sent these again. */
  committedBefore(ids: readonly number[]): void {
    for (const id of ids) {
      if (this.#seen.has(id)) this.#fault('committed', `id ${id} came again, and then its COMMIT was answered OK`)
    }
    this.committed(ids)
  }

  /** `stored` of `producer.channels`. The first look of a life comes before anything is sent in it. */
  stored(id: number): void {
    if (this.#life === undefined) {
      this.#life = [id + 1, id]
      this.#begun.push({ life: this.#feeds.life, first: id + 1 })
    } else this.#life[1] = Math.max(this.#life[1], id)
  }

  /** `unstored` was 0: what was sent up to these counters is stored. */
  solid(counters: ReadonlyMap<number, number>): void {
    for (const [source, { solid }] of this.#bound) solid[this.#feeds.life] = counters.get(source) ?? 0
  }

  /** The server is gone: of ids given from here on nothing was said. */
  died(): void {
    if (this.#life !== undefined && this.#life[1] >= this.#life[0]) this.#stored.push(this.#life)
    this.#life = undefined
  }

  /**
   * Everything up to what came last is to be there or explained. `drained`: everything at all, and what was never
   * committed came again on this connection. To be called once, at the end.
   */
  judge(drained: boolean): void {
    this.died()
    const limit = drained ? Number.POSITIVE_INFINITY : this.#reached
    if (this.policy !== 'latest') {
      this.#judgeIds(limit)
      this.#judgeCounters(drained)
    }
    // Copies come before anything new.
    const owed = drained || this.#bringsNew() ? this.#owed : []
    for (const key of owed) if (!this.#ids.has(key)) this.#fault('lost', `${nameOf(key)} was owed and never came`)
    if (!drained) return
    if (this.policy === 'keep') this.#judgeRepeats()
    if (this.policy === 'latest') this.#judgeNewest()
  }

  #bringsNew(): boolean {
    for (const [source, { from }] of this.#bound) if (this.#ids.has(keyOf(source, from))) return true
    return false
  }

  /** Of the ids that were stored each was given to something that came, or is counted by a GAP. */
  #judgeIds(limit: number): void {
    const ids = [...this.#values.keys(), ...[...this.#gaps.keys()].filter((id) => !this.#values.has(id))].sort(
      (a, b) => a - b,
    )
    let at = 0
    let missing = 0
    let example = 0
    for (const [first, last] of this.#stored) {
      while (at < ids.length && ids[at]! < first) at++
      let expected = first
      for (; expected <= Math.min(last, limit); expected++) {
        if (ids[at] === expected) at++
        else {
          missing++
          example = expected
        }
      }
    }
    const reported = this.policy === 'overflow' ? this.#reported(Number.POSITIVE_INFINITY) : 0
    if (missing > reported)
      this.#fault(
        'lost',
        `${missing} ids were stored and never came, e.g. ${example}; ${reported} reported`,
        missing - reported,
      )
  }

  #reported(through: number): number {
    let count = 0
    for (const [id, gap] of this.#gaps) if (id <= through && gap.reason !== RESTART) count += gap.count
    return count
  }

  /** In the order of ids the counters of a source go up by one, but for the unstored end of a life, and what GAPs tell. */
  #judgeCounters(drained: boolean): void {
    const last = new Map([...this.#bound].map(([source, { from }]) => [source, from - 1]))
    const gaps = [...this.#gaps].filter(([, gap]) => gap.reason !== RESTART).sort(([a], [b]) => a - b)
    let [reported, missing, at] = [0, 0, 0]
    const jump = (source: number, to: number, id: number): void => {
      const from = last.get(source)!
      last.set(source, to)
      const lost = this.#unexplained(source, from + 1, to)
      missing += lost
      for (; at < gaps.length && gaps[at]![0] < id; at++)
        reported += this.policy === 'overflow' ? gaps[at]![1].count : 0
      if (lost > 0 && missing > reported) {
        this.#fault(
          'lost',
          `${source}-${from + 1} to ${source}-${to - 1} did not come before id ${id}; ${reported} reported`,
          missing - reported,
        )
        missing = reported
      }
    }
    for (const [id, key] of [...this.#values].sort(([a], [b]) => a - b)) {
      const source = Math.floor(key / COUNTERS)
      const before = last.get(source)
      if (key < 0 || before === undefined) continue
      const counter = key % COUNTERS
      if (counter > before) jump(source, counter, id)
      else if (counter >= this.#bound.get(source)!.from)
        this.#fault('order', `${nameOf(key)} stands after ${source}-${before}`)
    }
    if (!drained) return
    for (const source of last.keys()) jump(source, this.#feeds.sent(source) + 1, Number.POSITIVE_INFINITY)
  }

  /** How many counters of from .. to - 1 were stored, or are missing with later ones of the same life there. */
  #unexplained(source: number, from: number, to: number): number {
    let count = 0
    for (const { life, first, end } of this.#feeds.lives(source, from, to)) {
      const solid = this.#bound.get(source)!.solid[life] ?? 0
      const start = Math.max(first, from)
      const certain = to < end ? to : Math.min(end, to, solid + 1)
      count += Math.max(0, certain - start)
    }
    return count
  }

  #judgeRepeats(): void {
    let missing = 0
    let example = 0
    const isStored = (id: number): boolean => this.#stored.some(([first, last]) => id >= first && id <= last)
    for (const id of this.#values.keys()) {
      if (this.#asked.has(id) || this.#seen.has(id) || !isStored(id)) continue
      missing++
      example = id
    }
    if (missing > 0) {
      this.#fault(
        'lost',
        `${missing} values were stored, never committed, and did not come again, e.g. id ${example}`,
        missing,
      )
    }
  }

  #judgeNewest(): void {
    for (const source of this.#bound.keys()) {
      const counter = this.#feeds.sent(source)
      if (counter > 0 && !this.#ids.has(keyOf(source, counter)))
        this.#fault('lost', `the newest, ${source}-${counter}, never came`)
    }
  }

  /** How many values came on the present connection. */
  get arrived(): number {
    return [...this.#seen].filter((id) => this.#values.has(id)).length
  }

  /** Ids that were said to be stored. */
  get storedIds(): number {
    return this.#stored.reduce((sum, [first, last]) => sum + last - first + 1, 0)
  }

  get toldDrops(): number {
    return this.#reported(Number.POSITIVE_INFINITY)
  }

  /** For each GAP of a restart, the life that began with it. */
  get restartGaps(): number[] {
    return [...this.#gaps]
      .filter(([, { reason }]) => reason === RESTART)
      .map(([id]) => this.#begun.find(({ first }) => first > id)?.life ?? this.#feeds.life)
  }
}

function nameOf(key: number): string {
  return key < 0 ? `the result ${-key}` : `value ${Math.floor(key / COUNTERS)}-${key % COUNTERS}`
}
