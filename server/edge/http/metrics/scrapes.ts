/**
 * Who gets a text of GET /metrics, and when, over all listeners: a text takes several times its length of memory while it is made,
 * and its own length until the slowest of its readers has it. So few are made at the same time, of all tenants together too, and
 * those who wait for the same text get the same one, made after all of them have asked. Whoever waits for too long is told so.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../../../kernel/core/clock.ts'
import { MemoryRoom } from '../../memory-room.ts'
import { Turns } from '../../turns.ts'
import { Readers, type TextReader, type TextReaderOptions } from './readers.ts'

/** Texts of a tenant that are made or sent, those that wait for that, and for how long. */
const OF_TENANT = { atOnce: 2, waiting: 16, patienceMs: 9_500 }
/** Texts of all tenants that are made, those whose tenant has a turn and that wait for theirs, and for how long. */
const OF_ALL = { atOnce: 4, waiting: 64, patienceMs: 5_000 }
/** A text that takes longer waits for something, such as a target that does not answer: it gives its place among all to others. */
const PLACE_MS = 1_000
/** The next text for the same is made when all readers have the last one, or after this time: some read slowly. */
const SPREAD_MS = 1_000
/** A text that is read for longer gives its place of the tenant to others: some readers take nothing. */
const READ_MS = 5_000
/** What all texts that are made or sent take of memory. */
const MAX_BYTES = 512 * 2 ** 20

/** What stands in the way of a text: too many of the tenant, of its readers, or of all, wait; or all together have too many bytes. */
export type ScrapeRefusal = 'tenant' | 'readers' | 'all' | 'memory'

/** A text, the same for all who get it. */
export interface ScrapedText {
  readonly pieces: readonly Uint8Array[]
  readonly bytes: number
  /** Aborted if it has to go before all of them have it. */
  readonly cut: AbortSignal
}

export type Scraped = ScrapedText | { readonly refused: ScrapeRefusal }

export interface ScrapeRequest {
  readonly tenant: string
  /** The same for all who may get the same text. */
  readonly key: string
  /** Aborted when this reader has the text, or has gone. */
  readonly reader: AbortSignal
  /** Makes the text. Not called if nobody waits for it any more. */
  readonly make: (progress: ScrapeProgress) => Promise<readonly Uint8Array[]>
}

/** How the text gets on. */
export interface ScrapeProgress {
  /** True once nobody will get it. */
  readonly isOver: () => boolean
  /** So many bytes of memory are taken by now. */
  readonly grownTo: (length: number) => void
}

export class Scrapes {
  readonly #clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly #ofTenant: Turns
  readonly #ofAll: Turns
  readonly #readers: Readers
  readonly #room = new MemoryRoom(MAX_BYTES)
  /** Texts that are not begun, by their keys. */
  readonly #waiting = new Map<string, SharedText>()
  /** Those that are made or sent. */
  readonly #underWay = new Map<string, SharedText>()
  #refused = 0

  constructor(clock: Pick<Clock, 'setTimeout' | 'clear'>) {
    this.#clock = clock
    this.#ofTenant = new Turns({ ...OF_TENANT, clock })
    this.#ofAll = new Turns({ ...OF_ALL, clock })
    this.#readers = new Readers(clock, () => this.#refused++)
  }

  /** Requests that were refused so far, and readers that were disconnected before they had their text. */
  get refused(): number {
    return this.#refused
  }

  /** Rejects with what `make` throws. */
  async scrape(request: ScrapeRequest): Promise<Scraped> {
    let text = this.#waiting.get(request.key)
    if (text === undefined || text.gone.aborted) text = this.#begin(request)
    else text.add(request.reader)
    const scraped = await text.scraped
    if ('refused' in scraped && !request.reader.aborted) this.#refused++
    return scraped
  }

  /** One of those who get a text, to which it is written in turns. */
  reader(options: TextReaderOptions): TextReader {
    return this.#readers.reader(options)
  }

