/** The functions of templates: those of Prometheus (its documentation, "Template reference"), and those of Go that it has besides. */
import { type CompiledRegex, compiledRegex, RegexError } from '../label-matcher.ts'
import { durationMs, floatOf } from '../parse/numbers.ts'
import { expansion } from '../regex-expansion.ts'
import {
  goNumber,
  goType,
  isList,
  isMap,
  isSample,
  printedAlone,
  sprint,
  sprintf,
  type TemplateSample,
  type TemplateValue,
} from './go-format.ts'
import { TemplateError } from './parse.ts'

/** What a template may ask for. */
export interface TemplateSurroundings {
  /** The value of an expression at the time of the evaluation. Throws, and Unanswered where it has to be fetched first. */
  readonly query: (expression: string) => readonly TemplateSample[]
  readonly externalUrl: string
  /** Milliseconds since 1970. */
  readonly timeMs: number
}

/** A template asks for an expression whose answer is not there yet: it has to be executed again with it. */
export class Unanswered extends Error {
  readonly expression: string

  constructor(expression: string) {
    super(expression)
    this.expression = expression
  }
}

/** What an execution may still do, and how much of it is done. */
export interface TemplateWork {
  /** No text may be longer. */
  readonly maxText: number
  /** Throws TemplateError where that is too many steps. */
  spend(steps: number): void
  /** Regular expressions that were compiled already. */
  readonly regexes: Map<string, CompiledRegex>
}

type TemplateFunction = (
  args: readonly TemplateValue[],
  surroundings: TemplateSurroundings,
  work: TemplateWork,
) => TemplateValue

interface Taken {
  readonly least: number
  /** Default: as many. */
  readonly most?: number
  readonly run: TemplateFunction
  /** It looks at everything that is in its arguments. */
  readonly isDeep?: boolean
}

/** A step takes less than a microsecond, in which so much is done. */
const [CHARACTERS_PER_STEP, ELEMENTS_PER_STEP, REGEX_PARTS_PER_STEP] = [64, 32, 20]
/** Steps for each part of a regular expression that is compiled. */
const STEPS_PER_REGEX_PART = 4
/** Each that it replaces. */
const STEPS_PER_REPLACEMENT = 4
/** As text. */
const STEPS_PER_NUMBER = 5
const MAX_REGEX = 1_000

const utf8 = new TextEncoder()
const LARGE = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y']
const SMALL = ['m', 'u', 'n', 'p', 'f', 'a', 'z', 'y']
/** Seconds: 2^63 nanoseconds. */
const MAX_TIMESTAMP = 2 ** 63 / 1e9
const BINARY = LARGE.map((prefix) => `${prefix === 'k' ? 'k' : prefix}i`)

const any = (run: TemplateFunction, least = 0): Taken => ({ least, most: Number.POSITIVE_INFINITY, run })
const deep = (taken: Taken): Taken => ({ ...taken, isDeep: true })
const one = (run: (value: TemplateValue, surroundings: TemplateSurroundings) => TemplateValue): Taken => ({
  least: 1,
  run: ([value], surroundings) => run(value, surroundings),
})
const ofText = (run: (text: string) => string): Taken => one((value) => run(text(value)))
const ofNumber = (run: (value: number) => string): Taken => one((value) => run(number(value)))
const comparison = (holds: (order: number) => boolean): Taken => ({
  least: 2,
  run: ([left, right]) => holds(ordered(left, right)),
})

