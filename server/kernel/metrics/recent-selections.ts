/**
 * Selections of exact names that were made a moment ago, because programs QUERY the same series again and again. One is used
 * again while nothing that it was made of has changed: the sensors, the metrics of its name and how they are described, the
 * reader and the arguments. A command that comes again has the same object as its arguments (command-source.ts). What a
 * reader may see is judged at each use, by `check`. Both together halve what a QUERY of a pushed metric costs.
 */
import type { Reader } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { Metric } from './metric.ts'
import type { Selection } from './selection.ts'

const MAX_KEPT = 1_024

interface Recent {
  readonly selection: Selection
  /** Sensors are never removed, so their number says whether there are others. */
  readonly sensors: number
  readonly metrics: readonly Metric[]
}

export class RecentSelections {
  /** The oldest first. */
  readonly #recent = new Map<ArgumentList, Recent>()

  /** `sensors`: how many the hub has. */
  get(identity: Reader, name: string, args: ArgumentList, sensors: number): Selection | undefined {
    const recent = this.#recent.get(args)
    if (recent === undefined || recent.sensors !== sensors) return undefined
    const { selection, metrics } = recent
    if (selection.identity !== identity || selection.name !== name) return undefined
    return selection.candidates.areStill(metrics) ? selection : undefined
  }

  keep(selection: Selection, args: ArgumentList, sensors: number): void {
    this.#recent.delete(args)
    this.#recent.set(args, { selection, sensors, metrics: selection.candidates.allNamed() })
    if (this.#recent.size <= MAX_KEPT) return
    for (const oldest of this.#recent.keys()) {
      this.#recent.delete(oldest)
      break
    }
  }
}
