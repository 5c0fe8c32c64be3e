/** How often another node took over, and how long that took: from a fault to the answer of the next leader to a consumer. */
import { percentile } from '../../rig/figures.ts'
import { Tally, type Totals } from '../../rig/rig.ts'

/** The judge of the history, which counts life by life. */
export interface LifeJudge {
  /** A life has ended. */
  died(): void
  /** For each GAP of a restart, the life that began with it. */
  readonly restartGaps: readonly number[]
}

export class Takeovers {
  /** In which the leader of the moment leads; 0 before the first. */
  epoch = 0
  count = 0
  readonly #times = new Map<string, number[]>()
  readonly #leads = new Tally()
  /** Who has led, life by life. */
  readonly #leaders: string[] = []
  readonly #judge: LifeJudge
  #isAsked = false
  #unasked = 0

  constructor(judge: LifeJudge) {
    this.#judge = judge
  }

  /** A fault ends the leader now; `served` resolves when another one answers, and rejects if that is not waited for any more. */
  begin(fault: string, served: Promise<void>): void {
    const at = performance.now()
    this.#isAsked = true
    served.then(
      () => this.#times.set(fault, [...(this.#times.get(fault) ?? []), performance.now() - at]),
      () => {},
    )
  }

  /**
   * A leader has answered a consumer. To be called for each connection, before anything that comes over it is judged: a takeover that no
   * fault has caused, be it by the same node, begins another life too, and skips the transaction ids that were reserved before.
   * `version` is what the totals call that of the node.
   */
  serves(epoch: number, node: string, version = 'this version'): void {
    // A leader that is cut off may go on for a while, and serve some.
    if (epoch === this.epoch) return
    this.#leads.add(`times that ${node} led`)
    this.#leaders.push(version)
    if (this.epoch > 0) {
      this.#judge.died()
      this.count++
      if (!this.#isAsked) this.#unasked++
    }
    this.#isAsked = false
    this.epoch = epoch
  }

  totals(): Totals {
    const times = [...this.#times].sort(([a], [b]) => a.localeCompare(b))
    const rows = times.flatMap(([name, ms]) =>
      [50, 99].map((percent) => [`ms until served, ${name}, p${percent}`, Math.round(percentile(ms, percent / 100))]),
    )
    const gaps = new Tally()
    for (const life of this.#judge.restartGaps) gaps.add(`restartGaps after ${this.#leaders[life - 1]} led`)
    return {
      takeovers: this.count,
      'takeovers without a fault': this.#unasked,
      ...this.#leads.sorted(),
      ...gaps.sorted(),
      ...Object.fromEntries(rows),
    }
  }
}
