/**
 * The series of one tenant that are in use: what they are asked for by, their numbers and their places. They are in one of two
 * generations, so that what was not used for an hour or two is forgotten; it is found again in fresh.db.
 */
import { crc32 } from 'node:zlib'
import { seriesAt } from './codec/page.ts'

interface Generation {
  /** Places by identity. */
  readonly places: Map<string, number>
  /** Places by number. */
  readonly numbers: Map<number, number>
}

const empty = (): Generation => ({ places: new Map(), numbers: new Map() })

export class ActiveSeries {
  #young = empty()
  #old = empty()

  /** The place of a series; undefined if it is not in memory. */
  find(identity: string): number | undefined {
    const place = this.#young.places.get(identity)
    if (place !== undefined) return place
    const old = this.#old.places.get(identity)
    if (old !== undefined) this.add(identity, old)
    return old
  }

  add(identity: string, place: number): void {
    this.#young.places.set(identity, place)
    this.use(place)
  }

  /** A series has samples, and nobody has asked for it. */
  use(place: number): void {
    this.#young.numbers.set(seriesAt(place), place)
  }

  /** The place of a number that is in use; undefined if it is none. */
  placeOf(series: number): number | undefined {
    const place = this.#young.numbers.get(series)
    if (place !== undefined) return place
    const old = this.#old.numbers.get(series)
    if (old !== undefined) this.#young.numbers.set(series, old)
    return old
  }

  has(series: number): boolean {
    return this.#young.numbers.has(series) || this.#old.numbers.has(series)
  }

  /** An hour has passed. */
  age(): void {
    this.#old = this.#young
    this.#young = empty()
  }
}

/** What tells a series from the others of its tenant. */
export function identityOf(name: string, labels: string): string {
  // JSON shows its own end.
  return `${labels}${name}`
}

/** By it a series is found in fresh.db. */
export function identityHash(identity: string): number {
  return crc32(identity)
}
