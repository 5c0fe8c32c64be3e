/**
 * The rows of `cinnabar top`: the latest value of each series that has sent one. Rows are never changed but replaced, so
 * that whoever holds a list of them holds a moment. A series that is gone (VOID) stays for some seconds and says so.
 */
import { BasicType, type Field, type Value, valueToJson } from '../../client/index.ts'
import { formatValue } from '../output/text.ts'

export type Content = number | bigint | boolean | string

export interface Row {
  /** The name or pattern that was asked for. */
  readonly asked: string
  readonly metric: string
  /** Host, source, index: what else was left open, one blank apart; empty where nothing was. */
  readonly where: string
  /** Texts, and what is neither text nor number, are cut at 1,000 characters. */
  readonly content: Content
  /** By the producer's clock, microseconds since 1970. */
  readonly time: number
  /** By the clock that is handed in; undefined for what had come before anybody looked. */
  readonly arrivedMs: number | undefined
  readonly goneMs: number | undefined
}

/** What a follower gets. */
export interface Arrival {
  /** As it was asked for: a name or a pattern. */
  readonly name: string
  /** Microseconds since 1970. */
  readonly time: number
  readonly value: Value
}

export const MAX_ROWS = 10_000
const MAX_TEXT = 1_000
/** How long a row that is gone is still shown. */
export const GONE_MS = 10_000

export class Rows {
  readonly #limit: number
  readonly #rows = new Map<string, Row>()
  /** Keys of rows that are gone, the first first. */
  readonly #gone = new Set<string>()
  #isFull = false

  constructor(limit = MAX_ROWS) {
    this.#limit = limit
  }

  get size(): number {
    return this.#rows.size
  }

  /** Whether there are series that no room was left for. */
  get isFull(): boolean {
    return this.#isFull
  }

  values(): IterableIterator<Row> {
    return this.#rows.values()
  }

  take({ name, time, value }: Arrival, nowMs: number): void {
    const { key, metric, where, measured } = identify(name, value)
    const content = contentOf(measured)
    if (content === undefined) this.#vanish(key, nowMs)
    else this.#set(key, { asked: name, metric, where, content, time, arrivedMs: nowMs, goneMs: undefined })
  }

  /**
   * What a name or pattern stands for just now, as QUERY gives it: values whose age is not known. `completeMs`: when it
   * was asked for, if all fitted the answer. What is not among them then, and has not come since, is gone: its VOID was
   * sent while nobody was connected.
   */
  seed(arrivals: readonly Arrival[], name: string, completeMs: number | undefined, nowMs: number): void {
    const present = new Set<string>()
    for (const { value, time } of arrivals) {
      const { key, metric, where, measured } = identify(name, value)
      const content = contentOf(measured)
      if (content === undefined) continue
      present.add(key)
      const known = this.#rows.get(key)
      if (known && known.content === content && known.goneMs === undefined) continue
      this.#set(key, { asked: name, metric, where, content, time, arrivedMs: undefined, goneMs: undefined })
    }
    if (completeMs === undefined) return
    for (const [key, { asked, arrivedMs = 0 }] of this.#rows) {
      if (asked === name && arrivedMs < completeMs && !present.has(key)) this.#vanish(key, nowMs)
    }
  }

  /** Drops what has been gone for long enough. */
  expire(nowMs: number): void {
    for (const key of this.#gone) {
      if (nowMs - (this.#rows.get(key)?.goneMs ?? 0) < GONE_MS) break
      this.#drop(key)
    }
  }

  #set(key: string, row: Row): void {
    this.#gone.delete(key)
    if (!this.#rows.has(key) && this.#rows.size >= this.#limit) {
      const [oldest] = this.#gone
      if (oldest === undefined) {
        this.#isFull = true
        return
      }
      this.#drop(oldest)
    }
    this.#rows.set(key, row)
  }

  #vanish(key: string, nowMs: number): void {
    const row = this.#rows.get(key)
    if (!row || row.goneMs !== undefined) return
    this.#rows.set(key, { ...row, goneMs: nowMs })
    this.#gone.add(key)
  }

  #drop(key: string): void {
    this.#rows.delete(key)
    this.#gone.delete(key)
    this.#isFull = false
  }
}

/** The value of a pattern is a REC of what was left open, and `value` [MON 9]. */
function identify(name: string, value: Value): { key: string; metric: string; where: string; measured: Value } {
  const record: readonly Field[] = value.type === BasicType.REC ? value.value : []
  const measured = record.find((field) => field.name === 'value')
  if (!measured) return { key: name, metric: name, where: '', measured: value }
  let metric = name
  const places: string[] = []
  for (const field of record) {
    if (field.name === 'name') metric = textOf(field)
    else if (field.name !== 'value') places.push(textOf(field))
  }
  return { key: [metric, ...places].join('\0'), metric, where: places.join(' '), measured }
}

/** Undefined where there is nothing. */
function contentOf(value: Value): Content | undefined {
  switch (value.type) {
    case BasicType.VOID:
      return undefined
    case BasicType.STRING:
      return textOf(value).slice(0, MAX_TEXT)
    case BasicType.REC:
    case BasicType.ARRAY:
    case BasicType.OPAQUE:
      return formatValue(value).slice(0, MAX_TEXT)
    default:
      return value.value
  }
}

function textOf(value: Value): string {
  return value.type === BasicType.STRING ? String(valueToJson(value)) : formatValue(value)
}
