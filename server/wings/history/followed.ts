/**
 * Selections that are asked for again and again, such as those of rules. What was read of them is kept, and the thread of the history
 * is asked for no more than what has come since, for all of one turn in one message.
 */
import { ROLLUP_MS } from '../../../storage/history/store.ts'
import { FollowedColumns } from './followed-columns.ts'
import { ANEW, type HistorySelection, type NewsAnswer, type NewsAsked, type SelectedSamples } from './messages.ts'

/**
 * Of all that is kept: selections, characters of what is selected, numbers, 64 MiB of them, and series. Then what was not asked for lately
 * is read anew.
 */
const MOST_SELECTIONS = 1 << 16
const MOST_CHARACTERS = 1 << 24
const MOST_NUMBERS = 1 << 23
const MOST_SERIES = 1 << 18
/** A selection with more series, numbers or characters is read again each time, in portions. */
const MOST_SERIES_OF_ONE = 4_096
const MOST_NUMBERS_OF_ONE = 1 << 18
const MOST_CHARACTERS_OF_ONE = 4_096
const NUMBERS_OF_SAMPLE = 2
/**
 * What was missed is evaluated up to an hour later. What is wanted of a time further back, as with `offset 1w`, is read each time: all that
 * has come since would have to be read as well.
 */
const MOST_BEHIND_MS = 7_200_000
/** No date of JavaScript is later. */
const LAST_MS = 8.64e15
/** Series that are given out together. */
const PORTION_SERIES = 128

export interface FollowedServices {
  /** Reads a selection, and has it followed. */
  readonly read: (selection: HistorySelection) => AsyncGenerator<readonly SelectedSamples[], void, void>
  /** Asks for what has come of selections, and says which are over. Returns false if there is no thread. */
  readonly ask: (asked: Omit<NewsAsked, 'kind'>) => boolean
  readonly nowMs: () => number
}

interface Followed {
  readonly number: number
  readonly columns: FollowedColumns
  /** As they count in the sum. */
  numbers: number
  /** Whether it was asked for since room was looked for last. */
  isUsed: boolean
  /** What has come of it is asked for now. */
  asked: Asked | undefined
}

interface KnownKey {
  readonly spanMs: number
  readonly beforeMs: number
  readonly key: string | undefined
}

interface Asked {
  readonly come: Promise<boolean>
  readonly settle: (isCurrent: boolean) => void
}

export class FollowedSelections {
  readonly #services: FollowedServices
  /** By what is selected. */
  readonly #followed = new Map<string, Followed>()
  /** Keys by matchers and tenant: to make one takes longer than all else that is done of a selection that is there. */
  readonly #keys = new WeakMap<HistorySelection['matchers'], Map<string, KnownKey>>()
  readonly #byNumber = new Map<number, Followed>()
  /** Those that were asked for in this turn. */
  #together: number[] = []
  /** Those that are followed no more, which the thread does not know yet. */
  #over: number[] = []
  #last = 0
  #characters = 0
  #numbers = 0
  #series = 0

  constructor(services: FollowedServices) {
    this.#services = services
  }

  /** Whether a selection can be followed: those of windows are read each time. */
  takes(selection: HistorySelection): boolean {
    const { isRecurring = false, isWithoutSamples = false, withFamilies = false, stepMs, after, toMs } = selection
    if (!isRecurring || isWithoutSamples || withFamilies || after !== undefined || !this.#isRecent(toMs)) return false
    return stepMs !== undefined && stepMs < ROLLUP_MS && this.#keyOf(selection) !== undefined
  }

  #isRecent(toMs: number): boolean {
    return this.#services.nowMs() - toMs <= MOST_BEHIND_MS
  }

  /** As `HistoryReading.select`, of a selection that it takes. */
  async *select(selection: HistorySelection): AsyncGenerator<readonly SelectedSamples[], void, void> {
    const current = await this.current(selection)
    if (current !== undefined) {
      yield* inPortions(current.read(selection))
      return
    }
    const number = ++this.#last
    let isFollowed = false
    try {
      let read: SelectedSamples[] | undefined = []
      // What is there already of later times is no news.
      for await (const portion of this.#services.read({ ...selection, toMs: LAST_MS, follow: number })) {
        read = withPortion(read, portion)
        yield upTo(portion, selection.toMs)
      }
      const key = this.#keyOf(selection)
      if (read === undefined || key === undefined) return
      isFollowed = true
      this.#add(key, number, new FollowedColumns(read, selection))
    } finally {
      if (!isFollowed) this.#end(number)
    }
  }

