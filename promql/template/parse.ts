/** Templates of annotations and labels: Go's text/template, as rule files use it. */
import { literalNumber } from '../parse/numbers.ts'
import { unquoted } from '../parse/quoting.ts'

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly pipeline: Pipeline }
  | {
      readonly kind: 'if' | 'with' | 'range'
      readonly pipeline: Pipeline
      readonly body: TemplateNodes
      readonly otherwise: TemplateNodes
    }
  /** What another template comes to, whose dot is what the pipeline gives. */
  | { readonly kind: 'template'; readonly name: string; readonly pipeline: Pipeline | undefined }
  /** The next element of the range that it is in, or the end of that. */
  | { readonly kind: 'continue' }
  | { readonly kind: 'break' }

export type TemplateNodes = readonly TemplateNode[]

export interface ParsedTemplate {
  readonly nodes: TemplateNodes
  /** Those that `define` and `block` have made, by their names. */
  readonly defined: ReadonlyMap<string, TemplateNodes>
}

export interface Pipeline {
  /** Variables that it gives values to: of `range` up to two, else one. */
  readonly variables: readonly string[]
  readonly isDeclaring: boolean
  /** Each gets the value of the one before as its last argument. */
  readonly commands: readonly (readonly TemplateOperand[])[]
}

export type TemplateOperand =
  | { readonly kind: 'constant'; readonly value: string | number | bigint | boolean | undefined }
  | { readonly kind: 'dot' }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'pipeline'; readonly pipeline: Pipeline }
  | { readonly kind: 'fields'; readonly of: TemplateOperand; readonly names: readonly string[] }

/** What is wrong with a template, or went wrong in one; the message is for its author. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError'
}

/** What a kind of template has. */
export interface TemplateDialect {
  /** Variables that are there from the beginning. */
  readonly variables: readonly string[]
  readonly isFunction: (name: string) => boolean
  /** A text that becomes longer is an error. */
  readonly maxOutput: number
  /** So is work without end; ranges within ranges multiply. */
  readonly maxSteps: number
}

/** What another template gets has this name. */
const ITS_DATA = '$'
const MAX_LENGTH = 65_536
const MAX_DEPTH = 100

const TOKEN =
  /\s+|"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])+'|:=|[|(),=]|\$[A-Za-z0-9_]*|\.[A-Za-z_][A-Za-z0-9_]*|[+-]?(?:\d|\.\d)[\w.]*(?:(?<=[eEpP])[+-]\w+)?|\.|[A-Za-z_][A-Za-z0-9_]*/y

/** Throws TemplateError. */
export function parseTextTemplate(text: string, dialect: TemplateDialect): ParsedTemplate {
  if (text.length > MAX_LENGTH) throw new TemplateError(`a template has more than ${MAX_LENGTH} characters`)
  const parser = new Parser(piecesOf(text), dialect)
  return parser.whole()
}

/** A text, or the inside of an action. */
interface Piece {
  readonly isAction: boolean
  readonly text: string
}

function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  let at = 0
  let isTrimming = false
  for (;;) {
    const start = text.indexOf('{{', at)
    let before = text.slice(at, start < 0 ? text.length : start)
    if (isTrimming) before = before.trimStart()
    if (start < 0) {
      pieces.push({ isAction: false, text: before })
      return pieces
    }
    let inside = start + 2
    if (/^-\s/.test(text.slice(inside, inside + 2))) {
      before = before.trimEnd()
      inside++
    }
    pieces.push({ isAction: false, text: before })
    const comment = /^\s*\/\*[\s\S]*?\*\/\s*(-?)\}\}/.exec(text.slice(inside))
    if (comment !== null) {
      isTrimming = comment[1] === '-'
      at = inside + comment[0].length
      continue
    }
    const end = endOfAction(text, inside)
    const action = text.slice(inside, end)
    isTrimming = /\s-$/.test(action)
    pieces.push({ isAction: true, text: isTrimming ? action.slice(0, -1) : action })
    at = end + 2
  }
}

