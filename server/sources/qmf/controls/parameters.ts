/**
 * Arguments of a method as parameters of a control, in all versions of it that brokers have. A newcomer asks why `object` of
 * a method is `argument_object` here: `object` says on what the method is called.
 */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { nameProblem, type Value } from '../../../../protocol/monitor/value.ts'
import { parseObjectId } from '../../../../protocol/qmf/object-id.ts'
import { QmfType, type SchemaArgument, type SchemaMethod } from '../../../../protocol/qmf/types.ts'
import { type ControlParameter, DRY_RUN_PARAMETER, HIDDEN, KEY_PARAMETER } from '../../../controls/control.ts'
import { integers } from '../../../metrics/arguments.ts'
import { basicTypeOf, unitOf } from '../values.ts'

export const BROKER_PARAMETER = 'broker'
export const OBJECT_PARAMETER = 'object'
const TAKEN: readonly string[] = [BROKER_PARAMETER, OBJECT_PARAMETER, KEY_PARAMETER, DRY_RUN_PARAMETER]

/** Schemas do not say what is secret: `password` of the broker's `connect` is. */
const SECRET = /password|passwd|secret|credential|token/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
/** Of a method; and UTF-16 units of a description: so that a control fits a frame, whatever a broker says. */
const MOST_ARGUMENTS = 100
const MOST_DESCRIPTION = 1_000

/** Of the types that are narrower than the basic types they become. */
export const ranges: Readonly<Partial<Record<QmfType, readonly [number, number]>>> = {
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
  if (all.length > MOST_ARGUMENTS) return false
  return all.every(({ name, type, direction }) => {
    const isReadable = type !== QmfType.OBJECT && type !== QmfType.ARRAY
    return isReadable && (direction === 'O' || nameProblem(parameterName(name)) === undefined)
  })
}

export function isJson({ type }: Pick<SchemaArgument, 'type'>): boolean {
  return type === QmfType.MAP || type === QmfType.LIST
}

export function isUuid(text: string): boolean {
  return UUID.test(text)
}

export function parameterName(argument: string): string {
  return TAKEN.includes(argument) ? `argument_${argument}` : argument
}

export function parameterOf(argument: SchemaArgument): ControlParameter {
  const { name, type, description = '', min, max, maxLength } = argument
  const byDefault = defaultOf(argument)
  const unit = unitOf(argument)
  const [least, most] = [min ?? ranges[type]?.[0], max ?? ranges[type]?.[1]]
  const notes = [
    description,
    unit !== '' && `in ${unit}`,
    least !== undefined && `at least ${least}`,
    most !== undefined && `at most ${most}`,
    maxLength !== undefined && `at most ${maxLength} bytes`,
    isJson(argument) && `JSON, ${type === QmfType.MAP ? 'like {"key": 1}' : 'like ["one", 2]'}`,
  ]
  return {
    name: parameterName(name),
    type: basicTypeOf(type),
    ...(SECRET.test(name) && { secret: true }),
    ...(isJson(argument) && { masked }),
    ...(byDefault !== undefined && { optional: true, default: byDefault }),
    description: shortened(notes.filter(Boolean).join('; ')),
  }
}

export function shortened(description: string): string {
  return description.length > MOST_DESCRIPTION ? description.slice(0, MOST_DESCRIPTION).toWellFormed() : description
}

/**
 * Of all versions. What one of them does without need not be given, and a default is nobody's unless it is everybody's: each
 * call is filled up by the version of its broker.
 */
export function parametersOf(versions: readonly SchemaMethod[]): ControlParameter[] {
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
  const types = new Set(same.map(({ type }) => type))
  const isShared = !isMissing && types.size === 1 && same.every((one) => one.default === first.default)
  if (isShared) return first
  const isOptional = isMissing || same.some(({ optional }) => optional)
  const secret = same.some((one) => one.secret)
  return { ...first, type: commonType(types), default: undefined, optional: isOptional, secret }
}

/** The one that takes in whatever one of these does; where there is none, the first of them. */
function commonType(types: ReadonlySet<BasicType>): BasicType {
  const [first] = types as ReadonlySet<BasicType> & readonly [BasicType]
  if (types.size === 1 || [...types].some((type) => integers[type] === undefined)) return first
  const isSigned = types.has(BasicType.INT32) || types.has(BasicType.INT64)
  return isSigned ? BasicType.INT64 : BasicType.UINT64
}

/** As the parameter's type; undefined where there is none, or none that could be given. Brokers give numbers and booleans as texts too. */
export function defaultOf(argument: SchemaArgument): Value['value'] | undefined {
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
      // Also written as 0xFFFFFFFF.
      const digits = String(given)
      if (!/^(-?\d{1,20}|0x[\da-f]{1,16})$/i.test(digits)) return undefined
      const integer = BigInt(digits)
      const [least, most] = ranges[type] ?? integers[basic] ?? [0n, 0n]
      if (integer < least || integer > most) return undefined
      return basic === BasicType.INT64 || basic === BasicType.UINT64 ? integer : Number(integer)
    }
  }
}

/** JSON without its secrets: `password` of a link stands in `properties` of the broker's `create`. */
function masked(value: Value['value']): Value['value'] {
  const text = String(value)
  if (!SECRET.test(text)) return text
  try {
    return JSON.stringify(JSON.parse(text, (key, inside: unknown) => (SECRET.test(key) ? HIDDEN : inside)))
  } catch {
    return HIDDEN
  }
}
