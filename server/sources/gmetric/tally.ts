/**
 * The counters of the gmetric sensor. Each datagram has exactly one outcome, so
 * packets = values + metadata + requests + all refusals. `Hosts` counts the packets it is given; the sensor counts
 * `packets`, `refusedSource` and what does not decode. Bad packets are also counted per source, for a bounded number of
 * sources: forged sender addresses must not cost memory.
 */

export interface GmetricCounters {
  /** All datagrams that arrived. */
  packets: number
  /** Refused before decoding because the source is not allowed. */
  refusedSource: number
  /** Not decoded because the source exceeded its packets per second. */
  rateLimited: number
  /** Not decodable: an impossible length, name or count. */
  malformed: number
  /** Not decodable: the first number is not that of a gmetric message. */
  unknownId: number
  /** Refused because the packet is spoofed and spoofing is off. */
  spoofRefused: number
  /** Values that do not fit their declared type. */
  unparsable: number
  /** Refused because there is no capacity for another host, another metric, or the bytes. */
  hostsFull: number
  metricsFull: number
  bytesFull: number
  /** Values discarded because the tenant exceeded its values per second. */
  overQuota: number
  /** Accepted values, with or without metadata. */
  values: number
  /** Accepted metadata without a value. */
  metadata: number
  /** Requests for metadata. They are not answered, because the metadata here belongs to others. */
  requests: number
}

/** The counters that are also kept per source. */
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
  #badFromOthers = 0

  constructor(maxSources = 256) {
    this.#maxSources = maxSources
  }

  /** The number of bad packets by source address, for the first sources only. */
  get badBySource(): ReadonlyMap<string, number> {
    return this.#badBySource
  }

  /** The number of bad packets from all other sources. */
  get badFromOthers(): number {
    return this.#badFromOthers
  }

  /** Counts a datagram that is faulty, or beyond a limit, against its source. */
  countBad(counter: Bad, source: string): void {
    this.counters[counter]++
    const count = this.#badBySource.get(source)
    if (count !== undefined) this.#badBySource.set(source, count + 1)
    else if (this.#badBySource.size < this.#maxSources) this.#badBySource.set(source, 1)
    else this.#badFromOthers++
  }
}
