/** Functions of single numbers: what becomes of the value of each series at each time. */

const SECOND_MS = 1000

export const MATH: Readonly<Record<string, (value: number) => number>> = {
  abs: Math.abs,
  acos: Math.acos,
  acosh: Math.acosh,
  asin: Math.asin,
  asinh: Math.asinh,
  atan: Math.atan,
  atanh: Math.atanh,
  ceil: Math.ceil,
  cos: Math.cos,
  cosh: Math.cosh,
  deg: (value) => (value * 180) / Math.PI,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log10: Math.log10,
  log2: Math.log2,
  rad: (value) => (value * Math.PI) / 180,
  sgn: (value) => (value > 0 ? 1 : value < 0 ? -1 : value),
  sin: Math.sin,
  sinh: Math.sinh,
  sqrt: Math.sqrt,
  tan: Math.tan,
  tanh: Math.tanh,
}

/** Parts of a time in seconds, in UTC. */
export const DATES: Readonly<Record<string, (seconds: number) => number>> = {
  days_in_month: ofDate((date) => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()),
  day_of_month: ofDate((date) => date.getUTCDate()),
  day_of_week: ofDate((date) => date.getUTCDay()),
  day_of_year: ofDate((date) => (startOfDay(date) - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000 + 1),
  hour: ofDate((date) => date.getUTCHours()),
  minute: ofDate((date) => date.getUTCMinutes()),
  month: ofDate((date) => date.getUTCMonth() + 1),
  year: ofDate((date) => date.getUTCFullYear()),
}

/** Functions of a number and at most two scalar arguments, undefined where they have no result. */
export const WITH_SCALARS: Readonly<
  Record<string, (value: number, some?: number, others?: number) => number | undefined>
> = {
  clamp: (value, least = Number.NaN, most = Number.NaN) => (most < least ? undefined : clamped(value, least, most)),
  clamp_max: (value, most = Number.NaN) => clamped(value, Number.NEGATIVE_INFINITY, most),
  clamp_min: (value, least = Number.NaN) => clamped(value, least, Number.POSITIVE_INFINITY),
  // Of two numbers that are equally near the larger. Prometheus multiplies by the inverse, which rounds less.
  round: (value, nearest = 1) => Math.floor(value * (1 / nearest) + 0.5) / (1 / nearest),
}

/** An infinity counts before a NaN, as in Go. */
function clamped(value: number, least: number, most: number): number {
  const { NEGATIVE_INFINITY: none, POSITIVE_INFINITY: all } = Number
  const lesser = most === none || value === none ? none : Math.min(most, value)
  return least === all || lesser === all ? all : Math.max(least, lesser)
}

function ofDate(part: (date: Date) => number): (seconds: number) => number {
  return (seconds) => part(new Date(Math.trunc(seconds) * SECOND_MS))
}

function startOfDay(date: Date): number {
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate())
}
