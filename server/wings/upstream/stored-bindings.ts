/**
 * The bindings of an upstream's durable channel as this server has stored them, each before it is made there [MON 9.13]. So it is
 * known after any end of either server what an id there stands for, what was bound for nobody, and what is bound no more.
 */
import type { StoredPeers, UpstreamBindingRow } from '../../kit/peer.ts'
import { PRODUCER } from '../../kit/producers.ts'
import type { Position } from './position.ts'

export interface StoredBindingsOptions {
  /** `tenant/name` */
  readonly upstream: string
  /** Says which channel of which history is emptied. */
  readonly position: Pick<Position, 'row'>
  readonly journal: Pick<StoredPeers['journal'], 'change' | 'whenStored'>
  /** As they were stored. */
  readonly rows: Iterable<UpstreamBindingRow>
}

export class StoredBindings {
  readonly #options: StoredBindingsOptions
  readonly #byMetric = new Map<number, UpstreamBindingRow>()
  readonly #bySelection = new Map<string, UpstreamBindingRow>()
  /** Those that the upstream has not confirmed yet. */
  readonly #unmade = new Set<number>()

  constructor(options: StoredBindingsOptions) {
    this.#options = options
    for (const row of options.rows) this.#set(row)
  }

  get size(): number {
    return this.#byMetric.size
  }

  all(): UpstreamBindingRow[] {
    return [...this.#byMetric.values()]
  }

  get(metric: number): UpstreamBindingRow | undefined {
    return this.#byMetric.get(metric)
  }

  /** The paths at the upstream of the producers that something is bound of. */
  *paths(): Generator<string> {
    for (const selection of this.#bySelection.keys()) {
      const [, ...args] = JSON.parse(selection) as [string, ...(readonly [string, string])[]]
      const path = args.find(([name]) => name === PRODUCER)?.[1]
      if (path !== undefined) yield path
    }
  }

  /** A binding is going to be made on the channel that is emptied. Settles when that is on the disk. */
  put(selection: string, metric: number): Promise<void> {
    const { upstream, position, journal } = this.#options
    const { row: history } = position
    if (history === undefined) throw new Error('no channel of the upstream was taken up')
    this.delete(selection)
    const row = { upstream, generation: history.generation, channel: history.channel, metric, selection }
    this.#set(row)
    this.#unmade.add(metric)
    journal.change({ put: 'upstream binding', row })
    return journal.whenStored()
  }

  /** The upstream has confirmed a binding. */
  made(metric: number): void {
    this.#unmade.delete(metric)
  }

  /** Nobody wants it any more, or it is bound there no more. Returns whether it had been made: otherwise it has lost nothing. */
  delete(selection: string): boolean {
    const { upstream, journal } = this.#options
    const row = this.#bySelection.get(selection)
    if (row === undefined) return false
    const { metric } = row
    this.#bySelection.delete(selection)
    this.#byMetric.delete(metric)
    journal.change({ remove: 'upstream binding', upstream, metric })
    return !this.#unmade.delete(metric)
  }

  #set(row: UpstreamBindingRow): void {
    this.#byMetric.set(row.metric, row)
    this.#bySelection.set(row.selection, row)
  }
}
