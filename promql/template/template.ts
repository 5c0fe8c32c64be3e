/** Templates of annotations and labels of rules, and of what receivers are sent: parsed when their files are loaded, and executed for each alert. */
import type { CompiledRegex } from '../label-matcher.ts'
import {
  callFunction,
  isBodyFunction,
  isRuleFunction,
  isTrue,
  type TemplateSurroundings,
  type TemplateWork,
  weigh,
} from './functions.ts'
import { goType, isList, isMap, isSample, printed, type TemplateValue } from './go-format.ts'
import {
  type ParsedTemplate,
  type Pipeline,
  parseTextTemplate,
  type TemplateDialect,
  TemplateError,
  type TemplateNodes,
  type TemplateOperand,
} from './parse.ts'

/** The data of an alert. */
export interface TemplateData {
  readonly labels: ReadonlyMap<string, string>
  readonly externalLabels: ReadonlyMap<string, string>
  readonly externalUrl: string
  readonly value: number
}

const OF_RULES: TemplateDialect = {
  variables: ['$', '$labels', '$externalLabels', '$externalURL', '$value'],
  isFunction: isRuleFunction,
  maxOutput: 65_536,
  maxSteps: 20_000,
}
const OF_BODIES: TemplateDialect = {
  variables: ['$'],
  isFunction: isBodyFunction,
  maxOutput: 262_144,
  maxSteps: 20_000,
}

/** A template of an annotation or a label of a rule. */
export class TextTemplate {
  readonly text: string
  readonly #parsed: ParsedTemplate

  /** Throws TemplateError. */
  constructor(text: string) {
    this.text = text
    this.#parsed = parseTextTemplate(text, OF_RULES)
  }

  /** Whether it is the same for everybody. */
  get isConstant(): boolean {
    return this.#parsed.nodes.every(({ kind }) => kind === 'text')
  }

  /** Throws TemplateError. */
  execute({ labels, externalLabels, externalUrl, value }: TemplateData, surroundings: TemplateSurroundings): string {
    const root = new Map<string, TemplateValue>([
      ['Labels', labels],
      ['ExternalLabels', externalLabels],
      ['ExternalURL', externalUrl],
      ['Value', value],
    ])
    const variables = [
      { name: '$', value: root },
      { name: '$labels', value: labels },
      { name: '$externalLabels', value: externalLabels },
      { name: '$externalURL', value: externalUrl },
      { name: '$value', value },
    ]
    return new Execution(this.#parsed, root, variables, OF_RULES, surroundings).text()
  }
}

/** A template of what a receiver is sent. It has `toJson`, and asks for no expressions. */
export class BodyTemplate {
  readonly #parsed: ParsedTemplate

  /** Throws TemplateError. */
  constructor(text: string) {
    this.#parsed = parseTextTemplate(text, OF_BODIES)
  }

  /** Throws TemplateError. */
  execute(root: ReadonlyMap<string, TemplateValue>, surroundings: Omit<TemplateSurroundings, 'query'>): string {
    const query = (): never => {
      throw new TemplateError('a body asks for no expressions')
    }
    const variables = [{ name: '$', value: root }]
    return new Execution(this.#parsed, root, variables, OF_BODIES, { ...surroundings, query }).text()
  }
}

/** Templates that use themselves go no deeper. */
const MAX_DEPTH = 100

interface Variable {
  readonly name: string
  value: TemplateValue
}

class Execution implements TemplateWork {
  readonly regexes = new Map<string, CompiledRegex>()
  readonly #parsed: ParsedTemplate
  readonly #root: ReadonlyMap<string, TemplateValue>
  readonly #limits: Pick<TemplateDialect, 'maxOutput' | 'maxSteps'>
  readonly #surroundings: TemplateSurroundings
  #output = ''
  /** Those of inner blocks last. */
  #variables: Variable[]
  #steps = 0
  /** Templates that are under way within each other. */
  #depth = 0

  constructor(
    parsed: ParsedTemplate,
    root: ReadonlyMap<string, TemplateValue>,
    variables: Variable[],
    limits: Pick<TemplateDialect, 'maxOutput' | 'maxSteps'>,
    surroundings: TemplateSurroundings,
  ) {
    this.#parsed = parsed
    this.#root = root
    this.#variables = variables
    this.#limits = limits
    this.#surroundings = surroundings
  }

  get maxText(): number {
    return this.#limits.maxOutput
  }

  spend(steps: number): void {
    const { maxSteps } = this.#limits
    this.#steps += steps
    if (this.#steps > maxSteps) throw new TemplateError(`it takes more than ${maxSteps} steps`)
  }

  text(): string {
    this.#list(this.#parsed.nodes, this.#root)
    return this.#output
  }

  /** Gives by what it ended before its end; undefined if it did not. */
  #list(nodes: TemplateNodes, dot: TemplateValue): 'break' | 'continue' | undefined {
    for (const node of nodes) {
      this.spend(1)
      if (node.kind === 'text') this.#write(node.text)
      else if (node.kind === 'action') {
        const value = this.#pipeline(node.pipeline, dot)
        if (node.pipeline.variables.length > 0) continue
        weigh(value, this)
        this.#write(printed(value))
      } else if (node.kind === 'template')
        this.#template(node.name, node.pipeline && this.#pipeline(node.pipeline, dot))
      else if (node.kind === 'break' || node.kind === 'continue') return node.kind
      else {
        const count = this.#variables.length
        let jump: 'break' | 'continue' | undefined
        if (node.kind === 'range') this.#range(node.pipeline, node.body, node.otherwise, dot)
        else {
          const value = this.#pipeline(node.pipeline, dot)
          if (isTrue(value)) jump = this.#list(node.body, node.kind === 'with' ? value : dot)
          else jump = this.#list(node.otherwise, dot)
        }
        this.#variables.length = count
        if (jump !== undefined) return jump
      }
    }
    return undefined
  }

