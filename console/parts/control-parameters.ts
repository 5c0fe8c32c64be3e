/** The parameters of a control as `producer.controls` declares them, and the values that people type into their fields. */
import type { PlainRecord } from '../../client/browser.ts'
import type { Arguments } from '../query.ts'
import { formatCount } from '../units.ts'

export interface Parameter {
  readonly name: string
  readonly type: string
  readonly optional: boolean
  readonly description: string
  readonly secret: boolean
  readonly min: number | bigint | undefined
  readonly max: number | bigint | undefined
  /** Bytes. */
  readonly maxLength: number | undefined
  /** In the syntax of RE2: only the server can judge it, and in a browser it might take for ever. */
  readonly pattern: string | undefined
  /** The only texts; undefined if any text is taken. */
  readonly values: readonly string[] | undefined
  /** The value if it is left out; empty if there is none. */
  readonly byDefault: string
}

export interface Control {
  readonly name: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  /** The roles whose users may have to approve what whoever is signed in runs. */
  readonly approvers: readonly string[]
}

/** Texts that are offered for a parameter, and how another one can be given. */
export interface Offer {
  readonly texts: readonly string[]
  readonly others: 'typed' | 'on-request' | 'none'
}

/** What people have typed, by parameter; empty is left out. */
export type Texts = Readonly<Record<string, string>>

export function controlOf({ name, description, parameters, approval }: PlainRecord): Control {
  const list = Array.isArray(parameters) ? (parameters as readonly PlainRecord[]) : []
  const approvers = typeof approval === 'string' ? approval.split('\n') : []
  return { name: String(name), description: String(description), parameters: list.map(parameterOf), approvers }
}

function parameterOf(record: PlainRecord): Parameter {
  const { name, type, optional, description, secret, values, default: unless } = record
  const bound = (field: string): number | bigint | undefined => {
    const value = record[field]
    return typeof value === 'number' || typeof value === 'bigint' ? value : undefined
  }
  return {
    name: String(name),
    type: String(type),
    optional: optional === true,
    description: String(description ?? ''),
    secret: secret === true,
    min: bound('min'),
    max: bound('max'),
    maxLength: bound('max_length') as number | undefined,
    pattern: typeof record['pattern'] === 'string' ? record['pattern'] : undefined,
    values: typeof values === 'string' ? values.split('\n') : undefined,
    byDefault: unless === undefined ? '' : String(unless),
  }
}

export function isNumber({ type }: Parameter): boolean {
  return isInteger(type) || type === 'double'
}

function isInteger(type: string): boolean {
  return /^u?int(32|64)$/.test(type)
}

/** What the parameter takes, for people. */
export function boundsText(parameter: Parameter): string {
  const { type, optional, min, max, maxLength, pattern, values, byDefault } = parameter
  const number = (bound: number | bigint): string => (typeof bound === 'bigint' ? String(bound) : formatBound(bound))
  const parts = [
    type,
    min !== undefined && max !== undefined && `${number(min)} to ${number(max)}`,
    min !== undefined && max === undefined && `at least ${number(min)}`,
    min === undefined && max !== undefined && `at most ${number(max)}`,
    maxLength !== undefined && values === undefined && `at most ${formatCount(maxLength)} bytes`,
    pattern !== undefined && `matches ${pattern}`,
    type === 'opaque' && 'in base64',
    byDefault !== '' && `${byDefault} if left out`,
    optional && byDefault === '' && 'may be left out',
  ]
  return parts.filter(Boolean).join(', ')
}

function formatBound(bound: number): string {
  return Number.isInteger(bound) ? formatCount(bound) : String(bound)
}

/** Why the server would refuse a text, as far as a page can judge; empty if it can be sent. */
export function problemOf(parameter: Parameter, text: string): string {
  const { optional, type, min, max, maxLength } = parameter
  if (text === '') return optional ? '' : 'It may not be left out.'
  if (isInteger(type) && !/^-?[0-9]{1,20}$/.test(text)) return 'A whole number is needed.'
  if (type === 'double' && !Number.isFinite(Number(text))) return 'A number is needed.'
  if (isNumber(parameter)) {
    const number = numberOf(type, text)
    if (min !== undefined && number < min) return `At least ${min} is needed.`
    if (max !== undefined && number > max) return `At most ${max} is possible.`
    return type.startsWith('u') && number < 0 ? 'It may not be negative.' : ''
  }
  const bytes = type === 'opaque' ? bytesOf(text)?.length : new TextEncoder().encode(text).length
  if (bytes === undefined) return 'It is not base64.'
  if (maxLength !== undefined && bytes > maxLength) return `It has ${bytes} bytes; ${maxLength} are possible.`
  return ''
}

/** The arguments as a question shows them: what was left out is not among them, and no secret is shown. */
export function shownArguments(
  parameters: readonly Parameter[],
  texts: Texts,
): readonly (readonly [name: string, text: string])[] {
  return parameters.flatMap(({ name, secret }) => {
    const text = texts[name] ?? ''
    return text === '' ? [] : [[name, secret ? 'not shown' : text] as const]
  })
}

/** What was left empty is left out. */
export function argumentsOf(parameters: readonly Parameter[], texts: Texts): Arguments {
  const args: Record<string, string | number | boolean | bigint | Uint8Array> = {}
  for (const parameter of parameters) {
    const { name, type } = parameter
    const text = texts[name] ?? ''
    if (text === '') continue
    if (type === 'boolean') args[name] = text === 'true'
    else if (isNumber(parameter)) args[name] = numberOf(type, text)
    else args[name] = (type === 'opaque' ? bytesOf(text) : undefined) ?? text
  }
  return args as Arguments
}

function numberOf(type: string, text: string): number | bigint {
  return type.endsWith('64') ? BigInt(text) : Number(text)
}

/** Undefined if the text is not base64. */
function bytesOf(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0))
  } catch {
    return undefined
  }
}
