/**
 * What a parameter of an `[[exec]]` control takes, and its value as the text that stands in an argument. Every value is judged
 * as a whole, and stays one argument: there is no shell that could take it apart.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { ExecParameter } from '../../controls/exec/config.ts'
import { StatusError } from '../../core/errors.ts'
import type { ControlParameter, Given } from '../control.ts'
import { MAX_VALUE_BYTES, wholePattern } from './config.ts'
import type { Template } from './template.ts'

const types = {
  string: BasicType.STRING,
  integer: BasicType.INT64,
  number: BasicType.DOUBLE,
  boolean: BasicType.BOOLEAN,
} as const satisfies Record<ExecParameter['type'], BasicType>

/** Line ends of Unicode too: whoever reads the output of the program line by line must not be led astray. */
const CONTROL_CHARACTERS = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** As it stands in the catalogue. */
export function declared(parameter: ExecParameter): ControlParameter {
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

/** Turns one value into its text. Throws StatusError INVALID_ARGUMENT. */
export type Judge = (value: Value['value']) => string

/** The pattern is compiled once. */
export function judgeOf(parameter: ExecParameter): Judge {
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
  const pattern = parameter.pattern === '' ? undefined : wholePattern(parameter.pattern)
  return (value) => {
    const text = value as string
    const bytes = Buffer.byteLength(text)
    if (bytes === 0) refuse('empty; leave it out instead')
    // Before the pattern: one that is slow stays bounded.
    if (bytes > Math.min(maxLength, MAX_VALUE_BYTES)) refuse(`longer than ${maxLength} bytes`)
    if (CONTROL_CHARACTERS.test(text)) refuse('holds control characters')
    // What a secret may be is half of it.
    if (values.length > 0 && !values.includes(text)) refuse(secret ? 'not right' : `one of ${values.join(', ')}`)
    if (pattern !== undefined && !pattern.test(text))
      refuse(secret ? 'not right' : `does not match ${parameter.pattern}`)
    return text
  }
}

/** Judges all that was given. */
export function textsOf(given: Given, judges: ReadonlyMap<string, Judge>): Map<string, string> {
  return new Map([...given].map(([name, value]) => [name, (judges.get(name) as Judge)(value)]))
}

/**
 * A value at the start of an argument could be taken for an option: unless it may, it must not begin with a dash. An empty
 * piece in front of it does not hide it.
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
