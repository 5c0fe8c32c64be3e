/** A metric instance: what COLLECT makes [MON 6.5]. It measures nothing; its bindings are the hub's taps. */
import type { Identity } from '../../auth/permissions.ts'
import type { LabelName, Labels, Series } from './metric.ts'
import type { Selection } from './selection.ts'
import { framePrefix } from './template.ts'

export class MetricInstance {
  readonly id: number
  readonly selection: Selection
  /** Written to the store: it was bound on a channel that survives. */
  stored = false
  /** Those of its connection that were never bound, while it is one of them. */
  unbound: Set<MetricInstance> | undefined
  /** Ids of the channels it is bound on. */
  readonly boundOn = new Set<number>()
  readonly #heads = new WeakMap<Series, Uint8Array>()

  constructor(id: number, selection: Selection) {
    this.id = id
    this.selection = selection
  }

  get owner(): Identity {
    return this.selection.identity
  }

  /** The frame template of a series, made once: it also tells series apart on keep-latest channels. */
  framePrefixOf(series: Series, open: ReadonlySet<LabelName>): Uint8Array {
    let framePrefix = this.#heads.get(series)
    if (framePrefix === undefined) {
      framePrefix = framePrefix(this.id, series.labels, open)
      this.#heads.set(series, framePrefix)
    }
    return framePrefix
  }

  head(labels: Labels, open: ReadonlySet<LabelName>): Uint8Array {
    return framePrefix(this.id, labels, open)
  }
}
