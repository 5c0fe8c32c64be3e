/**
 * A source of smon streams and the series that came from it. It is there while a stream of it is open or, where it sends
 * datagrams, for some minutes after the last one. Its series outlive a resynchronisation: they are found by name again.
 */
import { SmonSeries } from './series.ts'

export class Source {
  readonly name: string
  /** Open streams. */
  streams = 0
  /** When its last datagram came, monotonic ms; undefined: it sends none. */
  datagramMs: number | undefined
  readonly #series = new Map<string, SmonSeries>()

  constructor(name: string) {
    this.name = name
  }

  find(name: string, index: string): SmonSeries | undefined {
    return this.#series.get(keyOf(name, index))
  }

  add(name: string, index: string): SmonSeries {
    const series = new SmonSeries(name, this.name, index)
    this.#series.set(keyOf(name, index), series)
    return series
  }

  series(): Iterable<SmonSeries> {
    return this.#series.values()
  }
}

/** Names hold no control characters. */
function keyOf(name: string, index: string): string {
  return index === '' ? name : `${name}\0${index}`
}
