/**
 * Formats a number by the printf format of its packet. The format came from the network and is never given to a printf: it
 * must be one of the few conversions that gmond's modules use, within small bounds, or it is ignored.
 */
import type { ValueType } from './packet.ts'

/** `%hu`, `%u`, `%.2f`, `%5.1f`, `%lld`, `%g`; no `*`, no `%s`, no `%n`, no text around it, and no number of more than two digits. */
const CONVERSION =
  /^%(?<flags>[-+ 0]{0,4})(?<width>\d{0,2})(?:\.(?<precision>\d{1,2}))?(?:hh?|ll?)?(?<letter>[diufFeEgG])$/

/** With more digits, toFixed and toExponential throw a RangeError. */
const MAX_DIGITS = 100

/** The text of a number of that type; if its format is not such a conversion, or does not fit the number, all its digits. */
export function printfNumber(format: string, type: ValueType, value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const { flags = '', width = '', precision, letter = '' } = CONVERSION.exec(format)?.groups ?? {}
  const magnitude = digits(letter, Math.abs(value), type, precision === undefined ? undefined : Number(precision))
  const isNegative = value < 0 || Object.is(value, -0)
  if (magnitude === undefined || (letter === 'u' && isNegative)) return plain(type, value)
  const sign = isNegative ? '-' : letter === 'u' ? '' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const room = Number(width)
  if (flags.includes('-')) return (sign + magnitude).padEnd(room)
  const zeros = flags.includes('0') && !('diu'.includes(letter) && precision !== undefined)
  return zeros ? sign + magnitude.padStart(room - sign.length, '0') : (sign + magnitude).padStart(room)
}

/** Most four-byte floats are identified by seven digits, some need nine; a double would show more. */
function plain(type: ValueType, value: number): string {
  if (type !== 'float') return String(value)
  const short = Number(value.toPrecision(7))
  return String(Math.fround(short) === value ? short : Number(value.toPrecision(9)))
}

function digits(letter: string, value: number, type: ValueType, precision: number | undefined): string | undefined {
  const isReal = type === 'float' || type === 'double'
  switch (letter) {
    case 'd':
    case 'i':
    case 'u':
      return isReal ? undefined : precision === 0 && value === 0 ? '' : String(value).padStart(precision ?? 1, '0')
    case 'f':
    case 'F':
      // From there on, toFixed returns an exponent.
      return isReal && value < 1e21 ? fixed(value, precision ?? 6) : undefined
    case 'e':
    case 'E':
      return isReal ? cased(letter, exponential(value, precision ?? 6)) : undefined
    case 'g':
    case 'G':
      return isReal ? cased(letter, general(value, precision || (precision === 0 ? 1 : 6))) : undefined
    default:
      return undefined
  }
}

/** Like toFixed, but rounds half to even, as C does. */
function fixed(value: number, precision: number): string {
  const rounded = value.toFixed(precision)
  // Only binary fractions of this many digits can be halfway, and toFixed returns them exactly.
  if (precision === MAX_DIGITS || !Number.isInteger(value * 2 ** (precision + 1))) return rounded
  const [, even] = /^(.*[02468])\.?5$/.exec(value.toFixed(precision + 1)) ?? []
  return even ?? rounded
}

/** Like toExponential, but rounds half to even and writes at least two digits of exponent, as C does. */
function exponential(value: number, precision: number): string {
  const [digits = '', exponent = ''] = value.toExponential(MAX_DIGITS).split('e')
  const kept = digits.slice(0, precision + (precision === 0 ? 1 : 2))
  const isEvenHalf = /[02468]$/.test(kept) && /^\.?50*$/.test(digits.slice(kept.length))
  const text = isEvenHalf ? `${kept}e${exponent}` : value.toExponential(precision)
  return text.replace(/(?<=e[+-])(?=\d$)/, '0')
}

/** The shorter of both forms with this many digits, without trailing zeros. */
function general(value: number, precision: number): string {
  const exponent = Number(exponential(value, precision - 1).split('e')[1])
  if (exponent < -4 || exponent >= precision)
    return exponential(value, precision - 1)
      .replace(/(\.\d*?)0+e/, '$1e')
      .replace('.e', 'e')
  // A number of at least 0.0001 needs fewer digits than the maximum.
  const text = fixed(value, Math.min(precision - 1 - exponent, MAX_DIGITS))
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

function cased(letter: string, text: string): string {
  return letter === letter.toUpperCase() ? text.toUpperCase() : text
}
