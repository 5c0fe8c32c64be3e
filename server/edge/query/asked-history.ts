/** What one reader may ask of the history. Here, and nowhere else, it is decided for each series whether it is shown: when it comes. */
import type { Reader } from '../../../auth/permissions.ts'
import type { FairWork, Steps } from '../../kernel/core/fair-work.ts'
import type {
  HistoryEngine,
  LossesAsked,
  RememberedHistory,
  RememberedLoss,
  RememberedSelection,
  RememberedSeries,
} from '../../kit/history.ts'

/** A series that the reader may read. */
export type ReadableSeries = Omit<RememberedSeries, 'mayRead'>

/** Another server that answers expressions, and what of it the reader may ask for; undefined: nothing. */
export interface ScopedEngine extends Pick<HistoryEngine, 'ask'> {
  readonly scope: ReturnType<HistoryEngine['scopeOf']>
}

export interface AskedHistory {
  /** Undefined if what is remembered here is asked. */
  readonly elsewhere: ScopedEngine | undefined
  /** As `RememberedHistory` has it, without what may not be read. */
  select(selection: RememberedSelection): AsyncGenerator<readonly ReadableSeries[], void, void>
  losses(asked: LossesAsked): Promise<readonly RememberedLoss[]>
}

/** So many series are judged in a step. */
const SERIES_PER_STEP = 32

/** What is asked for readers. */
type Asking = Pick<RememberedHistory, 'engine' | 'select' | 'losses'>

export class ReadersHistory implements AskedHistory {
  readonly #history: Asking
  readonly #reader: Reader
  readonly #work: Pick<FairWork, 'run'>

  constructor(history: Asking, reader: Reader, work: Pick<FairWork, 'run'>) {
    this.#history = history
    this.#reader = reader
    this.#work = work
  }

  get elsewhere(): ScopedEngine | undefined {
    const { engine } = this.#history
    return engine && { scope: engine.scopeOf(this.#reader), ask: (...asked) => engine.ask(...asked) }
  }

  async *select(selection: RememberedSelection): AsyncGenerator<readonly ReadableSeries[], void, void> {
    const { tenant } = this.#reader
    for await (const portion of this.#history.select(this.#reader, selection))
      yield await this.#work.run({ tenant }, readable(portion))
  }

  losses(asked: LossesAsked): Promise<readonly RememberedLoss[]> {
    return this.#history.losses(this.#reader, asked)
  }
}

function* readable(portion: readonly RememberedSeries[]): Steps<readonly ReadableSeries[]> {
  const found: ReadableSeries[] = []
  let judged = 0
  for (const { mayRead, ...series } of portion) {
    if (mayRead()) found.push(series)
    if (++judged % SERIES_PER_STEP === 0) yield
  }
  return found
}
