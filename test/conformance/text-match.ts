/**
 * JSON as scripts that are `only: json` write it: "$name" stands for what was captured, "$name:" keeps what stands there,
 * "$_" is anything; a key "$rest" lets an object have other keys.
 */
import { Mismatch } from './match.ts'

export type Kept = ReadonlyMap<string, unknown>

/** Text to be sent: every "$name" replaced. Text that is no JSON is sent as it stands. */
export function fillText(text: string, kept: Kept): string {
  return text.replaceAll(/"\$([A-Za-z][\w-]*)"/g, (_, name: string) => JSON.stringify(keptAs(name, kept)))
}

/** What `pattern` keeps of a message. Throws Mismatch. */
export function matchText(pattern: unknown, json: unknown, kept: Kept): Map<string, unknown> {
  const taken = new Map<string, unknown>()
  if (typeOf(pattern) !== typeOf(json)) throw new Mismatch(`"type" is ${typeOf(json)}, not ${typeOf(pattern)}`, 0)
  compare(pattern, json, { kept, taken, path: 'the message' })
  return taken
}

interface Place {
  readonly kept: Kept
  readonly taken: Map<string, unknown>
  readonly path: string
}

function compare(pattern: unknown, json: unknown, place: Place): void {
  if (pattern === '$_') return
  if (typeof pattern === 'string' && pattern.startsWith('$')) {
    if (pattern.endsWith(':')) place.taken.set(pattern.slice(1, -1), json)
    else if (json !== keptAs(pattern.slice(1), place.kept)) throw wrong(pattern, json, place)
  } else if (Array.isArray(pattern)) {
    if (!Array.isArray(json) || json.length !== pattern.length) throw wrong(pattern, json, place)
    for (const [index, item] of pattern.entries())
      compare(item, json[index], { ...place, path: `${place.path}[${index}]` })
  } else if (typeof pattern === 'object' && pattern !== null) {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) throw wrong(pattern, json, place)
    const { $rest: rest, ...keys } = pattern as Record<string, unknown>
    const object = json as Record<string, unknown>
    for (const [key, value] of Object.entries(keys)) {
      if (!Object.hasOwn(object, key)) throw new Mismatch(`${place.path} has no key "${key}"`)
      compare(value, object[key], { ...place, path: `${place.path}.${key}` })
    }
    const other = Object.keys(object).find((key) => !Object.hasOwn(keys, key))
    if (other !== undefined && rest === undefined) throw new Mismatch(`${place.path} has a key "${other}" too many`)
  } else if (!Object.is(pattern, json)) throw wrong(pattern, json, place)
}

function wrong(pattern: unknown, json: unknown, { path }: Place): Mismatch {
  return new Mismatch(`${path} is ${JSON.stringify(json)}, not ${JSON.stringify(pattern)}`)
}

function keptAs(name: string, kept: Kept): unknown {
  if (!kept.has(name)) throw new Error(`"$${name}" holds nothing yet`)
  return kept.get(name)
}

function typeOf(json: unknown): unknown {
  return typeof json === 'object' && json !== null && 'type' in json ? json.type : undefined
}
