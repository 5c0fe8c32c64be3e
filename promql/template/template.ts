/** Templates of annotations and labels of rules, and of what receivers are sent: parsed when their files are loaded, and executed for each alert. */
import { callFunction, isBodyFunction, isRuleFunction, isTrue, type TemplateSurroundings } from './functions.ts'
import { goType, isList, isMap, isSample, printed, type TemplateValue } from './go-format.ts'
import {
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
  maxSteps: 100_000,
}
const OF_BODIES: TemplateDialect = {
  variables: ['$'],
  isFunction: isBodyFunction,
  maxOutput: 262_144,
  maxSteps: 5_000,
}

/** A template of an annotation or a label of a rule. */
export class TextTemplate {
  readonly text: string
  readonly #nodes: TemplateNodes

  /** Throws TemplateError. */
  constructor(text: string) {
    this.text = text
    this.#nodes = parseTextTemplate(text, OF_RULES)
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
    return new Execution(root, variables, OF_RULES, surroundings).text(this.#nodes)
  }
}

/** A template of what a receiver is sent. It has `toJson`, and asks for no expressions. */
export class BodyTemplate {
  readonly #nodes: TemplateNodes

  /** Throws TemplateError. */
  constructor(text: string) {
    this.#nodes = parseTextTemplate(text, OF_BODIES)
  }

  /** Throws TemplateError. */
  execute(root: ReadonlyMap<string, TemplateValue>, surroundings: Omit<TemplateSurroundings, 'query'>): string {
    const query = (): never => {
      throw new TemplateError('a body asks for no expressions')
    }
    return new Execution(root, [{ name: '$', value: root }], OF_BODIES, { ...surroundings, query }).text(this.#nodes)
  }
}

interface Variable {
  readonly name: string
  value: TemplateValue
}

class Execution {
  readonly #root: ReadonlyMap<string, TemplateValue>
  readonly #limits: Pick<TemplateDialect, 'maxOutput' | 'maxSteps'>
  readonly #surroundings: TemplateSurroundings
  #output = ''
  /** Those of inner blocks last. */
  #variables: Variable[]
  #steps = 0

  constructor(
    root: ReadonlyMap<string, TemplateValue>,
    variables: Variable[],
    limits: Pick<TemplateDialect, 'maxOutput' | 'maxSteps'>,
    surroundings: TemplateSurroundings,
  ) {
    this.#root = root
    this.#variables = variables
    this.#limits = limits
    this.#surroundings = surroundings
  }

  text(nodes: TemplateNodes): string {
    this.#list(nodes, this.#root)
    return this.#output
  }

  #list(nodes: TemplateNodes, dot: TemplateValue): void {
    for (const node of nodes) {
      this.#step()
      if (node.kind === 'text') this.#write(node.text)
      else if (node.kind === 'action') {
        const value = this.#pipeline(node.pipeline, dot)
        if (node.pipeline.variables.length === 0) this.#write(printed(value))
      } else {
        const count = this.#variables.length
        if (node.kind === 'range') this.#range(node.pipeline, node.body, node.otherwise, dot)
        else {
          const value = this.#pipeline(node.pipeline, dot)
          if (isTrue(value)) this.#list(node.body, node.kind === 'with' ? value : dot)
          else this.#list(node.otherwise, dot)
        }
        this.#variables.length = count
      }
    }
  }

  #range(pipeline: Pipeline, body: TemplateNodes, otherwise: TemplateNodes, dot: TemplateValue): void {
    const of = this.#value(pipeline, dot)
    const elements = elementsOf(of)
    if (elements.length === 0) this.#list(otherwise, dot)
    for (const [key, element] of elements) {
      const count = this.#variables.length
      const { variables } = pipeline
      const values = variables.length === 2 ? [key, element] : [element]
      for (const [index, name] of variables.entries()) this.#set(name, values[index], pipeline.isDeclaring)
      this.#list(body, element)
      this.#variables.length = count
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
    this.#step()
    if (first?.kind !== 'function') {
      if (hasLast) throw new TemplateError("can't give argument to non-function")
      return this.#operand(first as TemplateOperand, dot)
    }
    if ((first.name === 'and' || first.name === 'or') && rest.length > 0) {
      const value = this.#deciding(first.name === 'or', rest, dot)
      return hasLast && isTrue(value) === (first.name === 'and') ? last : value
    }
    const args = rest.map((operand) => this.#operand(operand, dot))
    return callFunction(first.name, hasLast ? [...args, last] : args, this.#surroundings)
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
        return callFunction(operand.name, [], this.#surroundings)
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

  #step(): void {
    const { maxSteps } = this.#limits
    if (++this.#steps > maxSteps) throw new TemplateError(`it takes more than ${maxSteps} steps`)
  }
}

function elementsOf(of: TemplateValue): (readonly [key: TemplateValue, element: TemplateValue])[] {
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
