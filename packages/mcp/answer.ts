/** From an answer of the server to one for an agent: JSON, and no longer than it may be. */
import { type Arguments, type Consumer, type Plain, StatusError, valueToJson } from '../../client/index.ts'
import { type ToolAnswer, UNTRUSTED } from './tool.ts'

export type JsonObject = Readonly<Record<string, unknown>>

const MICROSECONDS = 1_000
const textBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? 'null')

/** Microseconds since 1970 as people and agents read them; undefined for 0, which stands for no time. */
export function isoTime(microseconds: number): string | undefined {
  const ms = microseconds / MICROSECONDS
  return microseconds === 0 || !(Math.abs(ms) <= 8.64e15) ? undefined : new Date(ms).toISOString()
}

/** A value as JSON has it: bytes are base64, and numbers that JSON does not have, or not exactly, are texts. */
export function plainToJson(plain: Plain): unknown {
  if (typeof plain === 'bigint') return String(plain)
  if (typeof plain === 'number') return Number.isFinite(plain) ? plain : String(plain)
  if (plain instanceof Uint8Array) return Buffer.from(plain).toString('base64')
  if (Array.isArray(plain)) return plain.map(plainToJson)
  if (typeof plain !== 'object' || plain === null) return plain
  return Object.fromEntries(Object.entries(plain).map(([name, member]) => [name, plainToJson(member)]))
}

export interface ListAnswer {
  readonly records: readonly JsonObject[]
  /** Whether there are more than `limit`. */
  readonly isMore: boolean
  /** How the server says where to go on; undefined where `next` does. */
  readonly after: string | undefined
  /** When it was answered, by the clock of the server: microseconds since 1970. */
  readonly time: number
}

/**
 * Asks for a list of records, page by page, until there are so many. `next` says what to ask for after a record; without it the last
 * page says so itself. Rejects as `query` of the client.
 */
export async function listOf(
  consumer: Pick<Consumer, 'query'>,
  metric: string,
  args: Arguments,
  { limit, next, signal }: { limit: number; next?: (last: JsonObject) => Arguments; signal: AbortSignal },
): Promise<ListAnswer> {
  const records: JsonObject[] = []
  for (let from: Arguments = {}; ; ) {
    const { value, time } = await consumer.query(metric, { ...args, ...from }, { signal })
    const page = valueToJson(value)
    if (!Array.isArray(page)) throw new TypeError(`${metric}: the server did not answer in time; try again`)
    const isCut = page.at(-1)?.more === true
    const after: unknown = isCut ? page.pop().after : undefined
    records.push(...page)
    const last = records.at(-1)
    const isMore = isCut && last !== undefined
    if (!isMore || records.length >= limit) {
      const kept = records.slice(0, limit)
      const isExact = records.length <= limit && typeof after === 'string'
      return { records: kept, isMore: isMore || records.length > limit, after: isExact ? after : undefined, time }
    }
    from = typeof after === 'string' ? { after } : (next?.(last) ?? {})
    if (Object.keys(from).length === 0) return { records, isMore, after: undefined, time }
  }
}

/** What the identity may not read is left out. */
export async function ifReadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof StatusError && ['NO_SUCH_METRIC', 'PERMISSION_DENIED'].includes(String(error.status))) {
      return undefined
    }
    throw error
  }
}

/** An answer of at most so many bytes of JSON: rows are left out from the end, and then long texts are cut; both is said. */
export function fittedAnswer({ facts, rows, next }: ToolAnswer, list: string, maxBytes: number): JsonObject {
  const whole = { untrusted: UNTRUSTED, ...facts, [list]: rows, ...(next !== undefined && { next }) }
  if (textBytes(whole) <= maxBytes) return whole
  const { value: shortFacts, cutTexts } = withinBytes(facts, maxBytes / 2)
  const about = (kept: number): string => {
    const parts = [
      ...(kept < rows.length ? [`${list}: the first ${kept} of ${rows.length} are here`] : []),
      ...(cutTexts > 0 ? [`${cutTexts} long ${cutTexts === 1 ? 'text is' : 'texts are'} cut, marked with …`] : []),
    ]
    return `${parts.join('; ')}: an answer has at most ${maxBytes} bytes. Ask for less, or for something narrower.`
  }
  const frame = { untrusted: UNTRUSTED, ...shortFacts, [list]: [], cut: about(rows.length - 1) }
  let left = maxBytes - textBytes(frame)
  const kept: JsonObject[] = []
  for (const row of rows) {
    left -= textBytes(row) + 1
    if (left < 0) break
    kept.push(row)
  }
  return { untrusted: UNTRUSTED, ...shortFacts, [list]: kept, cut: about(kept.length) }
}

/** Cuts the texts of a value, the longest first, until it fits. */
function withinBytes(value: JsonObject, maxBytes: number): { value: JsonObject; cutTexts: number } {
  let longest = maxBytes
  for (;;) {
    let cutTexts = 0
    const shorter = (part: unknown): unknown => {
      if (typeof part === 'string') {
        if (part.length <= longest) return part
        cutTexts++
        return `${part.slice(0, longest)}…`
      }
      if (Array.isArray(part)) return part.map(shorter)
      if (typeof part !== 'object' || part === null) return part
      return Object.fromEntries(Object.entries(part).map(([name, member]) => [name, shorter(member)]))
    }
    const short = shorter(value) as JsonObject
    if (textBytes(short) <= maxBytes || longest < 1) return { value: short, cutTexts }
    longest = Math.floor(longest / 2)
  }
}
