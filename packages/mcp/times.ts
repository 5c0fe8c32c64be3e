/** Moments as agents give them: a time of ISO 8601, or how long ago. */

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

export const MOMENT = 'a time of ISO 8601, such as 2026-11-22T08:00:00Z, or how long ago, such as 90s, 15m, 2h or 7d'

/** Milliseconds of a duration such as 15m. Throws RangeError. */
export function millisecondsOf(text: string): number {
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text)
  const ms = match === null ? 0 : Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]
  if (ms > 0) return ms
  throw new RangeError(`"${text}" is no duration: write one such as 15s, 1m or 2h`)
}

/** Throws RangeError. */
export function momentOf(text: string, nowMs: number): Date {
  if (/^\d+[a-z]+$/.test(text)) return new Date(nowMs - millisecondsOf(text))
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (ms >= 0) return new Date(ms)
  throw new RangeError(`"${text}" is no time: write ${MOMENT}`)
}
