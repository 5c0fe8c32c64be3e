/**
 * What a parameter of a control says of its values. `producer.controls` shows it [MON 9.4] and `checkBounds` enforces it, so that
 * the two cannot differ.
 */
import { RE2JS } from 're2js'
import type { Value } from '../../../protocol/monitor/value.ts'
import { StatusError } from '../core/errors.ts'

export interface Bounds {
  /** The least and the greatest number. */
  readonly min?: number | bigint | undefined
  readonly max?: number | bigint | undefined
  /** The status that refuses a number above `max`; INVALID_ARGUMENT if undefined. */
  readonly aboveMax?: 'QUOTA_EXCEEDED' | undefined
  /** Bytes of a text at most. */
  readonly maxLength?: number | undefined
  /** What a whole text has to match. */
  readonly pattern?: WholePattern | undefined
  /** The only texts that are taken; none has control characters. */
  readonly values?: readonly string[] | undefined
  /** True if no refusal may repeat what is taken, because it would reveal much of a secret. */
  readonly secret?: boolean | undefined
}

/** A regular expression for whole texts. RE2 does not backtrack: the time is proportional to the length of the text. */
export class WholePattern {
  readonly source: string
  readonly #compiled: RE2JS

  /** Throws RE2JSException. */
  constructor(source: string) {
    this.source = source
    this.#compiled = RE2JS.compile(source)
  }

  matches(text: string): boolean {
    return this.#compiled.matches(text)
  }
}

/** Checks a value of the declared type. Throws StatusError. */
export function checkBounds(bounds: Bounds & { readonly name: string }, value: Value['value']): void {
  const problem = typeof value === 'string' ? textProblem(bounds, value) : numberProblem(bounds, value)
  if (problem === undefined) return
  const { name, max, aboveMax } = bounds
  const isAbove = aboveMax !== undefined && max !== undefined && (value as number | bigint) > max
  throw new StatusError(isAbove ? aboveMax : 'INVALID_ARGUMENT', `argument ${name}: ${problem}`)
}

function numberProblem({ min, max }: Bounds, value: Value['value']): string | undefined {
  if (typeof value !== 'number' && typeof value !== 'bigint') return undefined
  if ((min ?? max) !== undefined && !Number.isFinite(Number(value))) return 'not a number'
  if (min !== undefined && value < min) return `at least ${min}`
  return max !== undefined && value > max ? `at most ${max}` : undefined
}

/** The length comes first: the time of a pattern grows with it. */
function textProblem({ maxLength, values, pattern, secret }: Bounds, text: string): string | undefined {
  const bytes = Buffer.byteLength(text)
  if (maxLength !== undefined && bytes > maxLength) return `${bytes} bytes; at most ${maxLength} are allowed`
  if (values?.includes(text) === false) return secret ? 'invalid' : `one of ${values.join(', ')}`
  if (pattern?.matches(text) === false) return secret ? 'invalid' : `does not match ${pattern.source}`
  return undefined
}
