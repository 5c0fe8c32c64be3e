/**
 * The arguments of methods as parameters of controls, their values in QMF and back. A control has the parameters of all
 * versions of its method that brokers have; maps and lists are given as JSON text. A newcomer asks why `object` of a
 * method is `argument_object` here: `object` names the object on which the method is called.
 */
import type { FieldTable, FieldValue } from '../../../../protocol/amqp/field-table.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Field, nameProblem, type Value, VOID } from '../../../../protocol/monitor/value.ts'
import { inputsOf, outputsOf } from '../../../../protocol/qmf/schema.ts'
import {
  QmfType,
  type QmfValue,
  type SchemaArgument,
  type SchemaMethod,
  type Statistics,
} from '../../../../protocol/qmf/types.ts'
import { parseObjectId } from '../../../../protocol/qmf/values.ts'
import {
  type Bounds,
  type ControlArguments,
  type ControlParameter,
  checkBounds,
  HIDDEN,
  integers,
  reservedParameters,
} from '../../../kit/controls.ts'
import { StatusError } from '../../../kit/running.ts'
import { basicTypeOf, MAX_TEXT, toValue, unitOf } from '../values.ts'

export const BROKER_PARAMETER = 'broker'
export const OBJECT_PARAMETER = 'object'
const RESERVED: readonly string[] = [BROKER_PARAMETER, OBJECT_PARAMETER, ...reservedParameters]

/** Schemas do not mark secrets such as `password` of the broker's `connect`. */
const SECRET = /password|passwd|secret|credential|token/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/**
 * The limits for the arguments of a method, and for a description in UTF-16 units: with them every control fits a
 * frame.
 */
const MAX_ARGUMENTS = 100
const MAX_DESCRIPTION = 1_000

const SHORT_BYTES = 255
const LONG_BYTES = 65_535
/** JSON with deeper nesting is refused. */
const MAX_NESTING = 16

/** The ranges of types that are narrower than the basic types they become. */
const ranges: Readonly<Partial<Record<QmfType, readonly [number, number]>>> = {
  [QmfType.UINT8]: [0, 0xff],
  [QmfType.UINT16]: [0, 0xffff],
  [QmfType.INT8]: [-0x80, 0x7f],
  [QmfType.INT16]: [-0x8000, 0x7fff],
}

/** Whether a control can call it: every argument has a name, and a type that can be given or shown. */
export function isCallable({ arguments: all }: SchemaMethod): boolean {
  if (all.length > MAX_ARGUMENTS) return false
  return all.every(({ name, type, direction }) => {
    const isReadable = type !== QmfType.OBJECT && type !== QmfType.ARRAY
    return isReadable && (direction === 'O' || nameProblem(parameterName(name)) === undefined)
  })
}

function isJson({ type }: Pick<SchemaArgument, 'type'>): boolean {
  return type === QmfType.MAP || type === QmfType.LIST
}

function isUuid(text: string): boolean {
  return UUID.test(text)
}

function parameterName(argument: string): string {
  return RESERVED.includes(argument) ? `argument_${argument}` : argument
}

export function parameterOf(argument: SchemaArgument): ControlParameter {
  const { name, type, description = '' } = argument
  const byDefault = defaultOf(argument)
  const unit = unitOf(argument)
  const notes = [
    description,
    unit !== '' && `in ${unit}`,
    isJson(argument) && `JSON, ${type === QmfType.MAP ? 'like {"key": 1}' : 'like ["one", 2]'}`,
  ]
  return {
    name: parameterName(name),
    type: basicTypeOf(type),
    ...(SECRET.test(name) && { secret: true }),
    ...(isJson(argument) && { masked }),
    ...(byDefault !== undefined && { optional: true, default: byDefault }),
    ...boundsOf(argument),
    description: shortened(notes.filter(Boolean).join('; ')),
  }
}

/** What both the schema and the type allow. Texts that become something else have the bounds of that. */
function boundsOf(argument: SchemaArgument): Pick<Bounds, 'min' | 'max' | 'maxLength'> {
  const { type, min, max, maxLength = LONG_BYTES } = argument
  if (basicTypeOf(type) === BasicType.STRING) {
    if (isJson(argument) || type === QmfType.UUID || type === QmfType.REFERENCE) return {}
    return { maxLength: Math.min(maxLength, type === QmfType.SHORT_STRING ? SHORT_BYTES : LONG_BYTES) }
  }
  const [least, most] = ranges[type] ?? []
  return { min: ascending([least, min]).at(-1), max: ascending([most, max])[0] }
}

