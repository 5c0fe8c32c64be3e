/** Makes rollups of the series that a merge of a day changes, and notes which series the day has. */
import { type ChunkColumns, ChunkEncoder } from './codec/chunk.ts'
import { type PageWriter, seriesAt } from './codec/page.ts'
import type { MergeObserver } from './merge.ts'
import { DAY_MS } from './periods.ts'
import { RollupBuilder } from './rollup.ts'
import type { RunCursor } from './run-cursor.ts'
import { ROLLUP_MS } from './store.ts'

const WINDOWS = DAY_MS / ROLLUP_MS

export class RollupObserver implements MergeObserver {
  /** The series with something new. */
  series: number[] = []
  readonly #writer: PageWriter
  readonly #encoder = new ChunkEncoder()
  readonly #builder = new RollupBuilder(WINDOWS)
  readonly #monthMs: number
  #isChanged = false

  constructor(writer: PageWriter, monthMs: number) {
    this.#writer = writer
    this.#monthMs = monthMs
  }

  begin(place: number, cursors: readonly RunCursor[]): void {
    // What is in the file has its rollups.
    this.#isChanged = cursors.some(({ pages }) => pages.run.file === null)
    if (this.#isChanged) this.series.push(seriesAt(place))
  }

  rows({ times, values }: ChunkColumns, length: number): void {
    if (this.#isChanged) this.#builder.add(times, values[0]!, length)
  }

  end(place: number): void {
    if (!this.#isChanged) return
    const builder = this.#builder
    builder.finish()
    const { columns, length } = builder
    if (length > 0) {
      this.#encoder.encode(this.#writer.body, this.#monthMs, columns, length)
      this.#writer.end(place, length, columns.times[0]!, columns.times[length - 1]!)
    }
    builder.clear()
  }
}
