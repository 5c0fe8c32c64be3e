/** A template of an annotation or a label of a rule: parsed when its file is loaded, and executed for each alert. */
import { callFunction, isTemplateFunction, isTrue, type TemplateSurroundings } from './functions.ts'
import { goType, isMap, isSamples, printed, type TemplateValue } from './go-format.ts'
import { type Pipeline, parseTextTemplate, TemplateError, type TemplateNodes, type TemplateOperand } from './parse.ts'

/** The data of an alert. */
export interface TemplateData {
  readonly labels: ReadonlyMap<string, string>
  readonly externalLabels: ReadonlyMap<string, string>
  readonly externalUrl: string
  readonly value: number
}

/** A text that becomes longer is an error. */
const MAX_OUTPUT = 65_536
/** So is work without end; ranges within ranges multiply. */
const MAX_STEPS = 100_000

export class TextTemplate {
  readonly text: string
  readonly #nodes: TemplateNodes

  /** Throws TemplateError. */
  constructor(text: string) {
    this.text = text
    this.#nodes = parseTextTemplate(text, isTemplateFunction)
  }

  /** Throws TemplateError. */
  execute(data: TemplateData, surroundings: TemplateSurroundings): string {
    const run = new Execution(data, surroundings)
    run.list(this.#nodes, run.root)
    return run.output
  }
}

interface Variable {
  readonly name: string
  value: TemplateValue
}

class Execution {
  readonly root: ReadonlyMap<string, TemplateValue>
  output = ''
  readonly #surroundings: TemplateSurroundings
  /** Those of inner blocks last. */
  #variables: Variable[]
  #steps = 0

  constructor({ labels, externalLabels, externalUrl, value }: TemplateData, surroundings: TemplateSurroundings) {
    this.#surroundings = surroundings
    this.root = new Map<string, TemplateValue>([
      ['Labels', labels],
      ['ExternalLabels', externalLabels],
      ['ExternalURL', externalUrl],
      ['Value', value],
    ])
    this.#variables = [
      { name: '$', value: this.root },
      { name: '$labels', value: labels },
      { name: '$externalLabels', value: externalLabels },
      { name: '$externalURL', value: externalUrl },
      { name: '$value', value },
    ]
  }

  list(nodes: TemplateNodes, dot: TemplateValue): void {
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
          if (isTrue(value)) this.list(node.body, node.kind === 'with' ? value : dot)
          else this.list(node.otherwise, dot)
        }
        this.#variables.length = count
      }
    }
  }

  #range(pipeline: Pipeline, body: TemplateNodes, otherwise: TemplateNodes, dot: TemplateValue): void {
    const of = this.#value(pipeline, dot)
    const elements = elementsOf(of)
    if (elements.length === 0) this.list(otherwise, dot)
    for (const [key, element] of elements) {
      const count = this.#variables.length
      const { variables } = pipeline
      const values = variables.length === 2 ? [key, element] : [element]
      for (const [index, name] of variables.entries()) this.#set(name, values[index], pipeline.isDeclaring)
      this.list(body, element)
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
    if (value === this.root && !this.root.has(name))
      throw new TemplateError(`can't evaluate field ${name}: there are Labels, ExternalLabels, ExternalURL and Value`)
    if (isMap(value)) return value.get(name) ?? ''
    if (typeof value === 'object' && !isSamples(value)) {
      if (name === 'Labels') return value.Labels
      if (name === 'Value') return value.Value
    }
    throw new TemplateError(`can't evaluate field ${name} in type ${goType(value)}`)
  }

  #set(name: string, value: TemplateValue, isDeclaring: boolean): void {
    const found = isDeclaring ? undefined : this.#variables.findLast((variable) => variable.name === name)
    if (found === undefined) this.#variables.push({ name, value })
    else found.value = value
  }

  #write(text: string): void {
    this.output += text
    if (this.output.length > MAX_OUTPUT) throw new TemplateError(`its text has more than ${MAX_OUTPUT} characters`)
  }

  #step(): void {
    if (++this.#steps > MAX_STEPS) throw new TemplateError(`it takes more than ${MAX_STEPS} steps`)
  }
}

function elementsOf(of: TemplateValue): (readonly [key: TemplateValue, element: TemplateValue])[] {
  if (isSamples(of)) return of.map((sample, index) => [BigInt(index), sample])
  if (isMap(of)) return [...of].sort(([left], [right]) => (left < right ? -1 : 1))
  if (of === undefined) return []
  throw new TemplateError(`range can't iterate over ${printed(of)}`)
}
