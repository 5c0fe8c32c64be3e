/**
 * The arguments of metrics and controls: which are declared, and the conversion of given ones to the declared types [MON 2].
 * An integer of any integer type is accepted if it fits, and for a STRING that holds a number; any number is accepted for
 * DOUBLE; nothing else is converted.
 * JSON may also carry 64-bit numbers, NaN and opaque data as strings [MON 13].
 */
import { fromBase64 } from '../../../protocol/bytes/base64.ts'
import type { Argument, ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import { typeName } from '../../../protocol/monitor/json.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { StatusError } from '../core/errors.ts'
import type { Arguments, Metric } from './metric.ts'
import { isPattern } from './pattern.ts'

export interface DeclaredArgument {
  readonly name: string
  readonly type: BasicType
  /** An integer is taken for a STRING too, as its digits. */
  readonly isNumber?: boolean
}

/** The smallest and the largest value of each integer type. */
export const integers: Partial<Record<BasicType, readonly [bigint, bigint]>> = {
  [BasicType.INT32]: [-(2n ** 31n), 2n ** 31n - 1n],
  [BasicType.UINT32]: [0n, 2n ** 32n - 1n],
  [BasicType.INT64]: [-(2n ** 63n), 2n ** 63n - 1n],
  [BasicType.UINT64]: [0n, 2n ** 64n - 1n],
}

export const interval: DeclaredArgument = { name: 'interval_ms', type: BasicType.UINT32 }
export const deadline: DeclaredArgument = { name: 'deadline_ms', type: BasicType.UINT32 }
/** Whether values are wanted that a source sends only when it is asked for them. */
export const onDemand: DeclaredArgument = { name: 'on_demand', type: BasicType.BOOLEAN }
/** What every continuous metric takes. */
export const ofAll: readonly DeclaredArgument[] = [interval, deadline, onDemand]

/** Declares any argument as the text of a label. */
export function asLabel(name: string): DeclaredArgument {
  return { name, type: BasicType.STRING }
}

/**
 * The arguments that a selection takes: those of the metrics that match now, those that every metric takes, and for a
 * pattern all labels with a place of their own.
 */
export function declaredFor(name: string, metrics: readonly Metric[]): DeclaredArgument[] {
  const declared = new Map<string, DeclaredArgument>()
  if (isPattern(name)) {
    for (const label of labelNames.slice(1)) {
      declared.set(label, { name: label, type: BasicType.STRING, isNumber: label === 'cpu' })
    }
  }
  if (metrics.length > 0) declared.set('producer', asLabel('producer'))
  for (const metric of metrics) for (const parameter of metric.parameters) declared.set(parameter.name, parameter)
  if (isPattern(name) || metrics.some(({ kind }) => kind === 'continuous')) {
    for (const argument of ofAll) declared.set(argument.name, argument)
  }
  return [...declared.values()]
}

/** Converted arguments in the form that the store keeps, with their declared types. */
export function storable(values: Arguments, declared: readonly DeclaredArgument[]): ArgumentList {
  return [...values].map(([name, value]) => {
    const { type } = declared.find((one) => one.name === name) ?? asLabel(name)
    return { name, type, value } as ArgumentList[number]
  })
}

/** Arguments as a key that does not depend on their order. */
export function keyOfArguments(args: Arguments): [string, unknown][] {
  const plain = [...args].map(([name, value]): [string, unknown] => [
    name,
    typeof value === 'bigint' ? value.toString() : value,
  ])
  return plain.sort(([a], [b]) => (a < b ? -1 : 1))
}

/**
 * Returns the converted arguments by name. Throws StatusError INVALID_ARGUMENT for an unknown name, a wrong type or a value
 * out of range; `of` names the metric or control in its message. `other` declares what `declared` does not.
 */
export function convertArguments(
  list: ArgumentList,
  declared: readonly DeclaredArgument[],
  of: string,
  other: (name: string) => DeclaredArgument | undefined = () => undefined,
): Map<string, Value['value']> {
  const converted = new Map<string, Value['value']>()
  for (const argument of list) {
    const parameter = declared.find(({ name }) => name === argument.name) ?? other(argument.name)
    if (parameter === undefined) {
      const known = declared.map(({ name }) => name).join(', ')
      throw new StatusError(
        'INVALID_ARGUMENT',
        `${of} takes no argument ${argument.name}; it takes: ${known || 'none'}`,
      )
    }
    converted.set(argument.name, convert(argument, parameter))
  }
  return converted
}

function convert(argument: Argument, { type, isNumber }: DeclaredArgument): Value['value'] {
  const digits = isNumber === true ? integerOf(argument, type) : undefined
  if (digits !== undefined) return String(digits)
  const range = integers[type]
  if (range !== undefined) {
    const integer = integerOf(argument, type)
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

/** JSON may give the digits of a 64-bit number in a string, and only of that [MON 13]. */
function integerOf(argument: Argument, type: BasicType): bigint | undefined {
  if (typeof argument.value === 'bigint') return argument.value
  if (argument.type === BasicType.INT32 || argument.type === BasicType.UINT32) return BigInt(argument.value)
  const isLong = type === BasicType.INT64 || type === BasicType.UINT64
  if (isLong && argument.json && typeof argument.value === 'string' && /^-?\d{1,20}$/.test(argument.value)) {
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

const MIN_INTERVAL_MS = 10
const MAX_INTERVAL_MS = 86_400_000
const DEADLINE_MS = 10_000
const MAX_DEADLINE_MS = 600_000

/** Throws StatusError INVALID_ARGUMENT. */
export function intervalMsOf(args: Arguments, otherwise: number): number {
  return numberWithin(args, interval.name, otherwise, MIN_INTERVAL_MS, MAX_INTERVAL_MS)
}

/** Throws StatusError INVALID_ARGUMENT. */
export function deadlineMsOf(args: Arguments): number {
  return numberWithin(args, deadline.name, DEADLINE_MS, 1, MAX_DEADLINE_MS)
}

function numberWithin(args: Arguments, name: string, otherwise: number, least: number, most: number): number {
  const value = args.get(name)
  if (value === undefined) return otherwise
  const number = value as number
  if (number >= least && number <= most) return number
  throw new StatusError('INVALID_ARGUMENT', `${name} must be from ${least} to ${most}, not ${number}`)
}
