/**
 * Converts Ganglia's types to the basic types of the Monitoring Protocol. The declared type counts, not that of the message:
 * gmetric declares `uint32` and sends the text "42". A value that does not fit its type is refused.
 *
 * string, '' -> STRING   int8 int16 int32 -> INT32   uint8 uint16 uint32 timestamp -> UINT32   float double -> DOUBLE
 */
import { BasicType } from '../monitor/constants.ts'
import type { Value } from '../monitor/value.ts'
import type { ValueType } from './packet.ts'

type NumberType = typeof BasicType.INT32 | typeof BasicType.UINT32 | typeof BasicType.DOUBLE
export type GmetricValue = Extract<Value, { readonly type: NumberType | typeof BasicType.STRING }>

type Target =
  | { readonly type: typeof BasicType.STRING }
  | { readonly type: typeof BasicType.DOUBLE }
  | { readonly type: typeof BasicType.INT32 | typeof BasicType.UINT32; readonly min: number; readonly max: number }

const text: Target = { type: BasicType.STRING }
const real: Target = { type: BasicType.DOUBLE }
const signed = (bits: number): Target => ({ type: BasicType.INT32, min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 })
const unsigned = (bits: number): Target => ({ type: BasicType.UINT32, min: 0, max: 2 ** bits - 1 })

const TARGETS: ReadonlyMap<string, Target> = new Map([
  ['string', text],
  ['', text],
  ['int8', signed(8)],
  ['int16', signed(16)],
  ['int32', signed(32)],
  ['uint8', unsigned(8)],
  ['uint16', unsigned(16)],
  ['uint32', unsigned(32)],
  ['timestamp', unsigned(32)],
  ['float', real],
  ['double', real],
])

/** Numbers as strtod reads them, except hexadecimal: gmetric sends whatever strtod reads completely. Linear in the length. */
const NUMBER = /^[\t-\r ]*[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|(?<inf>inf(?:inity)?)|(?<nan>nan))$/i

/**
 * Converts a value that was sent as type `sent` to the type `declared` for its metric, or to `sent` if no known type is
 * declared. Returns undefined if it does not fit.
 */
export function basicValue(
  declared: string | undefined,
  sent: ValueType,
  value: number | string | Uint8Array,
): GmetricValue | undefined {
  const target = TARGETS.get(declared ?? sent) ?? TARGETS.get(sent)!
  if (target.type === BasicType.STRING) {
    return { type: target.type, value: typeof value === 'number' ? String(value) : value }
  }
  const number = typeof value === 'number' ? value : parseNumber(value)
  if (number === undefined) return undefined
  if (target.type === BasicType.DOUBLE) return { type: target.type, value: number }
  if (!Number.isInteger(number) || number < target.min || number > target.max) return undefined
  return { type: target.type, value: number === 0 ? 0 : number } // no -0 among integers
}

function parseNumber(value: string | Uint8Array): number | undefined {
  const match = typeof value === 'string' ? NUMBER.exec(value) : null
  if (!match) return undefined
  if (match.groups?.['nan']) return Number.NaN
  if (match.groups?.['inf']) return match[0].includes('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return Number(match[0])
}
