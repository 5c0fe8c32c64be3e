/**
 * Jobs that wait for one worker, taken in turn from lanes: whoever fills a lane delays only that lane. A full queue makes room
 * for a lane that has less than its share by dropping the newest job of the longest one.
 */

export interface QueuedJob {
  readonly lane: string
  /** True once nobody waits for the job any more. */
  readonly isGone: () => boolean
  /** Called instead of the job, once, if it has no place in the queue or is gone. */
  drop(): void
}

export class FairQueue<Job extends QueuedJob> {
  readonly #max: number
  /** The lanes in which jobs wait, in the order of their turns. */
  readonly #lanes = new Map<string, Job[]>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#size
  }

  add(job: Job): void {
    if (this.#size >= this.#max) this.dropGone()
    const lane = this.#lanes.get(job.lane) ?? []
    if (this.#size >= this.#max && !this.#shorten(lane.length + 1)) {
      job.drop()
      return
    }
    lane.push(job)
    this.#lanes.set(job.lane, lane)
    this.#size++
  }

  /** Takes the first job of the lane whose turn it is; undefined if nothing waits. */
  take(): Job | undefined {
    for (const [name, lane] of this.#lanes) {
      const job = lane.shift()
      this.#size--
      this.#lanes.delete(name)
      if (lane.length > 0) this.#lanes.set(name, lane)
      if (job?.isGone() === false) return job
      job?.drop()
    }
    return undefined
  }

  /** Drops a job of the longest lane, if that lane stays at least as long as `length`. */
  #shorten(length: number): boolean {
    let longest: Job[] = []
    for (const lane of this.#lanes.values()) if (lane.length > longest.length) longest = lane
    if (longest.length <= length) return false
    longest.pop()?.drop()
    this.#size--
    return true
  }

  /** Drops all jobs that are gone, wherever they stand. */
  dropGone(): void {
    for (const [name, lane] of this.#lanes) {
      const [gone, waiting] = [lane.filter((job) => job.isGone()), lane.filter((job) => !job.isGone())]
      if (waiting.length > 0) this.#lanes.set(name, waiting)
      else this.#lanes.delete(name)
      this.#size -= gone.length
      for (const job of gone) job.drop()
    }
  }
}
