/** How Go prints: what `{{ … }}`, `print` and `printf` make of values. */
import { TemplateError } from './parse.ts'

/** A value of a query in a template. */
export interface TemplateSample {
  readonly Labels: ReadonlyMap<string, string>
  readonly Value: number
}

/**
 * A value in a template: an integer is a bigint, any other number a float; labels and arguments are maps, `nil` is undefined.
 */
export type TemplateValue =
  | string
  | number
  | bigint
  | boolean
  | undefined
  | ReadonlyMap<string, TemplateValue>
  | readonly TemplateValue[]
  | TemplateSample

/** The most that JavaScript gives. */
const MOST_DIGITS = 100
/** From this power of ten on a number that is written with as many digits as it needs has an exponent. */
const SHORT_POWER = 6
/** Longest width and most digits that printf takes. */
const MAX_WIDTH = 1_000

/** `%v`. */
export function printed(value: TemplateValue): string {
  if (value === undefined) return '<no value>'
  if (typeof value === 'number') return goNumber(value, 'g', undefined)
  if (typeof value !== 'object') return String(value)
  if (isMap(value)) {
    const pairs = [...value].sort(([left], [right]) => (left < right ? -1 : 1))
    return `map[${pairs.map(([name, text]) => `${name}:${printed(text)}`).join(' ')}]`
  }
  if (isList(value)) return `[${value.map(printed).join(' ')}]`
  return `{${printed(value.Labels)} ${printed(value.Value)}}`
}

/** The name of its type in Go. */
export function goType(value: TemplateValue): string {
  if (value === undefined) return '<nil>'
  if (typeof value === 'number') return 'float64'
  if (typeof value === 'bigint') return 'int'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (isMap(value)) return 'map[string]string'
  return isList(value) ? 'template.queryResult' : 'template.sample'
}

export function isMap(value: TemplateValue): value is ReadonlyMap<string, TemplateValue> {
  return value instanceof Map
}

export function isList(value: TemplateValue): value is readonly TemplateValue[] {
  return Array.isArray(value)
}

export function isSample(value: TemplateValue): value is TemplateSample {
  return typeof value === 'object' && !isMap(value) && !isList(value)
}

/** A number by the verb e, f or g; `digits` undefined: as many as it needs (g), or 6. */
export function goNumber(value: number, verb: string, digits: number | undefined): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const size = Math.abs(value)
  if (verb === 'f') return sign + fixed(size, digits ?? 6)
  if (verb === 'e') return sign + exponential(size, digits ?? 6)
  if (digits === undefined) {
    const [mantissa = '', exponent = '0'] = size.toExponential().split('e')
    const power = Number(exponent)
    if (power < -4 || power >= SHORT_POWER) return `${sign}${mantissa}e${powerText(power)}`
    return sign + fixed(size, Math.max(0, mantissa.replace('.', '').length - 1 - power))
  }
  const precision = Math.max(1, digits)
  const [mantissa = '', exponent = '0'] = rounded(size, 'toExponential', precision - 1).split('e')
  const power = Number(exponent)
  const short = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa
  if (size !== 0 && (power < -4 || power >= precision)) return `${sign}${short}e${powerText(power)}`
  const plain = fixed(size, Math.max(0, precision - 1 - power))
  return sign + (plain.includes('.') ? plain.replace(/\.?0+$/, '') : plain)
}

/** `toFixed` with all digits of large numbers. */
function fixed(value: number, digits: number): string {
  if (value < 1e21) return rounded(value, 'toFixed', digits)
  return BigInt(value).toString() + (digits > 0 ? `.${'0'.repeat(digits)}` : '')
}

/** What lies in the middle is rounded to an even digit in Go, and up in JavaScript. */
function rounded(value: number, how: 'toFixed' | 'toExponential', digits: number): string {
  const most = Math.min(MOST_DIGITS, digits)
  const [exact = '', power] = value[how](MOST_DIGITS).split('e')
  const point = exact.indexOf('.')
  const kept = exact.slice(0, point + 1 + most)
  const isMiddle = /^50*$/.test(exact.slice(point + 1 + most))
  if (!isMiddle || !/[02468]\.?$/.test(kept)) return value[how](most)
  return kept.replace(/\.$/, '') + (power === undefined ? '' : `e${power}`)
}

