/** Checks what comes from code that is not the server's: no compiler may have seen it. */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType, labelNames, MAX_NESTING } from '../../../protocol/monitor/constants.ts'
import { nameProblem, type Value, writeTyped } from '../../../protocol/monitor/value.ts'
import { MAX_DETAIL } from '../core/errors.ts'
import { openLabelsProblem } from './labels.ts'
import { type Labels, type Metric, partLabels, type SensorStatus } from './metric.ts'

type Check = readonly [expected: string, fits: (value: unknown) => boolean]

function integer(least: number, most: number): Check {
  const fits = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= least && Number(value) <= most
  return [`an integer from ${least} to ${most}`, fits]
}

function bigint(least: bigint, most: bigint): Check {
  return [`a bigint from ${least} to ${most}`, (value) => typeof value === 'bigint' && value >= least && value <= most]
}

const isBytes = (value: unknown): boolean => value instanceof Uint8Array

const checks: Readonly<Record<number, Check>> = {
  [BasicType.INT32]: integer(-(2 ** 31), 2 ** 31 - 1),
  [BasicType.UINT32]: integer(0, 2 ** 32 - 1),
  [BasicType.INT64]: bigint(-(2n ** 63n), 2n ** 63n - 1n),
  [BasicType.UINT64]: bigint(0n, 2n ** 64n - 1n),
  [BasicType.DOUBLE]: ['a number', (value) => typeof value === 'number'],
  [BasicType.BOOLEAN]: ['a boolean', (value) => typeof value === 'boolean'],
  [BasicType.STRING]: ['a string', (value) => typeof value === 'string' || isBytes(value)],
  [BasicType.OPAQUE]: ['a Uint8Array', isBytes],
  [BasicType.VOID]: ['null', (value) => value === null],
  [BasicType.REC]: ['an array of fields', Array.isArray],
  [BasicType.ARRAY]: [
    'an element type with items',
    (value) => Array.isArray((value as { items?: unknown } | null)?.items),
  ],
}

/** What is wrong with a value, for people; undefined if nothing is. */
export function valueProblem(value: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null) return 'there is no value'
  const { type, value: content } = value as { readonly type: unknown; readonly value: unknown }
  const check = checks[type as number]
  if (check === undefined) return `no basic type has the number ${String(type)}`
  if (!check[1](content)) return `${nameOf(type)}: ${check[0]} was expected, not ${described(content)}`
  if (type !== BasicType.REC && type !== BasicType.ARRAY) return undefined
  if (depth === MAX_NESTING) return `nested deeper than ${MAX_NESTING}`
  return type === BasicType.REC ? fieldsProblem(content as unknown[], depth) : itemsProblem(content as Items, depth)
}

interface Items {
  readonly element: unknown
  readonly items: readonly unknown[]
}

function fieldsProblem(fields: readonly unknown[], depth: number): string | undefined {
  for (const field of fields) {
    const name = (field as { readonly name?: unknown } | null)?.name
    const problem = typeof name === 'string' ? (nameProblem(name) ?? valueProblem(field, depth + 1)) : 'no name'
    if (problem !== undefined) return `field ${String(name)}: ${problem}`
  }
  return undefined
}

function itemsProblem({ element, items }: Items, depth: number): string | undefined {
  for (const [index, item] of items.entries()) {
    const problem = valueProblem({ type: element, value: item }, depth + 1)
    if (problem !== undefined) return `item ${index}: ${problem}`
  }
  return checks[element as number] === undefined ? `no basic type has the number ${String(element)}` : undefined
}

function nameOf(type: unknown): string {
  return Object.entries(BasicType).find(([, number]) => number === type)?.[0] ?? String(type)
}

/** Its kind, and a number itself: a text may be a secret. */
function described(content: unknown): string {
  return typeof content === 'number' ? `the number ${content}` : content === null ? 'null' : `a ${typeof content}`
}

const labels: readonly string[] = labelNames
const parting: readonly string[] = partLabels

/** With these bounds, what a list says of one metric, control or sensor fits a frame many times. */
const MAX_PARAMETERS = 32
const MAX_COUNTERS = 100
const MAX_DETAILS_BYTES = 65_536
const TEXT = `text of at most ${MAX_DETAIL} characters`

/** Whether it can be shown in a list. */
export function isText(text: unknown): text is string {
  return typeof text === 'string' && text.length <= MAX_DETAIL
}