const FUNCTIONS: ReadonlyMap<string, Taken> = new Map<string, Taken>([
  ['query', one((expression, { query }) => query(text(expression)))],
  ['first', one((value) => firstOf(samples(value)))],
  ['label', { least: 2, run: ([name, of]) => sample(of).Labels.get(text(name)) ?? '' }],
  ['value', one((of) => sample(of).Value)],
  ['strvalue', one((of) => sample(of).Labels.get('__value__') ?? '')],
  ['sortByLabel', { least: 2, run: ([name, of], _, work) => sortedBy(text(name), samples(of), work) }],
  ['args', any((values) => new Map(values.map((value, index) => [`arg${index}`, value])))],
  [
    'reReplaceAll',
    { least: 3, run: ([pattern, by, of], _, work) => replaced(text(pattern), text(by), text(of), work) },
  ],
  ['match', { least: 2, run: ([pattern, of], _, work) => matches(text(pattern), text(of), work) }],
  ['title', ofText((value) => value.replace(/(?<![\p{L}\p{N}_])\p{L}/gu, (letter) => letter.toUpperCase()))],
  ['toUpper', ofText((value) => value.toUpperCase())],
  ['toLower', ofText((value) => value.toLowerCase())],
  // There are no files with templates of consoles.
  ['tmpl', { least: 2, run: () => '' }],
  ['safeHtml', ofText((value) => value)],
  ['stripPort', ofText(withoutPort)],
  ['stripDomain', ofText(withoutDomain)],
  ['urlQueryEscape', ofText(queryEscaped)],
  ['humanize', ofNumber((value) => humanized(value))],
  ['humanize1024', ofNumber(humanized1024)],
  ['humanizeDuration', ofNumber(humanizedDuration)],
  ['humanizePercentage', ofNumber((value) => `${goNumber(value * 100, 'g', 4)}%`)],
  ['humanizeTimestamp', ofNumber(humanizedTimestamp)],
  ['parseDuration', ofTextToNumber()],
  ['now', { least: 0, run: (_none, { timeMs }) => timeMs / 1_000 }],
  ['graphLink', ofText((expression) => linkTo(expression, 0))],
  ['tableLink', ofText((expression) => linkTo(expression, 1))],
  ['externalURL', { least: 0, run: (_none, { externalUrl }) => externalUrl }],
  ['pathPrefix', { least: 0, run: (_none, { externalUrl }) => pathOf(externalUrl) }],
  ['print', deep(any((values) => sprint(values)))],
  ['println', deep(any((values) => `${values.map(printedAlone).join(' ')}\n`))],
  ['printf', deep(any(([format, ...values]) => sprintf(text(format), values), 1))],
  ['len', one((value) => BigInt(lengthOf(value)))],
  ['index', any(([of, ...keys]) => keys.reduce(elementOf, of), 1)],
  ['not', one((value) => !isTrue(value))],
  ['eq', any(([left, ...others]) => others.some((right) => isEqual(left, right)), 2)],
  ['ne', { least: 2, run: ([left, right]) => !isEqual(left, right) }],
  ['lt', comparison((order) => order < 0)],
  ['le', comparison((order) => order <= 0)],
  // As Go has them: NaN is greater than everything.
  ['gt', comparison((order) => !(order <= 0))],
  ['ge', comparison((order) => !(order < 0))],
  ['urlquery', deep(any((values) => queryEscaped(sprint(values))))],
  // As Alertmanager has it.
  ['toJson', deep(one((value) => JSON.stringify(plainOf(value))))],
  ['html', deep(any((values) => htmlEscaped(sprint(values))))],
  // These two stop at the argument that decides: execute.ts evaluates their arguments.
  ['and', any((values) => values.at(-1), 1)],
  ['or', any((values) => values.at(-1), 1)],
])

/** Those of annotations and labels of rules; Prometheus has no `toJson`. */
export function isRuleFunction(name: string): boolean {
  return FUNCTIONS.has(name) && name !== 'toJson'
}

/** Those of bodies of notifications, which ask for nothing. */
export function isBodyFunction(name: string): boolean {
  return FUNCTIONS.has(name) && name !== 'query'
}

/** Throws TemplateError. */
export function callFunction(
  name: string,
  args: readonly TemplateValue[],
  surroundings: TemplateSurroundings,
  work: TemplateWork,
): TemplateValue {
  const { least, most = least, run, isDeep = false } = FUNCTIONS.get(name) as Taken
  if (args.length < least || args.length > most) {
    const wanted = most === least ? `${least}` : `at least ${least}`
    throw new TemplateError(`wrong number of args for ${name}: want ${wanted} got ${args.length}`)
  }
  for (const arg of args) {
    if (isDeep) weigh(arg, work)
    else if (typeof arg === 'string') work.spend(arg.length / CHARACTERS_PER_STEP)
    else if (isList(arg)) work.spend(arg.length / ELEMENTS_PER_STEP)
  }
  let value: TemplateValue
  try {
    value = run(args, surroundings, work)
  } catch (error) {
    if (error instanceof Unanswered) throw error
    throw new TemplateError(`error calling ${name}: ${(error as Error).message}`, { cause: error })
  }
  if (typeof value === 'string') {
    work.spend(value.length / CHARACTERS_PER_STEP)
    if (value.length > work.maxText)
      throw new TemplateError(`error calling ${name}: its text has more than ${work.maxText} characters`)
  }
  return value
}

/** Spends what it costs to look at everything in a value, such as a list of lists that are all the same one. */
export function weigh(value: TemplateValue, work: Pick<TemplateWork, 'spend'>): void {
  if (typeof value === 'string') work.spend(value.length / CHARACTERS_PER_STEP)
  else work.spend(typeof value === 'number' || isSample(value) ? STEPS_PER_NUMBER : 0.1)
  if (isSample(value)) work.spend(value.Labels.size)
  else if (isList(value)) for (const one of value) weigh(one, work)
  else if (isMap(value)) for (const one of value.values()) weigh(one, work)
}