  /** What was read of a selection, with all that has come of it; undefined if it has to be read. */
  async current(selection: HistorySelection): Promise<FollowedColumns | undefined> {
    // It must not end what others follow of a later time.
    if (!this.#isRecent(selection.toMs)) return undefined
    const key = this.#keyOf(selection)
    const known = key === undefined ? undefined : this.#followed.get(key)
    if (key === undefined || known === undefined) return undefined
    // What has come may have taken the room of what is wanted of an earlier time.
    const isThere = known.columns.has(selection) && (await this.#isCurrent(known)) && known.columns.has(selection)
    if (!isThere) {
      if (this.#followed.get(key) === known) this.#forget(key, known)
      return undefined
    }
    known.columns.want(selection)
    known.isUsed = true
    const { size } = known.columns
    if (size !== known.numbers) this.#resize(key, known, size)
    return known.columns
  }

  /** What has come of selections. */
  take({ follows, counts, columns }: NewsAnswer): void {
    let from = 0
    for (const [index, number] of follows.entries()) {
      const count = counts[index]!
      const to = from + Math.max(0, count)
      const followed = this.#byNumber.get(number)
      if (followed !== undefined)
        settle(followed, count !== ANEW && (count === 0 || followed.columns.add(columns, from, to)))
      from = to
    }
  }

  /** The thread is gone, and what it knew: another one begins anew. */
  ended(): void {
    for (const followed of this.#byNumber.values()) settle(followed, false)
    this.#byNumber.clear()
    this.#followed.clear()
    this.#over = []
    this.#characters = 0
    this.#numbers = 0
    this.#series = 0
  }

  /** Takes what has come of a selection. Resolves to false if it has to be read anew. */
  #isCurrent(followed: Followed): Promise<boolean> {
    followed.asked ??= this.#askedOf(followed)
    return followed.asked.come
  }

  #askedOf({ number }: Followed): Asked {
    let settle: Asked['settle'] = () => {}
    const come = new Promise<boolean>((resolve) => {
      settle = resolve
    })
    this.#together.push(number)
    this.#askSoon()
    return { come, settle }
  }

  /** The thread is to forget a selection. */
  #end(number: number): void {
    this.#over.push(number)
    this.#askSoon()
  }

  /** What is asked in this turn is asked together. */
  #askSoon(): void {
    if (this.#together.length + this.#over.length > 1) return
    queueMicrotask(() => {
      const [follows, over] = [this.#together, this.#over]
      this.#together = []
      this.#over = []
      if (!this.#services.ask({ follows, over })) this.ended()
    })
  }

  #add(key: string, number: number, columns: FollowedColumns): void {
    const before = this.#followed.get(key)
    if (before !== undefined) this.#forget(key, before)
    const followed = { number, columns, numbers: 0, isUsed: true, asked: undefined }
    this.#followed.set(key, followed)
    this.#byNumber.set(number, followed)
    this.#characters += key.length
    this.#series += columns.seriesCount
    this.#resize(key, followed, columns.size)
  }

  #resize(key: string, followed: Followed, numbers: number): void {
    if (this.#followed.get(key) !== followed) return
    this.#numbers += numbers - followed.numbers
    followed.numbers = numbers
    if (numbers > MOST_NUMBERS_OF_ONE) this.#forget(key, followed)
    for (const [oldest, each] of this.#followed) {
      if (this.#hasRoom) return
      if (each.isUsed) this.#postpone(oldest, each)
      else this.#forget(oldest, each)
    }
  }

  get #hasRoom(): boolean {
    if (this.#followed.size > MOST_SELECTIONS || this.#characters > MOST_CHARACTERS) return false
    return this.#numbers <= MOST_NUMBERS && this.#series <= MOST_SERIES
  }

  /** It has its turn again after the others. */
  #postpone(key: string, followed: Followed): void {
    followed.isUsed = false
    this.#followed.delete(key)
    this.#followed.set(key, followed)
  }

  /** Undefined if it is too long to be followed. */
  #keyOf({ tenant, matchers, fromMs, toMs, twoBeforeMs = toMs }: HistorySelection): string | undefined {
    const [spanMs, beforeMs] = [toMs - fromMs, toMs - twoBeforeMs]
    const byTenant = this.#keys.get(matchers) ?? new Map<string, KnownKey>()
    const known = byTenant.get(tenant)
    if (known?.spanMs === spanMs && known.beforeMs === beforeMs) return known.key
    const text = `${tenant} ${spanMs} ${beforeMs} ${JSON.stringify(matchers)}`
    const key = text.length > MOST_CHARACTERS_OF_ONE ? undefined : text
    this.#keys.set(matchers, byTenant.set(tenant, { spanMs, beforeMs, key }))
    return key
  }

  #forget(key: string, followed: Followed): void {
    if (!this.#followed.delete(key)) return
    const { number, numbers, columns } = followed
    this.#byNumber.delete(number)
    settle(followed, false)
    this.#characters -= key.length
    this.#numbers -= numbers
    this.#series -= columns.seriesCount
    this.#end(number)
  }
}

/** Says whether all that has come of a selection is there. */
function settle(followed: Followed, isCurrent: boolean): void {
  const { asked } = followed
  followed.asked = undefined
  asked?.settle(isCurrent)
}

/** What a portion has up to a time; a series that begins later is not there. */
function upTo(portion: readonly SelectedSamples[], toMs: number): readonly SelectedSamples[] {
  return portion.flatMap((one) => {
    const { times, values, windows } = one
    const end = times.findIndex((ms) => ms > toMs)
    if (end < 0) return [one]
    if (end === 0 && windows === undefined) return []
    return [{ ...one, times: times.subarray(0, end), values: values.subarray(0, end) }]
  })
}

function* inPortions(all: Iterable<SelectedSamples>): Generator<readonly SelectedSamples[], void, void> {
  let portion: SelectedSamples[] = []
  for (const one of all) {
    if (portion.push(one) < PORTION_SERIES) continue
    yield portion
    portion = []
  }
  yield portion
}

/** What was read with one more portion; undefined if it is too much, or not all samples are left. */
function withPortion(
  read: SelectedSamples[] | undefined,
  portion: readonly SelectedSamples[],
): SelectedSamples[] | undefined {
  if (read === undefined || read.length + portion.length > MOST_SERIES_OF_ONE) return undefined
  if (portion.some(({ windows, place }) => windows !== undefined || place === undefined)) return undefined
  const all = read.concat(portion)
  // All series have room for as many samples.
  const longest = all.reduce((most, { times }) => Math.max(most, times.length), 0)
  return NUMBERS_OF_SAMPLE * all.length * longest > MOST_NUMBERS_OF_ONE ? undefined : all
}
