/**
 * What a decoder knows of the series of earlier requests, whoever sent them: nothing in it depends on that. Each decoder has one where
 * bodies are decoded in steps, and one in the thread.
 */
import { ByteMemory } from '../../protocol/bytes/byte-memory.ts'
import type { ColumnKey } from './columns.ts'

/** About 11,000 series with six labels of 150 bytes. Of more, it keeps as many. */
const MOST_BYTES = 16 << 20

export class SeriesMemory<Labels extends object> {
  /** By the bytes of names and labels, as they stand in requests. */
  readonly labels = new ByteMemory<Labels>(MOST_BYTES)
  readonly #keys = new WeakMap<Labels, ColumnKey>()

  /** The key of labels, which `make` makes the first time. */
  keyOf(labels: Labels, make: () => ColumnKey): ColumnKey {
    let key = this.#keys.get(labels)
    if (key === undefined) {
      key = make()
      this.#keys.set(labels, key)
    }
    return key
  }
}
