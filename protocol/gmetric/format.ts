/**
 * A number as the format of its packet wants it shown. The format came from the network and is never given to a printf:
 * a format is one conversion of the few that gmond's modules use, with small bounds, or it is passed over.
 */
import type { ValueType } from './packet.ts'

/** `%hu`, `%u`, `%.2f`, `%5.1f`, `%lld`, `%g`; no `*`, no `%s`, no `%n`, no text around it, nothing above two digits. */
const CONVERSION =
  /^%(?<flags>[-+ 0]{0,4})(?<width>\d{0,2})(?:\.(?<precision>\d{1,2}))?(?:hh?|ll?)?(?<letter>[diufFeEgG])$/

/** More than toFixed and toExponential take is a RangeError. */
const MAX_DIGITS = 100

/** The text of a number of that type; where its format is no such conversion, or does not fit the number, all its digits. */
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

/** Seven digits tell any two floats of four bytes apart from what a double would show of them; nine are needed for some. */
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
      // Beyond it toFixed gives an exponent.
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

/** As toFixed but, of two that are equally near, the even one, as C has it. */
function fixed(value: number, precision: number): string {
  const rounded = value.toFixed(precision)
  // Halfway are only binary fractions of so many digits, which toFixed gives exactly.
  if (precision === MAX_DIGITS || !Number.isInteger(value * 2 ** (precision + 1))) return rounded
  const [, even] = /^(.*[02468])\.?5$/.exec(value.toFixed(precision + 1)) ?? []
  return even ?? rounded
}

/** The same of toExponential. C writes at least two digits of exponent. */
function exponential(value: number, precision: number): string {
  const [digits = '', exponent = ''] = value.toExponential(MAX_DIGITS).split('e')
  const kept = digits.slice(0, precision + (precision === 0 ? 1 : 2))
  const isEvenHalf = /[02468]$/.test(kept) && /^\.?50*$/.test(digits.slice(kept.length))
  const text = isEvenHalf ? `${kept}e${exponent}` : value.toExponential(precision)
  return text.replace(/(?<=e[+-])(?=\d$)/, '0')
}

/** The shorter of both forms with so many digits, without zeros at the end. */
function general(value: number, precision: number): string {
  const exponent = Number(exponential(value, precision - 1).split('e')[1])
  if (exponent < -4 || exponent >= precision)
    return exponential(value, precision - 1)
      .replace(/(\.\d*?)0+e/, '$1e')
      .replace('.e', 'e')
  // What is not below 0.0001 has fewer digits than there may be.
  const text = fixed(value, Math.min(precision - 1 - exponent, MAX_DIGITS))
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

function cased(letter: string, text: string): string {
  return letter === letter.toUpperCase() ? text.toUpperCase() : text
}
