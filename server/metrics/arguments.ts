/**
 * Converts the arguments of a command to the declared types, in this one place [MON 2]: an integer of any integer type if
 * it fits, any number for DOUBLE, nothing else. From JSON also 64-bit numbers, NaN and opaque as strings [MON 13].
 */
import { fromBase64 } from '../../protocol/bytes/base64.ts'
import type { Argument, ArgumentList } from '../../protocol/monitor/arguments.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { typeName } from '../../protocol/monitor/json.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import { StatusError } from '../core/errors.ts'

export interface Declared {
  readonly name: string
  readonly type: BasicType
}

/** The least and the most of each integer type. */
export const integers: Partial<Record<BasicType, readonly [bigint, bigint]>> = {
  [BasicType.INT32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [BasicType.UINT32]: [0n, 2n ** 32n - 1n],
  [BasicType.INT64]: [-(2n ** 63n), 2n ** 63n - 1n],
  [BasicType.UINT64]: [0n, 2n ** 64n - 1n],
}

/** The converted arguments by name. Throws StatusError INVALID_ARGUMENT: unknown name, wrong type, out of range. `of` is for the sentence. */
export function convertArguments(
  list: ArgumentList,
  declared: readonly Declared[],
  of: string,
): Map<string, Value['value']> {
  const converted = new Map<string, Value['value']>()
  for (const argument of list) {
    const parameter = declared.find(({ name }) => name === argument.name)
    if (parameter === undefined) {
      const known = declared.map(({ name }) => name).join(', ')
      throw new StatusError(
        'INVALID_ARGUMENT',
        `${of} takes no argument ${argument.name}; it takes: ${known || 'none'}`,
      )
    }
    converted.set(argument.name, convert(argument, parameter.type))
  }
  return converted
}

function convert(argument: Argument, type: BasicType): Value['value'] {
  const range = integers[type]
  if (range !== undefined) {
    const integer = integerOf(argument)
    if (integer === undefined) throw wrongType(argument, type)
    if (integer < range[0] || integer > range[1]) {
      throw new StatusError('INVALID_ARGUMENT', `argument ${argument.name}: ${integer} does not fit ${typeName(type)}`)
    }
    return type === BasicType.INT32 || type === BasicType.UINT32 ? Number(integer) : integer
  }
  if (type === BasicType.DOUBLE) {
    const number = numberOf(argument)
    if (number === undefined) throw wrongType(argument, type)
    return number
  }
  if (type === BasicType.OPAQUE && argument.json && typeof argument.value === 'string') {
    const bytes = fromBase64(argument.value)
    if (bytes === undefined) throw wrongType(argument, type)
    return bytes
  }
  if (argument.type !== type) throw wrongType(argument, type)
  if (type === BasicType.STRING && typeof argument.value !== 'string') {
    throw new StatusError('INVALID_ARGUMENT', `argument ${argument.name} is not UTF-8`)
  }
  return argument.value
}

function integerOf(argument: Argument): bigint | undefined {
  if (typeof argument.value === 'bigint') return argument.value
  if (argument.type === BasicType.INT32 || argument.type === BasicType.UINT32) return BigInt(argument.value)
  if (argument.json && typeof argument.value === 'string' && /^-?\d{1,20}$/.test(argument.value)) {
    return BigInt(argument.value)
  }
  if (argument.json && argument.type === BasicType.DOUBLE && Number.isInteger(argument.value))
    return BigInt(argument.value)
  return undefined
}

function numberOf(argument: Argument): number | undefined {
  if (typeof argument.value === 'number') return argument.value
  if (typeof argument.value === 'bigint') return Number(argument.value)
  if (argument.json && typeof argument.value === 'string' && /^(NaN|-?Infinity)$/.test(argument.value)) {
    return Number(argument.value)
  }
  return undefined
}

function wrongType(argument: Argument, type: BasicType): StatusError {
  return new StatusError(
    'INVALID_ARGUMENT',
    `argument ${argument.name} has to be ${typeName(type)}, not ${typeName(argument.type)}`,
  )
}
