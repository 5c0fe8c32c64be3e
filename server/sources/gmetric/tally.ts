/**
 * What the gmetric sensor counts. Everything a datagram can come to is exactly one of these, so
 * packets = values + metadata + requests + every refusal. `Hosts` counts what it is given; `packets`, refusedSource and
 * what does not decode are for the listener to count. Per source only what is held against it is kept, for the first
 * so many sources: a forged sender address must not cost memory.
 */

export interface GmetricCounters {
  /** Datagrams that arrived, whatever became of them. */
  packets: number
  /** Refused before decoding: the source is not among the allowed. */
  refusedSource: number
  /** From a source that had brought all it may in this second; not decoded. */
  rateLimited: number
  /** Did not decode, by a length, a name or a count that cannot be. */
  malformed: number
  /** Began with a number that no gmetric message has. */
  unknownId: number
  /** Spoofed, and spoofing is switched off. */
  spoofRefused: number
  /** A value that its declared type cannot hold. */
  unparsable: number
  /** No room for another host, for another metric, or for the bytes. */
  hostsFull: number
  metricsFull: number
  bytesFull: number
  /** A value that came when its tenant had brought in all it may in this second. */
  overQuota: number
  /** Accepted: a value, also where its metadata came with it. */
  values: number
  /** Accepted: metadata alone. */
  metadata: number
  /** Somebody asked for metadata; not answered: what is known here is others'. */
  requests: number
}

/** What tells of its sender. */
type Bad = 'rateLimited' | 'malformed' | 'unknownId' | 'unparsable' | 'hostsFull' | 'metricsFull' | 'bytesFull'

export class Tally {
  readonly counters: GmetricCounters = {
    packets: 0,
    refusedSource: 0,
    rateLimited: 0,
    malformed: 0,
    unknownId: 0,
    spoofRefused: 0,
    unparsable: 0,
    hostsFull: 0,
    metricsFull: 0,
    bytesFull: 0,
    overQuota: 0,
    values: 0,
    metadata: 0,
    requests: 0,
  }
  readonly #maxSources: number
  readonly #badBySource = new Map<string, number>()
  #badElsewhere = 0

  constructor(maxSources = 256) {
    this.#maxSources = maxSources
  }

  /** Malformed, unknown and unparsable packets, and those too many or beyond the room, by the address they came from; kept for the first sources only. */
  get badBySource(): ReadonlyMap<string, number> {
    return this.#badBySource
  }

  /** Those of all other sources. */
  get badFromOthers(): number {
    return this.#badElsewhere
  }

  /** Counts a datagram that its sender got wrong, or one too many, against that sender. */
  countBad(counter: Bad, source: string): void {
    this.counters[counter]++
    const count = this.#badBySource.get(source)
    if (count !== undefined) this.#badBySource.set(source, count + 1)
    else if (this.#badBySource.size < this.#maxSources) this.#badBySource.set(source, 1)
    else this.#badElsewhere++
  }
}
