/** Values of parameters as QMF's, and the other way round. Maps and lists are given as JSON text. */

import type { FieldTable, FieldValue } from '../../../../protocol/amqp/field-table.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Field, nameProblem, type Value, VOID } from '../../../../protocol/monitor/value.ts'
import { MAX_BODY_BYTES } from '../../../../protocol/qmf/bodies.ts'
import { encodeMessage } from '../../../../protocol/qmf/encode.ts'
import { parseObjectId } from '../../../../protocol/qmf/object-id.ts'
import { QmfType, type QmfValue, type SchemaArgument, type SchemaMethod } from '../../../../protocol/qmf/types.ts'
import type { ControlArguments } from '../../../controls/control.ts'
import { StatusError } from '../../../core/errors.ts'
import type { QmfObject } from '../broker-object.ts'
import { MAX_TEXT, toValue } from '../values.ts'
import { defaultOf, inputsOf, isJson, isUuid, parameterName, ranges } from './parameters.ts'

const SHORT_BYTES = 255
const LONG_BYTES = 65_535
/** JSON that nests deeper is refused. */
const MOST_NESTING = 16

type Refuse = (why: string) => StatusError

/** Of the arguments that go in, in their order; `given` has the types of this version. Throws StatusError INVALID_ARGUMENT. */
export function toArguments(method: SchemaMethod, given: ControlArguments): QmfValue[] {
  return inputsOf(method).map((argument) => {
    const name = parameterName(argument.name)
    const value = given.get(name) ?? defaultOf(argument)
    const refuse: Refuse = (why) => new StatusError('INVALID_ARGUMENT', `argument ${name}: ${why}`)
    if (value === undefined) throw new StatusError('INVALID_ARGUMENT', `${method.name} needs the argument ${name}`)
    if (typeof value === 'string') return text(argument, value, refuse)
    return typeof value === 'number' || typeof value === 'bigint' ? number(argument, value, refuse) : (value as boolean)
  })
}

/** Whether a call can be sent. Throws StatusError INVALID_ARGUMENT. */
export function checkFits({ id, known: { schema } }: QmfObject, method: SchemaMethod, values: QmfValue[]): void {
  const message = { op: 'M', sequence: 0, id, key: schema.key, method: method.name, arguments: values } as const
  let bytes: number
  try {
    bytes = encodeMessage(message, { schema: () => schema, method: () => undefined }).length
  } catch (error) {
    if (error instanceof ProtocolError) throw new StatusError('INVALID_ARGUMENT', error.message)
    throw error
  }
  if (bytes <= MAX_BODY_BYTES) return
  throw new StatusError(
    'INVALID_ARGUMENT',
    `all arguments together: ${bytes} bytes, where a broker takes ${MAX_BODY_BYTES}`,
  )
}

/** REC of what a method gave back: the arguments with direction O and IO. What would not fit a frame is VOID. */
export function toRecord({ arguments: all }: SchemaMethod, values: readonly QmfValue[]): Value {
  const fields: Field[] = []
  let length = 0
  for (const [at, { name, type }] of all.filter(({ direction }) => direction !== 'I').entries()) {
    if (nameProblem(name) !== undefined) continue
    const value = toValue(type, values[at])
    if (typeof value.value === 'string') length += value.value.length
    fields.push({ name, ...(length > MAX_TEXT ? VOID : value) })
  }
  return { type: BasicType.REC, value: fields }
}

function number({ type, min, max }: SchemaArgument, value: number | bigint, refuse: Refuse): number | bigint {
  if (typeof value === 'number' && !Number.isFinite(value) && (min ?? max) !== undefined) throw refuse('no number')
  const [least, most] = ranges[type] ?? []
  for (const bound of [least, min]) if (bound !== undefined && value < bound) throw refuse(`at least ${bound}`)
  for (const bound of [most, max]) if (bound !== undefined && value > bound) throw refuse(`at most ${bound}`)
  const isTooLarge = type === QmfType.FLOAT && Number.isFinite(value) && !Number.isFinite(Math.fround(value as number))
  if (isTooLarge) throw refuse('it does not fit a float of 32 bits')
  return value
}

function text(argument: SchemaArgument, value: string, refuse: Refuse): QmfValue {
  const { type, maxLength = LONG_BYTES } = argument
  // What was given is not repeated: it may be a secret.
  if (type === QmfType.REFERENCE) {
    if (parseObjectId(value) === undefined) throw refuse('an object id, like 0-0-1-0-2')
    return value
  }
  if (type === QmfType.UUID) {
    if (!isUuid(value)) throw refuse('a UUID, like 01234567-89ab-cdef-0123-456789abcdef')
    return value.toLowerCase()
  }
  if (isJson(argument)) return json(type, value, refuse)
  const most = Math.min(maxLength, type === QmfType.SHORT_STRING ? SHORT_BYTES : LONG_BYTES)
  const bytes = Buffer.byteLength(value)
  if (bytes > most) throw refuse(`${bytes} bytes; it may have ${most}`)
  return value
}

function json(type: QmfType, value: string, refuse: Refuse): QmfValue {
  let parsed: unknown
  try {
    parsed = JSON.parse(value)
  } catch {
    throw refuse('no JSON')
  }
  const given = fieldValue(parsed, 0, refuse)
  if (type === QmfType.MAP ? !(given instanceof Map) : !Array.isArray(given)) {
    throw refuse(type === QmfType.MAP ? 'a JSON object, like {"key": 1}' : 'a JSON list, like ["one", 2]')
  }
  return given as QmfValue
}

/** Whole numbers go as integers. */
function fieldValue(value: unknown, depth: number, refuse: Refuse): FieldValue {
  if (typeof value === 'number') {
    if (!Number.isInteger(value) || isInt32(value)) return value
    if (!Number.isSafeInteger(value)) throw refuse('a whole number beyond 2^53, which JSON does not keep exact')
    return BigInt(value)
  }
  if (value === null || typeof value !== 'object') return value as FieldValue
  if (depth >= MOST_NESTING) throw refuse(`it nests deeper than ${MOST_NESTING}`)
  const entries = Object.entries(value).map(([key, one]) => [key, fieldValue(one, depth + 1, refuse)] as const)
  return Array.isArray(value) ? entries.map(([, one]) => one) : (new Map(entries) as FieldTable)
}

function isInt32(value: number): boolean {
  return value === Math.trunc(value) && Math.abs(value) < 2 ** 31
}