/** Texts in quotes may hold braces. */
function endOfAction(text: string, from: number): number {
  const part = /"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])*'|\}\}|[\s\S]/y
  part.lastIndex = from
  for (let found = part.exec(text); found !== null; found = part.exec(text)) {
    if (found[0] === '}}') return found.index
  }
  throw new TemplateError('an action has no }}')
}

class Parser {
  readonly #pieces: readonly Piece[]
  readonly #isFunction: (name: string) => boolean
  #at = 0
  #depth = 0
  /** The variables that are declared so far, those of inner blocks last. */
  #variables: string[]
  /** Ranges that are open. */
  #ranges = 0
  readonly #defined = new Map<string, TemplateNodes>()

  constructor(pieces: readonly Piece[], { variables, isFunction }: TemplateDialect) {
    this.#pieces = pieces
    this.#variables = [...variables]
    this.#isFunction = isFunction
  }

  whole(): ParsedTemplate {
    const { nodes, end } = this.#list()
    if (end !== undefined) throw new TemplateError(`unexpected {{${end.word}}}`)
    return { nodes, defined: this.#defined }
  }

  /** Up to an `else` or `end`, or to the end of the text. */
  #list(): { nodes: TemplateNode[]; end: { word: 'else' | 'end'; rest: string } | undefined } {
    if (++this.#depth > MAX_DEPTH) throw new TemplateError(`blocks are more than ${MAX_DEPTH} deep`)
    const nodes: TemplateNode[] = []
    while (this.#at < this.#pieces.length) {
      const { isAction, text } = this.#pieces[this.#at++] as Piece
      if (!isAction) {
        if (text !== '') nodes.push({ kind: 'text', text })
        continue
      }
      const [, word = '', rest = ''] = /^\s*([a-z]+)\b([\s\S]*)$/.exec(text) ?? []
      if (word === 'else' || word === 'end') {
        this.#depth--
        return { nodes, end: { word, rest } }
      }
      if (word === 'define') this.#define(rest)
      else if (word === 'template' || word === 'block') nodes.push(this.#template(word, rest))
      else if (word === 'break' || word === 'continue') nodes.push(this.#jump(word, rest))
      else if (word === 'if' || word === 'with' || word === 'range') nodes.push(this.#block(word, rest))
      else nodes.push({ kind: 'action', pipeline: this.#pipeline(text, 1) })
    }
    this.#depth--
    return { nodes, end: undefined }
  }

  #define(rest: string): void {
    // That of the whole text.
    if (this.#depth > 1) throw new TemplateError('unexpected {{define}}: it cannot be in a block')
    const { name, pipeline } = this.#named('define', rest)
    if (pipeline.trim() !== '') throw new TemplateError(`unexpected ${pipeline.trim()} in {{define}}`)
    this.#body('define', name)
  }

  /** Of another template, which is there already, or follows. */
  #template(word: 'template' | 'block', rest: string): TemplateNode {
    const { name, pipeline: text } = this.#named(word, rest)
    const isEmpty = text.trim() === ''
    if (word === 'block' && isEmpty) throw new TemplateError('a value is missing in {{block}}')
    const pipeline = isEmpty ? undefined : this.#pipeline(text, 1)
    if (word === 'block') this.#body('block', name)
    return { kind: 'template', name, pipeline }
  }

  #named(word: string, rest: string): { readonly name: string; readonly pipeline: string } {
    const [all = '', quoted = ''] = /^\s*("(?:\\.|[^"\\\n])*"|`[^`]*`)/.exec(rest) ?? []
    const name = unquoted(quoted)
    if (name === undefined) throw new TemplateError(`{{${word}}} needs a name in quotes`)
    return { name, pipeline: rest.slice(all.length) }
  }

  /** Has no variables of what is around it, and no range. */
  #body(word: string, name: string): void {
    const [outside, ranges] = [this.#variables, this.#ranges]
    this.#variables = [ITS_DATA]
    this.#ranges = 0
    const { nodes, end } = this.#list()
    if (end?.word !== 'end') throw new TemplateError(`{{${word}}} has no {{end}}`)
    this.#variables = outside
    this.#ranges = ranges
    if (this.#defined.has(name)) throw new TemplateError(`two templates are called ${JSON.stringify(name)}`)
    this.#defined.set(name, nodes)
  }

  #jump(kind: 'break' | 'continue', rest: string): TemplateNode {
    if (rest.trim() !== '') throw new TemplateError(`unexpected ${rest.trim()} in {{${kind}}}`)
    if (this.#ranges === 0) throw new TemplateError(`{{${kind}}} is not in a {{range}}`)
    return { kind }
  }

  #block(kind: 'if' | 'with' | 'range', condition: string): TemplateNode {
    const outside = [...this.#variables]
    const pipeline = this.#pipeline(condition, kind === 'range' ? 2 : 1)
    if (kind === 'range') this.#ranges++
    const { nodes, end } = this.#list()
    if (kind === 'range') this.#ranges--
    if (end === undefined) throw new TemplateError(`{{${kind}}} has no {{end}}`)
    const otherwise = end.word === 'end' ? [] : this.#otherwise(kind, end.rest)
    this.#variables = outside
    return { kind, pipeline, body: nodes, otherwise }
  }

  #otherwise(kind: string, rest: string): TemplateNodes {
    const [, word, condition = ''] = /^\s*(if|with)\b([\s\S]*)$/.exec(rest) ?? []
    // The end of the inner block is that of the outer one, too.
    if (word === 'if' && kind === 'if') return [this.#block('if', condition)]
    if (word === 'with' && kind === 'with') return [this.#block('with', condition)]
    if (rest.trim() !== '') throw new TemplateError(`unexpected ${rest.trim()} after {{else`)
    const { nodes, end } = this.#list()
    if (end?.word !== 'end') throw new TemplateError(`{{${kind}}} has no {{end}} after {{else}}`)
    return nodes
  }

  #pipeline(text: string, most: number): Pipeline {
    const tokens = new Tokens(text)
    const pipeline = this.#pipelineOf(tokens, most)
    if (tokens.next !== '') throw new TemplateError(`unexpected ${tokens.next} in {{${text}}}`)
    return pipeline
  }

  #pipelineOf(tokens: Tokens, most: number): Pipeline {
    if (++this.#depth > MAX_DEPTH) throw new TemplateError(`brackets are more than ${MAX_DEPTH} deep`)
    const { variables, isDeclaring } = tokens.assigned(most)
    const commands = [this.#command(tokens)]
    while (tokens.take('|')) {
      const command = this.#command(tokens)
      if (command[0]?.kind === 'constant')
        throw new TemplateError('a value cannot take another one: a function has to stand after |')
      commands.push(command)
    }
    if (isDeclaring) this.#variables.push(...variables)
    else for (const name of variables) this.#known(name)
    this.#depth--
    return { variables, isDeclaring, commands }
  }

  #command(tokens: Tokens): readonly TemplateOperand[] {
    const operands: TemplateOperand[] = []
    while (!['', '|', ')'].includes(tokens.next)) operands.push(this.#operand(tokens))
    if (operands.length === 0) throw new TemplateError('a value is missing')
    const [first] = operands
    if (operands.length > 1 && first?.kind !== 'function') throw new TemplateError('only a function takes arguments')
    return operands
  }

  #operand(tokens: Tokens): TemplateOperand {
    const isJoined = tokens.isJoined
    const token = tokens.advance()
    let operand: TemplateOperand
    if (token === '(') {
      operand = { kind: 'pipeline', pipeline: this.#pipelineOf(tokens, 0) }
      if (!tokens.take(')')) throw new TemplateError('a bracket is not closed')
    } else if (token.startsWith('$')) {
      this.#known(token)
      operand = { kind: 'variable', name: token }
    } else if (token === '.') operand = { kind: 'dot' }
    else if (token.startsWith('.') && !/^\.\d/.test(token)) {
      if (isJoined) throw new TemplateError(`unexpected ${token}`)
      operand = { kind: 'fields', of: { kind: 'dot' }, names: [token.slice(1)] }
    } else operand = this.#constantOrFunction(token)
    const names: string[] = []
    while (tokens.isJoined && /^\.[A-Za-z_]/.test(tokens.next)) names.push(tokens.advance().slice(1))
    if (names.length === 0) return operand
    if (operand.kind === 'constant' || operand.kind === 'function') throw new TemplateError(`${token} has no fields`)
    return { kind: 'fields', of: operand, names }
  }

  #constantOrFunction(token: string): TemplateOperand {
    if (/^["`']/.test(token)) {
      const value = unquoted(token)
      if (value === undefined) throw new TemplateError(`${token} is no text`)
      return { kind: 'constant', value: token.startsWith("'") ? BigInt(value.codePointAt(0) ?? 0) : value }
    }
    if (token === 'true' || token === 'false') return { kind: 'constant', value: token === 'true' }
    if (token === 'nil') return { kind: 'constant', value: undefined }
    if (/^[+-]?[\d.]/.test(token)) return { kind: 'constant', value: numberOf(token) }
    if (!/^[A-Za-z_]/.test(token)) throw new TemplateError(`unexpected ${token}`)
    if (!this.#isFunction(token)) throw new TemplateError(`function "${token}" is not known`)
    return { kind: 'function', name: token }
  }

  #known(name: string): void {
    if (!this.#variables.includes(name)) throw new TemplateError(`variable ${name} is not declared`)
  }
}

/** Integers and others are different, as they are in Go. */
function numberOf(token: string): number | bigint {
  const unsigned = token.replace(/^[+-]/, '')
  const sign = token.startsWith('-') ? -1 : 1
  const octal = unsigned.replace(/^0(?=[0-7]+$)/, '0o')
  if (/^(?:0|[1-9]\d*|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+)$/.test(octal)) return BigInt(octal) * BigInt(sign)
  const value = /^[\d.]+(?:[eE][+-]?\d+)?$/.test(unsigned) ? literalNumber(unsigned) : undefined
  if (value === undefined) throw new TemplateError(`${token} is no number`)
  return sign * value
}

class Tokens {
  readonly #tokens: { readonly text: string; readonly isJoined: boolean }[] = []
  #at = 0

  constructor(text: string) {
    let isJoined = false
    TOKEN.lastIndex = 0
    while (TOKEN.lastIndex < text.length) {
      const start = TOKEN.lastIndex
      const found = TOKEN.exec(text)?.[0]
      if (found === undefined)
        throw new TemplateError(`unexpected ${text.slice(start).trim().slice(0, 20)} in {{${text}}}`)
      const isSpace = found.trim() === ''
      if (!isSpace) this.#tokens.push({ text: found, isJoined })
      isJoined = !isSpace && !/^(?:[|(,=]|:=)$/.test(found)
    }
  }

  /** '' at the end. */
  get next(): string {
    return this.#tokens[this.#at]?.text ?? ''
  }

  /** Whether no space stands before the next one. */
  get isJoined(): boolean {
    return this.#tokens[this.#at]?.isJoined ?? false
  }

  advance(): string {
    return this.#tokens[this.#at++]?.text ?? ''
  }

  take(text: string): boolean {
    if (this.next !== text) return false
    this.#at++
    return true
  }

  /** `$a :=`, `$a =`, `$a, $b :=`; nothing is taken if it is none of them. */
  assigned(most: number): { variables: readonly string[]; isDeclaring: boolean } {
    const texts = this.#tokens.slice(this.#at, this.#at + 4).map(({ text }) => text)
    const count = texts[1] === ',' ? 2 : 1
    const sign = texts[count === 2 ? 3 : 1]
    const variables = [texts[0], texts[2]].slice(0, count)
    const isAssigned = variables.every((name) => name?.startsWith('$')) && (sign === ':=' || sign === '=')
    if (!isAssigned || most === 0) return { variables: [], isDeclaring: false }
    if (count > most) throw new TemplateError('only {{range}} has two variables')
    this.#at += count === 2 ? 4 : 2
    return { variables: variables.map(String), isDeclaring: sign === ':=' }
  }
}