/** Whether it counts as true: no zero, nothing empty. */
export function isTrue(value: TemplateValue): boolean {
  if (typeof value === 'number') return value !== 0
  if (isMap(value)) return value.size > 0
  if (isList(value)) return value.length > 0
  return value !== undefined && value !== '' && value !== false && value !== 0n
}

function text(value: TemplateValue): string {
  if (typeof value === 'string') return value
  throw new TemplateError(`wrong type for value; expected string; got ${goType(value)}`)
}

function number(value: TemplateValue): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  const parsed = typeof value === 'string' ? floatOf(value) : undefined
  if (parsed !== undefined) return parsed
  throw new TemplateError(`can't convert ${goType(value)} to float: ${printedAlone(value)}`)
}

function samples(value: TemplateValue): readonly TemplateSample[] {
  if (isList(value) && value.every(isSample)) return value
  throw new TemplateError(`wrong type for value; expected template.queryResult; got ${goType(value)}`)
}

function sample(value: TemplateValue): TemplateSample {
  if (isSample(value)) return value
  throw new TemplateError(`wrong type for value; expected *template.sample; got ${goType(value)}`)
}

function firstOf([first]: readonly TemplateSample[]): TemplateSample {
  if (first === undefined) throw new TemplateError('first() called on vector with no elements')
  return first
}

function sortedBy(label: string, of: readonly TemplateSample[], work: TemplateWork): readonly TemplateSample[] {
  work.spend(of.length)
  const textOf = ({ Labels }: TemplateSample): string => Labels.get(label) ?? ''
  return of.toSorted((left, right) => (textOf(left) < textOf(right) ? -1 : textOf(left) > textOf(right) ? 1 : 0))
}

/** As Go has it: what is empty right after what was found before is not found. */
function replaced(pattern: string, by: string, of: string, work: TemplateWork): string {
  const regex = regexOf(pattern, of, work)
  const matcher = regex.matcher(of)
  let [done, end] = ['', 0]
  for (let isFirst = true; matcher.find(); isFirst = false) {
    const [from, to] = [matcher.start(), matcher.end()]
    if (from === to && from === end && !isFirst) continue
    work.spend(STEPS_PER_REPLACEMENT)
    done += of.slice(end, from) + expansion(by, regex, matcher).join('')
    end = to
    if (done.length > work.maxText) throw new TemplateError(`its text has more than ${work.maxText} characters`)
  }
  return done + of.slice(end)
}

function matches(pattern: string, of: string, work: TemplateWork): boolean {
  return regexOf(pattern, of, work).matcher(of).find()
}

/** One that is to look at a text. */
function regexOf(pattern: string, of: string, work: TemplateWork): CompiledRegex {
  const regex = work.regexes.get(pattern) ?? compiledFor(pattern)
  const size = regex.programSize()
  if (!work.regexes.has(pattern)) work.spend(size * STEPS_PER_REGEX_PART)
  work.regexes.set(pattern, regex)
  work.spend((size * of.length) / REGEX_PARTS_PER_STEP)
  return regex
}

function compiledFor(pattern: string): CompiledRegex {
  try {
    return compiledRegex(pattern, { mostCharacters: MAX_REGEX, mostParts: MAX_REGEX, isDotAll: false })
  } catch (error) {
    if (error instanceof RegexError) throw new TemplateError(error.message)
    throw error
  }
}

function withoutPort(address: string): string {
  const [, host] = /^(\[[^\]]*\]|[^:]*):[^:]*$/.exec(address) ?? []
  return host === undefined ? address : host.replace(/^\[(.*)\]$/, '$1')
}

function withoutDomain(address: string): string {
  const [, host = '', port = ''] = /^(.*?)(:[^:]*)?$/.exec(address) ?? []
  if (/^\[|^[\d.]+$/.test(host)) return address
  return host.replace(/\..*$/, '') + port
}

function queryEscaped(value: string): string {
  return encodeURIComponent(value)
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')
}

/** As JSON has it. */
function plainOf(value: TemplateValue): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (isMap(value)) return Object.fromEntries([...value].map(([name, one]) => [name, plainOf(one)]))
  if (isList(value)) return value.map(plainOf)
  if (isSample(value)) return { Labels: plainOf(value.Labels), Value: value.Value }
  return value ?? null
}

