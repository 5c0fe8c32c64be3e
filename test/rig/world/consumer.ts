/** The consumer of one channel: takes it, receives, commits as it pleases, loses its connection, comes back. */
import { command } from '../../support/bytes.ts'
import type { Random } from '../../support/random.ts'
import { decoded } from '../../support/records.ts'
import type { Checker } from './checker.ts'
import type { History } from './history.ts'
import type { Link, Message } from './link.ts'

const DELETED = 5
/** NOTICEs that mean no harm: window full, superseded, the end of the server. */
const HARMLESS = 3

export class Consumer {
  readonly history: History
  /** Metric ids bound on its channel, and whose values they stand for. */
  readonly bound = new Map<number, readonly number[]>()
  readonly #checker: Checker
  readonly #random: Random
  /** Metric ids of EXECUTE's results. */
  readonly #results = new Set<number>()
  link: Link | undefined
  /** Everything that made it was answered OK: it has to be there after any crash. */
  sure = false
  /** Its window is too small for all that waits. */
  narrow = false
  /** DEL_CHANNEL was sent: it may be gone. */
  gone = false
  /** Counts the servers that it has left. */
  #servers = 0

  constructor(history: History, checker: Checker, random: Random) {
    this.history = history
    this.#checker = checker
    this.#random = random
  }

  get channel(): number {
    return this.history.channel
  }

  /** Makes the channel current on a connection; the one it had before is superseded. False if that did not come about. */
  async take(link: Link): Promise<boolean> {
    const before = this.link
    const servers = this.#servers
    link.onMessage = (message) => this.#receive(link, message)
    const result = await link.ok(
      (seq) => command.setChannel(seq, this.channel),
      () => {
        // One that was left meanwhile has nothing to say any more.
        if (servers !== this.#servers) return
        this.link = link
        this.history.connect()
      },
    )
    if (servers !== this.#servers) return false
    if (before !== undefined && before !== link) before.close()
    return result !== undefined
  }

  /** Leaves a server that may be frozen, without closing the connection: what it still answers is judged. */
  leave(): Link | undefined {
    const { link } = this
    this.link = undefined
    this.#servers++
    this.history.connect()
    return link
  }

  /** SUBSCRIBEs or BUFFERs a metric id on its channel, from the connection that has it. */
  async bind(
    metric: number,
    sources: readonly number[],
    mode: 'subscribe' | 'buffer',
    link = this.link,
  ): Promise<boolean> {
    const channel = link === this.link ? 0 : this.channel
    this.bound.set(metric, sources)
    const result = await link?.ok((seq) => command[mode](seq, metric, channel))
    if (result === undefined) return false
    for (const source of sources) this.history.bind(source)
    return true
  }

  expectResult(metric: number): void {
    this.#results.add(metric)
    this.history.oweResult(metric)
  }

  #receive(link: Link, message: Message): void {
    // What an old connection still has comes again on the new one.
    if (this.link !== link) return
    if (message.kind === 'notice') {
      if (message.code <= HARMLESS || (message.code === DELETED && this.gone)) return
      this.#checker.fault('unexpected', `NOTICE ${message.code} ${message.detail}`)
    } else if (message.transaction === 0) return
    else if (message.kind === 'gap') this.history.gap(message.transaction, message.count, message.reason)
    else {
      const value = decoded(message)
      // Of an EXECUTE whose response got lost nobody knows the id.
      if (this.#results.has(message.metric) || value?.outcome !== undefined) {
        this.history.result(message.transaction, message.metric)
        return
      }
      const [source = 0, counter = 0] = String(value?.value ?? value)
        .split('-')
        .map(Number)
      if (this.bound.get(message.metric)?.includes(source)) this.history.value(message.transaction, source, counter)
      else this.#checker.fault('unexpected', `${JSON.stringify(value)} of metric ${message.metric} on ${this.channel}`)
    }
  }

  /** Commits something, or not: one, some in any order, up to one, all. */
  commitSome(): void {
    const ids = this.history.pending()
    if (ids.length === 0) return
    const kind = this.#random.below(10)
    if (kind === 0) this.commit(ids[ids.length - 1]!, true)
    else if (kind < 3) this.commit(this.#random.pick(ids), true)
    else if (kind < 5) this.commit(this.#random.pick(ids), false)
    else if (kind < 8) this.commitShuffled(ids)
  }

  /** Some of them, each by itself, in no order. */
  commitShuffled(ids = this.history.pending()): void {
    const count = Math.min(ids.length, 1 + this.#random.below(40))
    for (let i = 0; i < count; i++) {
      const index = this.#random.below(ids.length)
      this.commit(ids[index]!, false)
      ids.splice(index, 1)
    }
  }

  commit(id: number, through: boolean): void {
    const { link } = this
    if (link === undefined || link.closed) return
    const ids = this.history.committing(id, through)
    const servers = this.#servers
    link.commit(id, through, ({ status, detail }) => {
      if (this.link !== link) {
        if (status === 0 && servers !== this.#servers) this.history.committedBefore(ids)
      } else if (status === 0) this.history.committed(ids)
      else this.#checker.fault('unexpected', `COMMIT of ${id} on ${this.channel}: status ${status} ${detail}`)
    })
  }

  commitAll(): void {
    const ids = this.history.pending()
    if (ids.length > 0) this.commit(ids[ids.length - 1]!, true)
  }
}
