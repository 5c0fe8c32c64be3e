/**
 * The files and connections that the process has open, and how many it may have. Where there are no descriptors left, the kernel
 * closes new connections of consumers and admins without a word, so connections of sources, which no limit of their own bounds,
 * are refused while some are still left. Both figures are looked up again every second, since the limit may be changed meanwhile.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'

/** What is kept for consumers, admins and the store, but at most half of what there is. */
const KEPT = 256

export interface FileCounts {
  readonly open: number
  /** Undefined if the system does not say so (Linux does). */
  readonly max: number | undefined
}

export class OpenFiles {
  readonly #count: () => FileCounts
  #counts: FileCounts
  /** Connections of sources since the last look. */
  #since = 0
  #refusedBefore = 0
  #problem: string | undefined
  /** Connections of sources that were refused so far. */
  refused = 0

  constructor(count: () => FileCounts = countOpenFiles) {
    this.#count = count
    this.#counts = count()
  }

  get open(): number {
    return this.#counts.open
  }

  get max(): number | undefined {
    return this.#counts.max
  }

  /** What is wrong, for people: until the next look at which nothing is. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Whether a source may have one more connection, which is already open. */
  enter(): boolean {
    if (this.#free - this.#since > this.#kept) {
      this.#since++
      return true
    }
    this.refused++
    return false
  }

  /** To be called every second. True if something has become wrong, or is worse. */
  look(): boolean {
    this.#counts = this.#count()
    this.#since = 0
    const refused = this.refused - this.#refusedBefore
    this.#refusedBefore = this.refused
    const before = this.#problem
    this.#problem = refused > 0 || this.#free <= this.#kept >> 2 ? this.#describe() : undefined
    return this.#problem !== undefined && (before === undefined || refused > 0)
  }

  #describe(): string {
    const { open, max } = this.#counts
    return `${open} of ${max} file descriptors are in use, and the last ones are kept for consumers and admins: raise \`ulimit -n\` (LimitNOFILE)`
  }

  get #free(): number {
    return (this.max ?? Number.POSITIVE_INFINITY) - this.open
  }

  get #kept(): number {
    return this.max === undefined ? 0 : Math.min(KEPT, this.max >> 1)
  }
}

/** As the kernel of Linux shows it. */
export function countOpenFiles(): FileCounts {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    const max = soft === undefined ? undefined : Number(soft)
    // From Linux 6.2 on the size of the directory is the number of its entries.
    return { open: statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length, max }
  } catch {
    return { open: 0, max: undefined }
  }
}