  #template(name: string, dot: TemplateValue): void {
    const nodes = this.#parsed.defined.get(name)
    if (nodes === undefined) throw new TemplateError(`template ${JSON.stringify(name)} not defined`)
    if (++this.#depth > MAX_DEPTH) throw new TemplateError(`templates are more than ${MAX_DEPTH} deep in each other`)
    const outside = this.#variables
    this.#variables = [{ name: '$', value: dot }]
    this.#list(nodes, dot)
    this.#variables = outside
    this.#depth--
  }

  #range(pipeline: Pipeline, body: TemplateNodes, otherwise: TemplateNodes, dot: TemplateValue): void {
    const of = this.#value(pipeline, dot)
    const elements = elementsOf(of, this)
    if (elements.length === 0) this.#list(otherwise, dot)
    for (const [key, element] of elements) {
      this.spend(1)
      const count = this.#variables.length
      const { variables } = pipeline
      const values = variables.length === 2 ? [key, element] : [element]
      for (const [index, name] of variables.entries()) this.#set(name, values[index], pipeline.isDeclaring)
      const jump = this.#list(body, element)
      this.#variables.length = count
      if (jump === 'break') break
    }
  }

  #pipeline(pipeline: Pipeline, dot: TemplateValue): TemplateValue {
    const value = this.#value(pipeline, dot)
    for (const name of pipeline.variables) this.#set(name, value, pipeline.isDeclaring)
    return value
  }

  #value({ commands }: Pipeline, dot: TemplateValue): TemplateValue {
    let value: TemplateValue
    for (const [index, command] of commands.entries()) value = this.#command(command, dot, index > 0, value)
    return value
  }

  #command(
    [first, ...rest]: readonly TemplateOperand[],
    dot: TemplateValue,
    hasLast: boolean,
    last: TemplateValue,
  ): TemplateValue {
    this.spend(1)
    if (first?.kind !== 'function') {
      if (hasLast) throw new TemplateError("can't give argument to non-function")
      return this.#operand(first as TemplateOperand, dot)
    }
    if ((first.name === 'and' || first.name === 'or') && rest.length > 0) {
      const value = this.#deciding(first.name === 'or', rest, dot)
      return hasLast && isTrue(value) === (first.name === 'and') ? last : value
    }
    const args = rest.map((operand) => this.#operand(operand, dot))
    return callFunction(first.name, hasLast ? [...args, last] : args, this.#surroundings, this)
  }

  /** The first operand that is true, or that is not; the last one if none decides. Those after it are not looked at. */
  #deciding(isOr: boolean, operands: readonly TemplateOperand[], dot: TemplateValue): TemplateValue {
    let value: TemplateValue
    for (const operand of operands) {
      value = this.#operand(operand, dot)
      if (isTrue(value) === isOr) break
    }
    return value
  }

  #operand(operand: TemplateOperand, dot: TemplateValue): TemplateValue {
    switch (operand.kind) {
      case 'constant':
        return operand.value
      case 'dot':
        return dot
      case 'variable':
        return this.#variables.findLast(({ name }) => name === operand.name)?.value
      case 'function':
        return callFunction(operand.name, [], this.#surroundings, this)
      case 'pipeline':
        return this.#value(operand.pipeline, dot)
      case 'fields':
        return operand.names.reduce((value, name) => this.#field(value, name), this.#operand(operand.of, dot))
    }
  }

  #field(value: TemplateValue, name: string): TemplateValue {
    if (value === this.#root && !this.#root.has(name))
      throw new TemplateError(`can't evaluate field ${name}: there are ${listed([...this.#root.keys()])}`)
    if (isMap(value)) return value.get(name) ?? ''
    if (isList(value) && (name === 'Firing' || name === 'Resolved')) return withStatus(value, name.toLowerCase())
    if (isSample(value) && name === 'Labels') return value.Labels
    if (isSample(value) && name === 'Value') return value.Value
    throw new TemplateError(`can't evaluate field ${name} in type ${goType(value)}`)
  }

  #set(name: string, value: TemplateValue, isDeclaring: boolean): void {
    const found = isDeclaring ? undefined : this.#variables.findLast((variable) => variable.name === name)
    if (found === undefined) this.#variables.push({ name, value })
    else found.value = value
  }

  #write(text: string): void {
    const { maxOutput } = this.#limits
    this.#output += text
    if (this.#output.length > maxOutput) throw new TemplateError(`its text has more than ${maxOutput} characters`)
  }
}

function elementsOf(of: TemplateValue, work: TemplateWork): (readonly [key: TemplateValue, element: TemplateValue])[] {
  if (isList(of) || isMap(of)) work.spend((isList(of) ? of.length : of.size) / 8)
  if (isList(of)) return of.map((element, index) => [BigInt(index), element])
  if (isMap(of)) return [...of].sort(([left], [right]) => (left < right ? -1 : 1))
  if (of === undefined) return []
  throw new TemplateError(`range can't iterate over ${printed(of)}`)
}

/** As the lists of alerts of Alertmanager's templates have them. */
function withStatus(alerts: readonly TemplateValue[], status: string): readonly TemplateValue[] {
  return alerts.filter((alert) => isMap(alert) && alert.get('Status') === status)
}

function listed(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
