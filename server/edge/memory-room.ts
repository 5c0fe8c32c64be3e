/**
 * The memory that bodies of requests, texts of answers, or queries may have together, whoever they are of. When it is used up, the tenant
 * that has most loses what it began last, and may ask again: whoever has less than its share is never refused for others.
 */

/** What one of them has of it. */
export interface MemoryPlace {
  /** Aborted when it has to go. */
  readonly refused: AbortSignal
  /** Counts bytes that have come; fewer than none are free again. */
  took(bytes: number): void
  /** A body has come as a whole: it is worked on, and is not refused any more. */
  complete(): void
  /** Its memory is free again. */
  leave(): void
}

interface Held {
  bytes: number
  /** Undefined when it is complete. */
  incomplete: AbortController | undefined
}

export class MemoryRoom {
  readonly #most: number
  #bytes = 0
  /** What each tenant has, in the order in which it began. */
  readonly #tenants = new Map<string, Set<Held>>()

  constructor(mostBytes: number) {
    this.#most = mostBytes
  }

  enter(tenant: string): MemoryPlace {
    const controller = new AbortController()
    const held: Held = { bytes: 0, incomplete: controller }
    const mine = this.#tenants.get(tenant) ?? new Set()
    this.#tenants.set(tenant, mine.add(held))
    return {
      refused: controller.signal,
      took: (bytes) => this.#took(held, bytes),
      complete: () => {
        held.incomplete = undefined
      },
      leave: () => {
        if (!mine.delete(held)) return
        this.#bytes -= held.bytes
        if (mine.size === 0 && this.#tenants.get(tenant) === mine) this.#tenants.delete(tenant)
      },
    }
  }

  #took(held: Held, bytes: number): void {
    if (held.incomplete?.signal.aborted) return
    held.bytes += bytes
    this.#bytes += bytes
    while (this.#bytes > this.#most) {
      const last = this.#lastOfMost()
      if (last === undefined) return
      this.#bytes -= last.bytes
      last.bytes = 0
      last.incomplete?.abort()
    }
  }

  /** What began last of the tenant that has most, among those with something that can be refused. */
  #lastOfMost(): Held | undefined {
    let found: Held | undefined
    let most = -1
    for (const mine of this.#tenants.values()) {
      let bytes = 0
      let last: Held | undefined
      for (const held of mine) {
        bytes += held.bytes
        // To refuse what waits, and has nothing yet, would free nothing.
        if (held.bytes > 0 && held.incomplete?.signal.aborted === false) last = held
      }
      if (last !== undefined && bytes > most) [found, most] = [last, bytes]
    }
    return found
  }
}
