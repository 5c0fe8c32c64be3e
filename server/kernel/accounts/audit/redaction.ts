/**
 * Arguments as the audit log keeps them: JSON without secrets and of bounded length, so that large arguments cannot fill the
 * log. Secrets are recognised by their names at every level.
 */

const SECRETS: ReadonlySet<string> = new Set(['password', 'secret', 'hash', 'token', 'data'])
const REDACTED = '***'
/** The limits for a single text and for all arguments together, in UTF-16 units. */
const MAX_TEXT = 1024
const MAX_ARGS = 4096
const MAX_DEPTH = 8

/** The arguments as JSON, in their order. Text that is too long is cut, and the cut is noted. */
export function argsText(args: Readonly<Record<string, unknown>>): string {
  const members: string[] = []
  let length = 0
  const entries = Object.entries(args)
  for (const [index, [name, value]] of entries.entries()) {
    const member = `${JSON.stringify(cut(name, MAX_TEXT))}:${JSON.stringify(plain(name, value, 0))}`
    length += member.length + 1
    if (length > MAX_ARGS) {
      members.push(`"...":"${entries.length - index} more, left out"`)
      break
    }
    members.push(member)
  }
  return `{${members.join()}}`
}

/** Cuts a text to `most` UTF-16 units and notes the cut. The result is well-formed, because its stored UTF-8 is hashed. */
export function cut(text: string, most: number = MAX_TEXT): string {
  const whole = text.toWellFormed()
  return whole.length <= most ? whole : `${whole.slice(0, most).toWellFormed()}... (${whole.length - most} more, cut)`
}

function plain(name: string, value: unknown, depth: number): unknown {
  if (SECRETS.has(name.toLowerCase())) return REDACTED
  if (typeof value === 'string') return cut(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null) return value ?? null
  if (depth >= MAX_DEPTH) return '...'
  if (value instanceof Uint8Array) return cut(Buffer.from(value.subarray(0, MAX_TEXT + 1)).toString('base64'))
  if (Array.isArray(value)) return value.map((item) => plain('', item, depth + 1))
  const entries = Object.entries(value)
  // In a field of a REC, the name says whether the value is a secret.
  const field = entries.find(([key, text]) => key === 'name' && typeof text === 'string')?.[1]
  return Object.fromEntries(
    entries.map(([key, item]) => [
      key,
      plain(key === 'value' && typeof field === 'string' ? field : key, item, depth + 1),
    ]),
  )
}
