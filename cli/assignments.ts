/**
 * `name=value` from the command line, as typed arguments. A value that looks like a number or truth value is sent as one,
 * unless the parameter is declared a string: a host may well be called 7.
 */
import type { Arguments, ArgumentValue } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'

export type Assignments = ReadonlyMap<string, string>

/** The declared types of parameters by name: "string", "uint32", ... */
export type ParameterTypes = ReadonlyMap<string, string>

/**
 * Splits words into metrics and assignments. Throws Failure. No parameter has a dot in its name and every metric has one, so
 * that a metric may well be called `gmetric.a=b`.
 */
export function splitWords(words: readonly string[]): { names: string[]; assignments: Assignments } {
  const isAssignment = (word: string) => /^[^.]*=/.test(word)
  return {
    names: words.filter((word) => !isAssignment(word)),
    assignments: parseAssignments(words.filter(isAssignment)),
  }
}

/** Throws Failure. */
export function parseAssignments(words: readonly string[]): Assignments {
  const assignments = new Map<string, string>()
  for (const word of words) {
    const at = word.indexOf('=')
    const name = word.slice(0, at)
    if (at < 1) throw new Failure(ExitCode.USAGE, `"${word}" is no argument: write name=value`)
    if (assignments.has(name)) throw new Failure(ExitCode.USAGE, `the argument ${name} stands twice`)
    assignments.set(name, word.slice(at + 1))
  }
  return assignments
}

/** `types` is asked only where a value could be taken for something else than a string. */
export async function toTypedArguments(
  assignments: Assignments,
  types: () => Promise<ParameterTypes>,
): Promise<Arguments> {
  const guessed = [...assignments].map(([name, text]) => [name, text, guess(text)] as const)
  const known: ParameterTypes = guessed.some(([, , value]) => typeof value !== 'string') ? await types() : new Map()
  return Object.fromEntries(guessed.map(([name, text, value]) => [name, known.get(name) === 'string' ? text : value]))
}

function guess(text: string): ArgumentValue {
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^-?\d+$/.test(text)) return fits64(BigInt(text)) ? BigInt(text) : text
  return /^-?(\d+\.\d*|\.\d+|\d+(\.\d*)?e[+-]?\d+)$/i.test(text) ? Number(text) : text
}

function fits64(value: bigint): boolean {
  return value >= -(2n ** 63n) && value < 2n ** 64n
}