/** What is wrong with a metric of a family; undefined if nothing is. */
export function metricProblem(metric: Metric, family: string): string | undefined {
  const { name, kind, type, unit, description, parameters, isCounter, exposition, details } = Object(
    metric,
  ) as Partial<Metric>
  if (typeof name !== 'string' || !name.startsWith(family)) {
    return `the name of a metric has to begin with "${family}", unlike ${String(name)}`
  }
  const problem = nameProblem(name)
  if (problem !== undefined) return problem
  if (kind !== 'continuous' && kind !== 'event') return `${name}: \`kind\` is "continuous" or "event"`
  if (type !== undefined && checks[type] === undefined) return `${name}: no basic type has the number ${String(type)}`
  if (!isText(unit) || !isText(description)) return `${name}: each of \`unit\` and \`description\` is a ${TEXT}`
  if (isCounter !== undefined && typeof isCounter !== 'boolean') return `${name}: \`isCounter\` is true or false`
  if (exposition !== undefined) return `${name}: \`exposition\` is for metrics of the server itself`
  const more = parametersProblem(parameters)
  if (more !== undefined) return `${name}: ${more}`
  const selecting = (parameters as Metric['parameters']).filter(({ selects }) => selects !== undefined)
  const odd = selecting.find((one) => !labels.includes(one.name) || one.type !== BasicType.STRING)
  if (odd !== undefined)
    return `${name}: a parameter with \`selects\` is a STRING and has the name of a label, unlike ${odd.name}`
  const parts = selecting.filter(({ selects }) => selects === 'part')
  if (parts.length > 1) return `${name}: ${parts.length} parameters select a part; only one can`
  const noPart = parts.find((one) => !parting.includes(one.name))
  if (noPart !== undefined)
    return `${name}: a parameter that selects a part is ${parting.join(', ')}, not ${noPart.name}`
  const unsound = details === undefined ? undefined : detailsProblem(details())
  return unsound && `${name}: details: ${unsound}`
}

/** What is wrong with the parameters of a metric or control; undefined if nothing is. */
export function parametersProblem(parameters: unknown): string | undefined {
  if (!Array.isArray(parameters)) return '`parameters` is a list of parameters'
  if (parameters.length > MAX_PARAMETERS) return `${parameters.length} parameters; there may be ${MAX_PARAMETERS}`
  for (const one of parameters as readonly unknown[]) {
    const { name, type, description } = Object(one) as Partial<Metric['parameters'][number]>
    const problem = typeof name === 'string' ? nameProblem(name) : 'no name'
    if (problem !== undefined) return `a parameter has ${problem}`
    if (checks[type as number] === undefined) return `parameter ${name}: no basic type has the number ${String(type)}`
    if (!isText(description)) return `parameter ${name}: \`description\` is a ${TEXT}`
  }
  return undefined
}

function detailsProblem(details: unknown): string | undefined {
  const value = { type: BasicType.REC, value: details }
  const problem = valueProblem(value)
  if (problem !== undefined) return problem
  const writer = new XdrWriter()
  writeTyped(writer, value as Value)
  return writer.length > MAX_DETAILS_BYTES ? `${writer.length} bytes; there may be ${MAX_DETAILS_BYTES}` : undefined
}

/** What is wrong with the labels of a series; undefined if nothing is. `open`: whether any are taken. */
export function labelsProblem(labels: Labels, open = false): string | undefined {
  if (typeof labels !== 'object' || labels === null) return 'there are no labels'
  if (open) return openLabelsProblem(String(labels.name ?? ''), labels)
  for (const name of labelNames) {
    const text: unknown = labels[name]
    if (text === undefined || text === '') continue
    const problem = typeof text === 'string' ? nameProblem(text) : `a ${typeof text}`
    if (problem !== undefined) return `label ${name}: ${problem}`
  }
  return undefined
}

/** What is wrong with the status of a sensor; undefined if nothing is. */
export function statusProblem(status: SensorStatus): string | undefined {
  const { name, state, detail, counters } = Object(status) as Partial<SensorStatus>
  if (![name, state, detail].every(isText)) return `each of \`name\`, \`state\` and \`detail\` of a status is a ${TEXT}`
  const names = Object.keys(counters ?? {})
  if (names.length > MAX_COUNTERS) return `${names.length} counters; there may be ${MAX_COUNTERS}`
  for (const counter of names) {
    const problem = nameProblem(counter)
    if (problem !== undefined) return `a counter has ${problem}`
  }
  const counts: readonly unknown[] = Object.values(counters ?? {})
  const areCounts = counts.every((count) => Number.isSafeInteger(count) && Number(count) >= 0)
  return areCounts ? undefined : 'the counters of a status are whole numbers from 0 on'
}
