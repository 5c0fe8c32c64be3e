/**
 * Days and months, in UTC, by which files are made. Like the windows of rollups they are open on the left: the sample of midnight
 * ends a day, so that no window has samples of two days.
 */
import { ROLLUP_MS } from './store.ts'

export const DAY_MS = 86_400_000

/** The end of 9999, the last year that a name of a file has room for. */
export const LAST_MS = 253_402_300_799_999

/** What pages hold: samples by day, or rollups by month. */
export type RunKind = 'samples' | 'rollups'

/** The start of the day that ends with, or after, this time. */
export function dayOf(timeMs: number): number {
  return Math.floor((timeMs - 1) / DAY_MS) * DAY_MS
}

/** The start of the month of a day. */
export function monthOf(dayMs: number): number {
  const date = new Date(dayMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

export function periodEnd(kind: RunKind, periodMs: number): number {
  if (kind === 'samples') return periodMs + DAY_MS
  const date = new Date(periodMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
}

/** `2026-08-31.1.db` for a day, `2026-08.1.db` for a month. */
export function fileName(kind: RunKind, periodMs: number, number: number): string {
  return `${new Date(periodMs).toISOString().slice(0, kind === 'samples' ? 10 : 7)}.${number}.db`
}

/** Names that `fileName` gives, and what SQLite leaves beside such files. */
export const FILE_NAMES = /^\d{4}-\d{2}(-\d{2})?\.\d+\.db(-journal|-wal|-shm)?$/

/** The end of the window of a sample. */
export function windowEnd(timeMs: number): number {
  return Math.ceil(timeMs / ROLLUP_MS) * ROLLUP_MS
}
