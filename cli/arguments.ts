/**
 * Words of the command line as typed arguments. In `name=value`, a value that looks like a number or a boolean is sent as one only
 * if the parameter is declared as something other than a string: a host may well be called 7, and labels, such as cpu=0 or
 * code=200, are texts whether or not a declaration knows them.
 */
import { InvalidArgumentError } from 'commander'
import { type Arguments, type ArgumentValue, parseIdentity } from '../client/index.ts'
import { parseDuration } from '../server/kernel/config/duration.ts'
import { ExitCode, Failure } from './failure.ts'
import type { CataloguedArgument } from './records.ts'

export type Assignments = ReadonlyMap<string, string>

/** Help text of the arguments that `userArguments` reads. */
export const USER_HELP = 'user or tenant/user'

/**
 * Splits words into metrics and assignments. Throws Failure. The name of a parameter has no dot and that of every metric
 * has one, so that a metric may be called `gmetric.a=b`.
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
    if (at < 1) throw new Failure(ExitCode.USAGE, `"${word}" is not an argument: write name=value`)
    if (assignments.has(name)) throw new Failure(ExitCode.USAGE, `the argument ${name} is given twice`)
    assignments.set(name, word.slice(at + 1))
  }
  return assignments
}

/** What every polled metric takes, also if its declaration cannot be read. */
const ALWAYS_NUMBERS = ['interval_ms', 'deadline_ms']

/** `parameters` is called only if a value could be mistaken for something other than a string. */
export async function toTypedArguments(
  assignments: Assignments,
  parameters: () => Promise<readonly CataloguedArgument[]>,
): Promise<Arguments> {
  const guessed = [...assignments].map(([name, text]) => [name, text, guess(text)] as const)
  const known = guessed.some(([, , value]) => typeof value !== 'string') ? await parameters() : []
  const others = known.filter(({ type }) => type !== 'string').map(({ name }) => name)
  const typed = new Set([...ALWAYS_NUMBERS, ...others])
  return Object.fromEntries(guessed.map(([name, text, value]) => [name, typed.has(name) ? value : text]))
}

/** A user in the form that the controls take. Throws Failure. */
export function userArguments(identity: string): Arguments {
  try {
    const { tenant, name } = parseIdentity(identity)
    return identity.includes('/') ? { user: name, tenant } : { user: name }
  } catch (error) {
    throw new Failure(ExitCode.USAGE, (error as Error).message, { cause: error })
  }
}

/** A parser for commander. `what` describes the number in its error: "the number of a rule". */
export function wholeNumber(min: number, max: number, what: string): (text: string) => number {
  const digits = min > 0 ? /^[1-9]\d{0,14}$/ : /^\d{1,15}$/
  return (text) => {
    const number = Number(text)
    if (digits.test(text) && number >= min && number <= max) return number
    throw new InvalidArgumentError(`Expected ${what}.`)
  }
}

export const positiveNumber = wholeNumber(1, 999_999_999_999_999, 'a whole number greater than 0')
export const channelId = wholeNumber(1, 0x7fffffff, 'the id of a channel as listed by `cinnabar channels`')

const MIN_INTERVAL_S = 0.1
const MAX_INTERVAL_S = 3_600

/** Seconds. */
export function intervalSeconds(text: string): number {
  const number = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && number >= MIN_INTERVAL_S && number <= MAX_INTERVAL_S) return number
  throw new InvalidArgumentError(`Expected a number of seconds from ${MIN_INTERVAL_S} to ${MAX_INTERVAL_S}.`)
}

/** Whole seconds of a duration. */
export function wholeSeconds(text: string): number {
  const ms = parseDuration(text) ?? 0
  if (ms >= 1_000) return Math.floor(ms / 1_000)
  throw new InvalidArgumentError('Expected a whole number with a unit, such as 90d, 12h or 30m.')
}

/** Microseconds since 1970, of how long ago or of a time. */
export function sinceOf(text: string, nowMs: number): number {
  const duration = parseDuration(text)
  const ms = duration === undefined ? Date.parse(text) : nowMs - duration
  if (Number.isFinite(ms)) return ms * 1_000
  throw new InvalidArgumentError('Expected how long ago, such as 30m, 2h or 7d, or a time such as 2026-11-22T08:00.')
}

/** The id of a channel, or its name, which never consists of digits. */
export function channelOrName(text: string): number | string {
  return /^\d+$/.test(text) ? channelId(text) : text
}

function guess(text: string): ArgumentValue {
  if (text === 'true' || text === 'false') return text === 'true'
  if (/^-?\d+$/.test(text)) return fits64(BigInt(text)) ? BigInt(text) : text
  return /^-?(\d+\.\d*|\.\d+|\d+(\.\d*)?e[+-]?\d+)$/i.test(text) ? Number(text) : text
}

function fits64(value: bigint): boolean {
  return value >= -(2n ** 63n) && value < 2n ** 64n
}