/** Without those that are missing. */
function ascending(bounds: readonly (number | bigint | undefined)[]): (number | bigint)[] {
  return bounds.filter((bound) => bound !== undefined).sort((one, other) => (one < other ? -1 : 1))
}

export function shortened(description: string): string {
  return description.length > MAX_DESCRIPTION ? description.slice(0, MAX_DESCRIPTION).toWellFormed() : description
}

/**
 * Merges the parameters of all versions. A parameter that one version lacks is optional, and a default counts only if
 * all versions share it, and its bounds are the widest: each call is completed and checked by the version of its broker.
 */
export function methodParameters(versions: readonly SchemaMethod[]): ControlParameter[] {
  const all = versions.map((method) => inputsOf(method).map(parameterOf))
  const names = new Set(all.flat().map(({ name }) => name))
  return [...names].map((name) => {
    const same = all.map((list) => list.find((parameter) => parameter.name === name))
    return merged(
      same.filter((parameter) => parameter !== undefined),
      same.includes(undefined),
    )
  })
}

function merged(same: readonly ControlParameter[], isMissing: boolean): ControlParameter {
  const [first] = same as readonly [ControlParameter]
  const bounds = {
    min: isBoundBy(same, 'min') ? ascending(same.map(({ min }) => min))[0] : undefined,
    max: isBoundBy(same, 'max') ? ascending(same.map(({ max }) => max)).at(-1) : undefined,
    maxLength: isBoundBy(same, 'maxLength') ? Math.max(...same.map(({ maxLength = 0 }) => maxLength)) : undefined,
  }
  const types = new Set(same.map(({ type }) => type))
  const isShared = !isMissing && types.size === 1 && same.every((one) => one.default === first.default)
  if (isShared) return { ...first, ...bounds }
  const isOptional = isMissing || same.some(({ optional }) => optional)
  const secret = same.some((one) => one.secret)
  return { ...first, ...bounds, type: commonType(types), default: undefined, optional: isOptional, secret }
}

function isBoundBy(same: readonly ControlParameter[], bound: 'min' | 'max' | 'maxLength'): boolean {
  return same.every((one) => one[bound] !== undefined)
}

/** Returns the type that includes all of these, or the first of them if there is none. */
function commonType(types: ReadonlySet<BasicType>): BasicType {
  const [first] = types as ReadonlySet<BasicType> & readonly [BasicType]
  if (types.size === 1 || [...types].some((type) => integers[type] === undefined)) return first
  const isSigned = types.has(BasicType.INT32) || types.has(BasicType.INT64)
  return isSigned ? BasicType.INT64 : BasicType.UINT64
}

/**
 * Converts the default to the parameter's type; undefined without a usable one. Brokers send numbers and booleans as
 * texts too.
 */
function defaultOf(argument: SchemaArgument): Value['value'] | undefined {
  const { type, default: given } = argument
  if (given === undefined) return undefined
  const basic = basicTypeOf(type)
  switch (basic) {
    case BasicType.BOOLEAN:
      if (typeof given === 'boolean') return given
      if (['0', 'false', 'n', 'no'].includes(String(given).toLowerCase())) return false
      return ['1', 'true', 'y', 'yes'].includes(String(given).toLowerCase()) ? true : undefined
    case BasicType.STRING:
      if (typeof given !== 'string' || isJson(argument)) return undefined
      if (type === QmfType.REFERENCE && parseObjectId(given) === undefined) return undefined
      return type === QmfType.UUID && !isUuid(given) ? undefined : given
    case BasicType.DOUBLE: {
      const number = given === '' ? Number.NaN : Number(given)
      return Number.isNaN(number) ? undefined : number
    }
    default: {
      // Some are written as 0xFFFFFFFF.
      const digits = String(given)
      if (!/^(-?\d{1,20}|0x[\da-f]{1,16})$/i.test(digits)) return undefined
      const integer = BigInt(digits)
      const [least, most] = ranges[type] ?? integers[basic] ?? [0n, 0n]
      if (integer < least || integer > most) return undefined
      return basic === BasicType.INT64 || basic === BasicType.UINT64 ? integer : Number(integer)
    }
  }
}