  #begin(request: ScrapeRequest): SharedText {
    const text = new SharedText()
    text.add(request.reader)
    this.#waiting.set(request.key, text)
    this.#serve(request, text).catch(text.fail)
    return text
  }

  async #serve(request: ScrapeRequest, text: SharedText): Promise<void> {
    const { tenant, key } = request
    const before = this.#underWay.get(key)
    if (before !== undefined) await before.passed
    const serve = async (): Promise<boolean> => {
      // Whoever asks from now on wants what is known then.
      this.#leave(key, text)
      this.#underWay.set(key, text)
      const served = this.#serveNow(request, text).finally(() => {
        text.pass()
        if (this.#underWay.get(key) === text) this.#underWay.delete(key)
      })
      await Promise.race([served, text.isSlow])
      return true
    }
    const isServed = !text.gone.aborted && (await this.#ofTenant.take(tenant, text.gone, serve))
    if (isServed) return
    this.#leave(key, text)
    text.give({ refused: 'tenant' })
  }

  /** Settles when all readers have the text. */
  async #serveNow({ tenant, make }: ScrapeRequest, text: SharedText): Promise<void> {
    const place = this.#room.enter(tenant)
    // Every reader listens.
    setMaxListeners(0, place.refused)
    let before = 0
    const progress: ScrapeProgress = {
      isOver: () => text.gone.aborted || place.refused.aborted,
      grownTo: (length) => {
        place.took(length - before)
        before = length
      },
    }
    try {
      const pieces = await this.#inPlace(text.gone, () => make(progress))
      if (pieces === undefined) text.give({ refused: 'all' })
      else if (place.refused.aborted) text.give({ refused: 'memory' })
      else {
        const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
        progress.grownTo(bytes)
        text.give({ pieces, bytes, cut: place.refused })
        place.refused.addEventListener('abort', () => {
          this.#refused += text.readers
        })
        const late = this.#clock.setTimeout(() => text.pass(), SPREAD_MS)
        const slow = this.#clock.setTimeout(() => text.giveWay(), READ_MS)
        if (!text.gone.aborted) await new Promise((resolve) => text.gone.addEventListener('abort', resolve))
        this.#clock.clear(late)
        this.#clock.clear(slow)
      }
    } finally {
      place.leave()
    }
  }

  /** Has a text made when there is a place for it; undefined if there is none in time. */
  async #inPlace(
    gone: AbortSignal,
    make: () => Promise<readonly Uint8Array[]>,
  ): Promise<readonly Uint8Array[] | undefined> {
    const begun = await this.#ofAll.take('', gone, async () => {
      const making = make()
      await new Promise<void>((resolve) => {
        const late = this.#clock.setTimeout(resolve, PLACE_MS)
        const made = (): void => {
          this.#clock.clear(late)
          resolve()
        }
        making.then(made, made)
      })
      return { making }
    })
    return begun?.making
  }

  #leave(key: string, text: SharedText): void {
    if (this.#waiting.get(key) === text) this.#waiting.delete(key)
  }
}

/** A text, and those who get it. */
class SharedText {
  readonly scraped: Promise<Scraped>
  /** Settles when the next text for the same may be made. */
  readonly passed: Promise<void>
  /** Settles when its place of the tenant is for others. */
  readonly isSlow: Promise<void>
  pass: () => void = () => {}
  giveWay: () => void = () => {}
  give: (scraped: Scraped) => void = () => {}
  fail: (error: unknown) => void = () => {}
  readonly #gone = new AbortController()
  #readers = 0

  constructor() {
    this.scraped = new Promise((give, fail) => {
      this.give = give
      this.fail = fail
    })
    this.passed = new Promise((pass) => {
      this.pass = pass
    })
    this.isSlow = new Promise((giveWay) => {
      this.giveWay = giveWay
    })
  }

  /** Those that have neither got it as a whole nor gone. */
  get readers(): number {
    return this.#readers
  }

  /** Aborted when all readers have the text, or have gone. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  add(reader: AbortSignal): void {
    this.#readers++
    if (reader.aborted) this.#left()
    else reader.addEventListener('abort', () => this.#left())
  }

  #left(): void {
    if (--this.#readers === 0) this.#gone.abort()
  }
}
