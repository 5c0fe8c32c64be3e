/**
 * Declares the parameters of an `[[exec]]` control and converts their values to text. Every value is checked as a whole and stays
 * one argument of the program: no shell could split it.
 */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { StatusError } from '../../core/errors.ts'
import { checkBounds, WholePattern } from '../bounds.ts'
import type { ControlArguments, ControlParameter } from '../control.ts'
import { type ExecParameter, MAX_VALUE_BYTES } from './config.ts'
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
  const {
    name,
    type,
    optional,
    secret,
    description,
    default: byDefault,
    min,
    max,
    maxLength,
    pattern,
    values,
  } = parameter
  const ofText = {
    maxLength: Math.min(maxLength, MAX_VALUE_BYTES),
    ...(pattern !== '' && { pattern: new WholePattern(pattern) }),
    ...(values.length > 0 && { values }),
  }
  return {
    name,
    type: types[type],
    optional: optional || byDefault !== undefined,
    default: type === 'number' && typeof byDefault === 'bigint' ? Number(byDefault) : byDefault,
    min,
    max,
    ...(type === 'string' && ofText),
    secret,
    description,
  }
}

/** Checks all arguments and converts them to text. Throws StatusError INVALID_ARGUMENT. */
export function textsOf(given: ControlArguments, parameters: readonly ControlParameter[]): Map<string, string> {
  const texts = new Map<string, string>()
  for (const parameter of parameters) {
    const value = given.get(parameter.name)
    if (value !== undefined) texts.set(parameter.name, textOf(parameter, value))
  }
  return texts
}

function textOf(parameter: ControlParameter, value: Value['value']): string {
  const refuse = (why: string): StatusError => {
    return new StatusError('INVALID_ARGUMENT', `argument ${parameter.name}: ${why}`)
  }
  if (typeof value === 'number' && !Number.isFinite(value)) throw refuse('not a number')
  if (value === '') throw refuse('empty; omit it instead')
  // The executor has done so, but nothing may ever reach a program unchecked.
  checkBounds(parameter, value)
  const text = String(value)
  if (CONTROL_CHARACTERS.test(text)) throw refuse('contains control characters')
  return text
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
