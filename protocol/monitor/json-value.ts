/**
 * The plain JSON of values and arguments [MON 13]: 64-bit integers as number up to 2^53-1, else string; NaN and the
 * infinities as strings; opaque as base64; REC an object, ARRAY an array, VOID null. A STRING that is not UTF-8 gets U+FFFD.
 */
import { toBase64 } from '../bytes/base64.ts'
import { ProtocolError } from '../errors.ts'
import type { Argument, ArgumentList } from './arguments.ts'
import { BasicType } from './constants.ts'
import { nameProblem, type Value } from './value.ts'

const lenientUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })

export function valueToJson(value: Value): unknown {
  switch (value.type) {
    case BasicType.INT64:
    case BasicType.UINT64:
      return bigintToJson(value.value)
    case BasicType.DOUBLE:
      return Number.isFinite(value.value) ? value.value : String(value.value)
    case BasicType.STRING:
      return typeof value.value === 'string' ? value.value : lenientUtf8.decode(value.value)
    case BasicType.OPAQUE:
      return toBase64(value.value)
    case BasicType.REC: {
      const json: [string, unknown][] = value.value.map((field) => [field.name, valueToJson(field)])
      return Object.fromEntries(json)
    }
    case BasicType.ARRAY: {
      const { element, items } = value.value
      return items.map((item) => valueToJson({ type: element, value: item } as Value))
    }
    default:
      return value.value
  }
}

function bigintToJson(value: bigint): number | string {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : value.toString()
}

/** Arguments from a JSON object. The type of each is a guess from its JSON type; the server applies the declared one. */
export function argumentsFromJson(json: unknown, key: string): ArgumentList {
  if (json === undefined) return []
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new ProtocolError('BAD_JSON', `"${key}" has to be an object of arguments`)
  }
  return Object.entries(json).map(([name, value]) => {
    const problem = nameProblem(name)
    if (problem !== undefined) throw new ProtocolError('BAD_NAME', `an argument with ${problem}`)
    return argumentFromJson(name, value)
  })
}

function argumentFromJson(name: string, value: unknown): Argument {
  switch (typeof value) {
    case 'boolean':
      return { name, type: BasicType.BOOLEAN, value, json: true }
    case 'string':
      if (!value.isWellFormed()) throw new ProtocolError('BAD_UTF8', `the argument ${name} is not Unicode`)
      return { name, type: BasicType.STRING, value, json: true }
    case 'number':
      if (Number.isSafeInteger(value)) return { name, type: BasicType.INT64, value: BigInt(value), json: true }
      return { name, type: BasicType.DOUBLE, value, json: true }
    default:
      throw new ProtocolError('BAD_JSON', `the argument ${name} has to be a boolean, a number or a string`)
  }
}
