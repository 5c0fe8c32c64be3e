/**
 * Validates the arguments of an `[[exec]]` control and converts them to text. Every value is checked as a whole and stays one
 * argument of the program: no shell could split it.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { StatusError } from '../../core/errors.ts'
import type { ControlArguments, ControlParameter } from '../control.ts'
import type { ExecParameter } from './config.ts'
import { compileWholePattern, MAX_VALUE_BYTES } from './config.ts'
import type { Template } from './template.ts'

const types = {
  string: BasicType.STRING,
  integer: BasicType.INT64,
  number: BasicType.DOUBLE,
  boolean: BasicType.BOOLEAN,
} as const satisfies Record<ExecParameter['type'], BasicType>

/** Includes the line ends of Unicode, which could mislead a reader of the program's output. */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** The parameter as the catalogue shows it. */
export function declaredParameter(parameter: ExecParameter): ControlParameter {
  const { name, type, optional, secret, description, default: byDefault } = parameter
  return {
    name,
    type: types[type],
    optional: optional || byDefault !== undefined,
    default: type === 'number' && typeof byDefault === 'bigint' ? Number(byDefault) : byDefault,
    secret,
    description,
  }
}

/** Converts a value to text. Throws StatusError INVALID_ARGUMENT. */
export type ArgumentValidator = (value: Value['value']) => string

/** Returns the validator of a parameter, with its pattern compiled. */
export function validatorOf(parameter: ExecParameter): ArgumentValidator {
  const { name, type, values, maxLength, min, max, secret } = parameter
  const refuse = (why: string): never => {
    throw new StatusError('INVALID_ARGUMENT', `argument ${name}: ${why}`)
  }
  if (type === 'boolean') return String
  if (type !== 'string') {
    return (value) => {
      const number = value as bigint | number
      if (typeof number === 'number' && !Number.isFinite(number)) refuse('not a number')
      if (min !== undefined && number < min) refuse(`at least ${min}`)
      if (max !== undefined && number > max) refuse(`at most ${max}`)
      return String(number)
    }
  }
  const matches = parameter.pattern === '' ? undefined : compileWholePattern(parameter.pattern)
  return (value) => {
    const text = value as string
    const bytes = Buffer.byteLength(text)
    if (bytes === 0) refuse('empty; omit it instead')
    // Checked before the pattern, whose time is proportional to the length.
    if (bytes > Math.min(maxLength, MAX_VALUE_BYTES)) refuse(`longer than ${maxLength} bytes`)
    if (CONTROL_CHARACTERS.test(text)) refuse('contains control characters')
    // A list of the permitted values would reveal much of a secret.
    if (values.length > 0 && !values.includes(text)) refuse(secret ? 'invalid' : `one of ${values.join(', ')}`)
    if (matches?.(text) === false) refuse(secret ? 'invalid' : `does not match ${parameter.pattern}`)
    return text
  }
}

/** Validates all arguments and converts them to text. */
export function textsOf(
  given: ControlArguments,
  validators: ReadonlyMap<string, ArgumentValidator>,
): Map<string, string> {
  return new Map([...given].map(([name, value]) => [name, (validators.get(name) as ArgumentValidator)(value)]))
}

/**
 * A value at the start of an argument must not begin with a dash unless its parameter allows it, because the program could
 * take it for an option. Empty values before it do not count.
 */
export function checkDash(
  { pieces }: Template,
  texts: ReadonlyMap<string, string>,
  parameters: readonly ExecParameter[],
): void {
  for (const piece of pieces) {
    if (typeof piece === 'string') return
    const text = texts.get(piece.parameter) ?? ''
    if (text === '') continue
    const mayBegin = parameters.find(({ name }) => name === piece.parameter)?.allowDash
    if (!text.startsWith('-') || mayBegin) return
    throw new StatusError('INVALID_ARGUMENT', `argument ${piece.parameter}: begins with "-"`)
  }
}