/** Hides secrets inside JSON: `password` of a link stands in `properties` of the broker's `create`. */
function masked(value: Value['value']): Value['value'] {
  const text = String(value)
  if (!SECRET.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text, (key, inside: unknown) => (SECRET.test(key) ? HIDDEN : inside)))
  } catch {
    return HIDDEN
  }
}

type Refuse = (why: string) => StatusError

/**
 * Returns the values of the input arguments; `given` has the types of this version. Throws StatusError
 * INVALID_ARGUMENT.
 */
export function toQmfArguments(method: SchemaMethod, given: ControlArguments): QmfValue[] {
  return inputsOf(method).map((argument) => {
    const name = parameterName(argument.name)
    const value = given.get(name) ?? defaultOf(argument)
    const refuse: Refuse = (why) => new StatusError('INVALID_ARGUMENT', `argument ${name}: ${why}`)
    if (value === undefined) throw new StatusError('INVALID_ARGUMENT', `${method.name} needs the argument ${name}`)
    checkBounds(parameterOf(argument), value)
    if (typeof value === 'string') return text(argument, value, refuse)
    return typeof value === 'number' || typeof value === 'bigint' ? number(argument, value, refuse) : (value as boolean)
  })
}

/** Converts the output arguments to a REC. A value that does not fit a frame becomes VOID. */
export function toRecord(method: SchemaMethod, values: Statistics): Value {
  const fields: Field[] = []
  let length = 0
  for (const [at, { name, type }] of outputsOf(method).entries()) {
    if (nameProblem(name) !== undefined) continue
    const value = toValue(type, values[at])
    if (typeof value.value === 'string') length += value.value.length
    fields.push({ name, ...(length > MAX_TEXT ? VOID : value) })
  }
  return { type: BasicType.REC, value: fields }
}

function number({ type }: SchemaArgument, value: number | bigint, refuse: Refuse): number | bigint {
  const isTooLarge = type === QmfType.FLOAT && Number.isFinite(value) && !Number.isFinite(Math.fround(value as number))
  if (isTooLarge) throw refuse('it does not fit a float of 32 bits')
  return value
}

function text(argument: SchemaArgument, value: string, refuse: Refuse): QmfValue {
  const { type } = argument
  // The text is not repeated in errors: it may be a secret.
  // Which form an object id has is known to the connection.
  if (type === QmfType.REFERENCE) return value
  if (type === QmfType.UUID) {
    if (!isUuid(value)) throw refuse('not a UUID like 01234567-89ab-cdef-0123-456789abcdef')
    return value.toLowerCase()
  }
  return isJson(argument) ? json(type, value, refuse) : value
}

function json(type: QmfType, value: string, refuse: Refuse): QmfValue {
  let parsed: unknown
  try {
    parsed = JSON.parse(value)
  } catch {
    throw refuse('not JSON')
  }
  const given = fieldValue(parsed, 0, refuse)
  if (type === QmfType.MAP ? !(given instanceof Map) : !Array.isArray(given)) {
    throw refuse(type === QmfType.MAP ? 'not a JSON object like {"key": 1}' : 'not a JSON list like ["one", 2]')
  }
  return given as QmfValue
}

/** Sends whole numbers as integers. */
function fieldValue(value: unknown, depth: number, refuse: Refuse): FieldValue {
  if (typeof value === 'number') {
    if (!Number.isInteger(value) || isInt32(value)) return value
    if (!Number.isSafeInteger(value)) throw refuse('an integer beyond 2^53, which JSON does not keep exactly')
    return BigInt(value)
  }
  if (value === null || typeof value !== 'object') return value as FieldValue
  if (depth >= MAX_NESTING) throw refuse(`nested more than ${MAX_NESTING} deep`)
  const entries = Object.entries(value).map(([key, one]) => [key, fieldValue(one, depth + 1, refuse)] as const)
  return Array.isArray(value) ? entries.map(([, one]) => one) : (new Map(entries) as FieldTable)
}

function isInt32(value: number): boolean {
  return value === Math.trunc(value) && Math.abs(value) < 2 ** 31
}