function exponential(value: number, digits: number): string {
  const [mantissa = '', exponent = '0'] = rounded(value, 'toExponential', digits).split('e')
  return `${mantissa}e${powerText(Number(exponent))}`
}

function powerText(power: number): string {
  return `${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** Go's fmt.Sprint: a space stands between two values of which neither is a text. */
export function sprint(values: readonly TemplateValue[]): string {
  let text = ''
  for (const [index, value] of values.entries()) {
    if (index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string') text += ' '
    text += printedAlone(value)
  }
  return text
}

/** Inside of print, nil has a name of its own. */
export function printedAlone(value: TemplateValue): string {
  return value === undefined ? '<nil>' : printed(value)
}

const DIRECTIVE = /%([-+# 0]*)(\d+)?(?:\.(\d*))?(.)?/gsu

/** Go's fmt.Sprintf. */
export function sprintf(format: string, values: readonly TemplateValue[]): string {
  let next = 0
  const text = format.replace(DIRECTIVE, (_whole, flags: string, width = '', digits: string | undefined, verb = '') => {
    if (verb === '') return '%!(NOVERB)'
    if (verb === '%') return '%'
    if (next >= values.length) return `%!${verb}(MISSING)`
    if (Number(width) > MAX_WIDTH || Number(digits) > MAX_WIDTH)
      throw new TemplateError(`printf takes a width of at most ${MAX_WIDTH}`)
    const value = values[next++]
    const shown = directive(value, verb, flags, digits === undefined ? undefined : Number(digits))
    return padded(shown, flags, Number(width), typeof value === 'number' || typeof value === 'bigint')
  })
  if (next >= values.length) return text
  const rest = values.slice(next).map((value) => `${goType(value)}=${printedAlone(value)}`)
  return `${text}%!(EXTRA ${rest.join(', ')})`
}

function directive(value: TemplateValue, verb: string, flags: string, digits: number | undefined): string {
  const plus = flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const signed = (text: string): string => (plus !== '' && !/^[-+]/.test(text) ? plus + text : text)
  if (typeof value === 'number') {
    if (verb === 'v' || verb === 'g') return signed(goNumber(value, 'g', digits))
    if (verb === 'e' || verb === 'f' || verb === 'F') return signed(goNumber(value, verb.toLowerCase(), digits))
    if (verb === 'G' || verb === 'E') return signed(goNumber(value, verb.toLowerCase(), digits).replace('e', 'E'))
  } else if (typeof value === 'bigint') {
    if (verb === 'v' || verb === 'd') return signed(String(value))
    const base = { x: 16, X: 16, o: 8, b: 2 }[verb]
    if (base !== undefined) return verb === 'X' ? value.toString(base).toUpperCase() : value.toString(base)
    if (verb === 'c') return String.fromCodePoint(Number(value))
  } else if (typeof value === 'string') {
    if (verb === 'v' || verb === 's') return digits === undefined ? value : [...value].slice(0, digits).join('')
    if (verb === 'q') return JSON.stringify(value)
    if (verb === 'x' || verb === 'X') {
      const hex = Buffer.from(value).toString('hex')
      return verb === 'X' ? hex.toUpperCase() : hex
    }
  } else if (typeof value === 'boolean') {
    if (verb === 'v' || verb === 't') return String(value)
  } else if (verb === 'v' || (verb === 's' && value !== undefined)) return printedAlone(value)
  if (verb === 'T') return goType(value)
  return value === undefined ? `%!${verb}(<nil>)` : `%!${verb}(${goType(value)}=${printedAlone(value)})`
}

function padded(text: string, flags: string, width: number, isNumber: boolean): string {
  if (flags.includes('-')) return text.padEnd(width)
  if (!flags.includes('0') || !isNumber || /[fN]$/.test(text)) return text.padStart(width)
  const [sign = ''] = /^[-+ ]?/.exec(text) ?? []
  return sign + text.slice(sign.length).padStart(width - sign.length, '0')
}
