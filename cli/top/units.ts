/** Units of metrics from the catalogue, asked for when a metric is shown whose unit is not known; rarely. */
import type { ClientClock } from '../../client/clock.ts'

/** A name that is new to the catalogue, and one that may have been told its unit since. */
const NEW_MS = 1_000
const AGAIN_MS = 60_000

export class Units {
  readonly #list: () => Promise<ReadonlyMap<string, string>>
  readonly #clock: Pick<ClientClock, 'monotonicMs'>
  #units: ReadonlyMap<string, string> = new Map()
  #askedMs = Number.NEGATIVE_INFINITY
  #isAsking = false

  /** `list`: the names that are wanted, with their units, empty ones too. */
  constructor(list: () => Promise<ReadonlyMap<string, string>>, clock: Pick<ClientClock, 'monotonicMs'>) {
    this.#list = list
    this.#clock = clock
  }

  /** Empty while it is not known; has it asked for then. */
  of(metric: string): string {
    const unit = this.#units.get(metric)
    const waited = this.#clock.monotonicMs() - this.#askedMs
    if (!unit && waited >= (unit === undefined ? NEW_MS : AGAIN_MS)) void this.refresh()
    return unit ?? ''
  }

  /** Never rejects. */
  async refresh(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    try {
      this.#units = await this.#list()
    } catch {
      // It is a convenience: whoever may not read the catalogue sees no units.
    } finally {
      this.#askedMs = this.#clock.monotonicMs()
      this.#isAsking = false
    }
  }
}