function htmlEscaped(value: string): string {
  const by: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' }
  return value.replace(/[&<>"']/g, (character) => by[character] ?? character)
}

function linkTo(expression: string, tab: number): string {
  return `/graph?g0.expr=${queryEscaped(expression)}&g0.tab=${tab}`
}

function pathOf(url: string): string {
  return /^[a-z]+:\/\/[^/]*([^?#]*)/.exec(url)?.[1] ?? ''
}

function ofTextToNumber(): Taken {
  return one((value) => {
    const ms = durationMs(text(value))
    if (ms === undefined) throw new TemplateError(`not a valid duration string: ${JSON.stringify(value)}`)
    return ms / 1_000
  })
}

function isOdd(value: number): boolean {
  return value === 0 || !Number.isFinite(value)
}

function humanized(value: number, unit = ''): string {
  if (isOdd(value)) return goNumber(value, 'g', 4) + unit
  let [rest, prefix] = [value, '']
  if (Math.abs(rest) >= 1) {
    for (const next of LARGE) {
      if (Math.abs(rest) < 1_000) break
      prefix = next
      rest /= 1_000
    }
  } else
    for (const next of SMALL) {
      if (Math.abs(rest) >= 1) break
      prefix = next
      rest *= 1_000
    }
  return goNumber(rest, 'g', 4) + prefix + unit
}

function humanized1024(value: number): string {
  let [rest, prefix] = [value, '']
  if (Number.isFinite(value))
    for (const next of BINARY) {
      if (Math.abs(rest) < 1_024) break
      prefix = next
      rest /= 1_024
    }
  return goNumber(rest, 'g', 4) + prefix
}

function humanizedDuration(value: number): string {
  if (!Number.isFinite(value)) return goNumber(value, 'g', 4)
  if (Math.abs(value) < 1) return humanized(value, 's')
  const sign = value < 0 ? '-' : ''
  const size = Math.abs(value)
  const whole = Math.trunc(size)
  const [seconds, minutes] = [whole % 60, Math.trunc(whole / 60) % 60]
  const [hours, days] = [Math.trunc(whole / 3_600) % 24, Math.trunc(whole / 86_400)]
  if (days !== 0) return `${sign}${days}d ${hours}h ${minutes}m ${seconds}s`
  if (hours !== 0) return `${sign}${hours}h ${minutes}m ${seconds}s`
  if (minutes !== 0) return `${sign}${minutes}m ${seconds}s`
  return `${sign}${goNumber(size, 'g', 4)}s`
}

function humanizedTimestamp(value: number): string {
  if (!Number.isFinite(value)) return goNumber(value, 'g', 4)
  if (Math.abs(value) >= MAX_TIMESTAMP)
    throw new TemplateError(
      `${goNumber(value, 'g', undefined)} cannot be represented as a nanoseconds timestamp since it overflows int64`,
    )
  // Whole milliseconds of whole nanoseconds, with the loss that they have as a float.
  const date = new Date(Number(BigInt(Math.trunc(value * 1e9)) / 1_000_000n))
  const [day = '', time = ''] = date.toISOString().split('T')
  return `${day} ${time.replace('Z', '').replace(/\.?0+$/, '')} +0000 UTC`
}

function lengthOf(value: TemplateValue): number {
  if (typeof value === 'string') return utf8.encode(value).length
  if (isMap(value)) return value.size
  if (isList(value)) return value.length
  throw new TemplateError(`len of type ${goType(value)}`)
}

function elementOf(of: TemplateValue, key: TemplateValue): TemplateValue {
  if (isMap(of)) return of.get(text(key)) ?? ''
  if (!isList(of)) throw new TemplateError(`can't index item of type ${goType(of)}`)
  if (typeof key !== 'bigint') throw new TemplateError(`cannot index slice/array with type ${goType(key)}`)
  const found = of[Number(key)]
  if (found === undefined) throw new TemplateError(`index out of range: ${key}`)
  return found
}

function isEqual(left: TemplateValue, right: TemplateValue): boolean {
  expectSame(left, right)
  return left === right
}

function ordered(left: TemplateValue, right: TemplateValue): number {
  expectSame(left, right)
  if (typeof left === 'boolean' || left === undefined || right === undefined)
    throw new TemplateError('invalid type for comparison')
  return left < right ? -1 : left > right ? 1 : left === right ? 0 : Number.NaN
}

/** As in Go, an integer and a float cannot be compared. */
function expectSame(left: TemplateValue, right: TemplateValue): void {
  if (typeof left === 'object' || typeof right === 'object') throw new TemplateError('invalid type for comparison')
  if (typeof left !== typeof right) throw new TemplateError('incompatible types for comparison')
}
