/**
 * Arguments of a method as parameters of a control, and their values as QMF's. Maps and lists are given as JSON text.
 * A newcomer asks why `object` of a method is `argument_object` here: `object` says on what the method is called.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem, type Value } from '../../../protocol/monitor/value.ts'
import type { FieldTable, FieldValue } from '../../../protocol/qmf/amqp/field-table.ts'
import { parseObjectId } from '../../../protocol/qmf/object-id.ts'
import { QmfType, type QmfValue, type SchemaArgument, type SchemaMethod } from '../../../protocol/qmf/types.ts'
import { StatusError } from '../../errors.ts'
import { basicTypeOf, toValue, unitOf } from '../../sensors/qmf/values.ts'
import { type ControlParameter, DRY_RUN_PARAMETER, type Given, KEY_PARAMETER } from '../control.ts'

export const BROKER_PARAMETER = 'broker'
export const OBJECT_PARAMETER = 'object'
const TAKEN: readonly string[] = [BROKER_PARAMETER, OBJECT_PARAMETER, KEY_PARAMETER, DRY_RUN_PARAMETER]

/** Schemas do not say what is secret: `password` of the broker's `connect` is. */
const SECRET = /password|passwd|secret|credential|token/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const SHORT_BYTES = 255
const LONG_BYTES = 65_535
/** JSON that nests deeper is refused before it is looked at. */
const MOST_NESTING = 16

const RANGES: Readonly<Partial<Record<QmfType, readonly [number, number]>>> = {
  [QmfType.UINT8]: [0, 0xff],
  [QmfType.UINT16]: [0, 0xffff],
  [QmfType.INT8]: [-0x80, 0x7f],
  [QmfType.INT16]: [-0x8000, 0x7fff],
}

export function inputsOf({ arguments: all }: SchemaMethod): SchemaArgument[] {
  return all.filter(({ direction }) => direction !== 'O')
}

/** Whether it can be called from here: every argument has a type that can be given or shown, and a name. */
export function isCallable({ arguments: all }: SchemaMethod): boolean {
  return all.every(({ name, type, direction }) => {
    const isReadable = type !== QmfType.OBJECT && type !== QmfType.ARRAY
    return isReadable && (direction === 'O' || nameProblem(parameterName(name)) === undefined)
  })
}

function parameterName(argument: string): string {
  return TAKEN.includes(argument) ? `argument_${argument}` : argument
}

export function parameterOf(argument: SchemaArgument): ControlParameter {
  const { name, type, description = '', min, max, maxLength } = argument
  const byDefault = defaultOf(argument)
  const unit = unitOf(argument)
  const isJson = type === QmfType.MAP || type === QmfType.LIST
  const [least, most] = [min ?? RANGES[type]?.[0], max ?? RANGES[type]?.[1]]
  const notes = [
    description,
    unit !== '' && `in ${unit}`,
    least !== undefined && `at least ${least}`,
    most !== undefined && `at most ${most}`,
    maxLength !== undefined && `at most ${maxLength} bytes`,
    isJson && `JSON, ${type === QmfType.MAP ? 'like {"key": 1}' : 'like ["one", 2]'}`,
  ]
  return {
    name: parameterName(name),
    type: basicTypeOf(type),
    ...(SECRET.test(name) && { secret: true }),
    ...(byDefault !== undefined && { optional: true, default: byDefault }),
    description: notes.filter(Boolean).join('; '),
  }
}

/** Of the arguments that go in, in their order. Throws StatusError INVALID_ARGUMENT. */
export function toArguments(method: SchemaMethod, given: Given): QmfValue[] {
  return inputsOf(method).map((argument) => {
    const name = parameterName(argument.name)
    const value = given.get(name) ?? defaultOf(argument)
    const refuse = (why: string): StatusError => new StatusError('INVALID_ARGUMENT', `argument ${name}: ${why}`)
    if (value === undefined) throw new StatusError('INVALID_ARGUMENT', `${method.name} needs the argument ${name}`)
    if (typeof value === 'string') return text(argument, value, refuse)
    if (typeof value !== 'number' && typeof value !== 'bigint') return value as boolean
    const { type, min, max } = argument
    const [least, most] = RANGES[type] ?? []
    if (typeof value === 'number' && !Number.isFinite(value) && (min ?? max) !== undefined) throw refuse('no number')
    for (const bound of [least, min]) if (bound !== undefined && value < bound) throw refuse(`at least ${bound}`)
    for (const bound of [most, max]) if (bound !== undefined && value > bound) throw refuse(`at most ${bound}`)
    return value
  })
}

