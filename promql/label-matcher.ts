/**
 * Matchers of selectors. Regular expressions are those of RE2, so that none takes longer than its text; they match a text as a
 * whole, and a dot matches a line feed too. An expression that is a list of plain texts becomes a set, which a source can look up.
 */
import { RE2JS, RE2JSException } from 're2js'
import { isPlainLabel } from './label-set.ts'
import { quoted } from './parse/quoting.ts'

export const MATCH_OPERATORS = ['=', '!=', '=~', '!~'] as const
export type MatchOperator = (typeof MATCH_OPERATORS)[number]

/** More alternatives than these are matched by the expression. */
const MAX_ALTERNATIVES = 10_000
/** Compiling takes time in proportion to the length, up to 17 ms for 1,000 characters. */
const MAX_CHARACTERS = 5_000
/** Characters, where what is repeated counts as often, and a class as what it takes: compiling them takes up to 100 ms. */
const MAX_PARTS = 10_000
/** A quotation, an escape, a class, a repetition, a bracket, a character. */
const PART =
  /\\Q.*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\[pP].|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\{(\d+)(,?)(\d*)\}|./gsu
/** What stands in a class: a class by its name, a range, or a character. */
const MEMBER = /\\[pP](?:\{[^}]*\}|.)|\[:\^?\w+:\]|(\\x\{[^}]*\}|\\x..|\\.|.)(?:-(\\x\{[^}]*\}|\\x..|\\.|.))?/gsu
/** Somewhere upper and lower case are the same. */
const FOLDS = /\(\?[a-zA-Z]*i/
/** Of a class of Unicode, such as `\pL`, which has hundreds of ranges. */
const UNICODE_CLASS_PARTS = 64
/** So many members of a class are put together in the time that a character takes. */
const MEMBERS_PER_PART = 8
/** Where case is the same, each character of a range is looked up, from the first one to the last one that has a case. */
const [FIRST_FOLDED, LAST_FOLDED, FOLDED_PER_PART] = [0x41, 0x1e943, 128]

/** What an expression does. The library's own types need a newer TypeScript than a program may have that embeds the server. */
export interface CompiledRegex {
  testExact(text: string): boolean
  /** How large it is: a match takes no longer than in proportion to this and the length of the text. */
  programSize(): number
  groupCount(): number
  /** The numbers of groups by their names. */
  namedGroups(): Readonly<Record<string, number>>
  matcher(text: string): RegexMatcher
}

export interface RegexMatcher {
  /** Whether the whole text matches. */
  matches(): boolean
  /** Whether there is another place that matches. */
  find(): boolean
  /** Of what was found. */
  start(): number
  end(): number
  /** What a group has matched; null if it is not a part of that. */
  group(number: number): string | null
}

export class LabelMatcher {
  readonly label: string
  readonly operator: MatchOperator
  readonly text: string
  /** All texts that the text or the expression stands for; undefined if they cannot be listed. A negated matcher has those it excludes. */
  readonly alternatives: ReadonlySet<string> | undefined
  readonly #regex: CompiledRegex | undefined

  /** `regexes`: those of the matchers that belong together. Throws RegexError. */
  constructor(label: string, operator: MatchOperator, text: string, regexes = new RegexMemory()) {
    this.label = label
    this.operator = operator
    this.text = text
    const isRegex = operator === '=~' || operator === '!~'
    this.alternatives = isRegex ? alternativesOf(text) : new Set([text])
    this.#regex = this.alternatives === undefined ? regexes.compiled(text) : undefined
  }

  /** What a match costs, in parts of the expression; 0: next to nothing. */
  get size(): number {
    return this.#regex?.programSize() ?? 0
  }

  /** Whether a text of the label matches; a series without the label has the text ''. */
  matches(text: string): boolean {
    const isNegated = this.operator === '!=' || this.operator === '!~'
    const isFound = this.alternatives?.has(text) ?? this.#regex?.testExact(text) ?? false
    return isFound !== isNegated
  }

  toString(): string {
    return `${isPlainLabel(this.label) ? this.label : quoted(this.label)}${this.operator}${quoted(this.text)}`
  }
}

/** A regular expression that is none; the message says what is wrong. */
export class RegexError extends Error {
  override readonly name = 'RegexError'
}

/** A regular expression that is too large to be compiled. */
export class RegexSizeError extends RegexError {}

/** Regular expressions that belong together: each is compiled once, and all of them are no longer than one may be. */
export class RegexMemory {
  readonly #byText = new Map<string, CompiledRegex>()
  readonly #mostParts: number
  #characters = 0
  #parts = 0

  /** `mostParts`: characters of all of them, where what is repeated counts as often. */
  constructor(mostParts = MAX_PARTS) {
    this.#mostParts = mostParts
  }

  /** Throws RegexError. */
  compiled(expression: string): CompiledRegex {
    const known = this.#byText.get(expression)
    if (known !== undefined) return known
    this.#characters += expression.length
    if (this.#characters > MAX_CHARACTERS)
      throw new RegexError(
        `regular expressions have ${this.#characters} characters together, at most ${MAX_CHARACTERS} are allowed`,
      )
    const before = this.#parts
    this.#parts += partsOf(expression)
    if (before > 0 && this.#parts > this.#mostParts)
      throw new RegexSizeError(
        `regular expressions have more than ${this.#mostParts} characters together, with what they repeat and fold, and may have so many`,
      )
    const compiled = compiledRegex(expression, { mostParts: this.#mostParts })
    this.#byText.set(expression, compiled)
    return compiled
  }
}

export interface RegexOptions {
  readonly mostCharacters?: number
  /** Characters, where what is repeated counts as often. */
  readonly mostParts?: number
  /** Whether a dot matches a line feed too. */
  readonly isDotAll?: boolean
}

/** Throws RegexError. */
export function compiledRegex(expression: string, options: RegexOptions = {}): CompiledRegex {
  const { mostCharacters = MAX_CHARACTERS, mostParts = MAX_PARTS, isDotAll = true } = options
  if (expression.length > mostCharacters)
    throw new RegexError(
      `a regular expression has ${expression.length} characters, at most ${mostCharacters} are allowed`,
    )
  if (partsOf(expression) > mostParts)
    throw new RegexSizeError(
      `a regular expression has more than ${mostParts} characters, with what it repeats and folds, and may have so many`,
    )
  try {
    return RE2JS.compile(expression, isDotAll ? RE2JS.DOTALL : 0)
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    // The flag is ours, and no part of the text.
    throw new RegexError(error.message.replace('`(?s)', '`'))
  }
}

/**
 * About how much it takes to compile it, in characters: repetitions are written out, and those within each other multiply. What a class
 * takes is taken once.
 */
function partsOf(expression: string): number {
  const folds = FOLDS.test(expression)
  const outside: number[] = []
  let [all, last, classes] = [0, 0, 0]
  for (const { 0: part, 1: least, 2: comma, 3: most } of expression.matchAll(PART)) {
    if (part === '(') {
      outside.push(all)
      all = 0
    } else if (part === ')') {
      last = all + 2
      all = last + (outside.pop() ?? 0)
    } else if (least !== undefined) {
      const times = Math.max(Number(most), Number(least) + (comma === '' ? 0 : 1), 1)
      all += last * (times - 1)
      last *= times
    } else if (part.startsWith('\\Q')) {
      last = 1
      all += part.length
    } else {
      // One that repeats stays what it is, and is one more.
      if (!/^[*+?|]$/.test(part)) last = 1
      all++
      if (part.length > 1) classes += classParts(part, folds)
    }
  }
  return Math.ceil(all + classes) + outside.reduce((sum, one) => sum + one, 0)
}

/** What a class takes besides, or an escape, which may be one. */
function classParts(text: string, folds: boolean): number {
  let parts = 0
  for (const { 0: member, 1: first = '', 2: last } of text.replace(/^\[\^?|\]$/g, '').matchAll(MEMBER)) {
    parts += /^\\[pP]/.test(member) ? UNICODE_CLASS_PARTS : 1 / MEMBERS_PER_PART
    if (!folds || last === undefined) continue
    const folded = Math.min(codePointOf(last), LAST_FOLDED) - Math.max(codePointOf(first), FIRST_FOLDED)
    parts += Math.max(0, folded) / FOLDED_PER_PART
  }
  return parts
}

function codePointOf(character: string): number {
  const digits = /^\\x\{?([^}]*)/.exec(character)?.[1]
  const code = digits === undefined ? character.codePointAt(0) : Number.parseInt(digits, 16)
  return code ?? 0
}

/** The texts of `a|b|c`, also in one pair of brackets; undefined if it is more than such a list. */
function alternativesOf(expression: string): ReadonlySet<string> | undefined {
  const inside = /^\((?:\?:)?([^()]*)\)$/.exec(expression)?.[1] ?? expression
  const texts = ['']
  for (let index = 0; index < inside.length; index++) {
    const character = inside[index] ?? ''
    if (/[.*+?()[\]{}^$]/.test(character)) return undefined
    if (character === '|') {
      texts.push('')
      continue
    }
    const escaped = character === '\\' ? (inside[++index] ?? '') : undefined
    // Only punctuation is itself behind a backslash.
    if (escaped !== undefined && !/[!-/:-@[-`{-~]/.test(escaped)) return undefined
    texts[texts.length - 1] += escaped ?? character
  }
  return texts.length > MAX_ALTERNATIVES ? undefined : new Set(texts)
}