/** REC of what a method gave back: the arguments with direction O and IO. */
export function toRecord({ arguments: all }: SchemaMethod, values: readonly QmfValue[]): Value {
  const fields: Field[] = []
  for (const [at, { name, type }] of all.filter(({ direction }) => direction !== 'I').entries()) {
    if (nameProblem(name) === undefined) fields.push({ name, ...toValue(type, values[at]) })
  }
  return { type: BasicType.REC, value: fields }
}

function text(argument: SchemaArgument, value: string, refuse: (why: string) => StatusError): QmfValue {
  const { type, maxLength = LONG_BYTES } = argument
  if (type === QmfType.REFERENCE) {
    if (parseObjectId(value) === undefined) throw refuse(`an object id like 0-0-1-0-2, not ${value}`)
    return value
  }
  if (type === QmfType.UUID) {
    if (!UUID.test(value)) throw refuse(`a UUID, not ${value}`)
    return value.toLowerCase()
  }
  if (type === QmfType.MAP || type === QmfType.LIST) return json(type, value, refuse)
  const most = Math.min(maxLength, type === QmfType.SHORT_STRING ? SHORT_BYTES : LONG_BYTES)
  const bytes = Buffer.byteLength(value)
  if (bytes > most) throw refuse(`${bytes} bytes; it may have ${most}`)
  return value
}

function json(type: QmfType, value: string, refuse: (why: string) => StatusError): QmfValue {
  let parsed: unknown
  try {
    parsed = JSON.parse(value)
  } catch {
    throw refuse('no JSON')
  }
  const given = fieldValue(parsed, 0)
  if (given === undefined) throw refuse(`it nests deeper than ${MOST_NESTING}`)
  if (type === QmfType.MAP ? !(given instanceof Map) : !Array.isArray(given)) {
    throw refuse(type === QmfType.MAP ? 'a JSON object, like {"key": 1}' : 'a JSON list, like ["one", 2]')
  }
  return given as QmfValue
}

/** Whole numbers go as integers. undefined: too deep. */
function fieldValue(value: unknown, depth: number): FieldValue | undefined {
  if (depth > MOST_NESTING) return undefined
  if (typeof value === 'number') return Number.isSafeInteger(value) && !isInt32(value) ? BigInt(value) : value
  if (value === null || typeof value !== 'object') return value as FieldValue
  const entries = Object.entries(value).map(([key, one]) => [key, fieldValue(one, depth + 1)] as const)
  if (entries.some(([, one]) => one === undefined)) return undefined
  if (Array.isArray(value)) return entries.map(([, one]) => one as FieldValue)
  return new Map(entries) as FieldTable
}

function isInt32(value: number): boolean {
  return value === Math.trunc(value) && Math.abs(value) < 2 ** 31
}

/** As the parameter's type; undefined where there is none, or none of that type. Brokers give numbers and booleans as texts too. */
function defaultOf({ type, default: given }: SchemaArgument): Value['value'] | undefined {
  if (given === undefined) return undefined
  switch (basicTypeOf(type)) {
    case BasicType.BOOLEAN:
      if (typeof given === 'boolean') return given
      if (['0', 'false', 'n', 'no'].includes(String(given).toLowerCase())) return false
      return ['1', 'true', 'y', 'yes'].includes(String(given).toLowerCase()) ? true : undefined
    case BasicType.STRING:
      return typeof given === 'string' && type !== QmfType.MAP && type !== QmfType.LIST ? given : undefined
    case BasicType.DOUBLE: {
      const number = Number(given)
      return Number.isNaN(number) ? undefined : number
    }
    default: {
      // Also written as 0xFFFFFFFF.
      const digits = String(given)
      if (!/^(-?\d{1,20}|0x[\da-f]{1,16})$/i.test(digits)) return undefined
      const isWide = basicTypeOf(type) === BasicType.INT64 || basicTypeOf(type) === BasicType.UINT64
      return isWide ? BigInt(digits) : Number(digits)
    }
  }
}
