/**
 * What the value of a key can be. A value type is a zod type together with the words that tell a person what is expected;
 * zod's own messages are never shown. Integers arrive as bigint, so that the float `5.0` is not mistaken for one.
 */
import { isIPv4 } from 'node:net'
import { z } from 'zod'
import { isHostName, parseAddress, parseNetwork, parsePeer } from '../core/address.ts'
import { parseDestinationPattern } from './destination.ts'
import { parseDuration } from './duration.ts'

export interface KeyType<T extends z.ZodType> {
  readonly type: T
  readonly expected: string
  /** Whether a value may hold a secret: then no message repeats it. */
  readonly isSecret?: boolean
}

export interface KeyDocs {
  readonly byDefault: unknown
  /** The default as documentation shows it. */
  readonly shown: string
  readonly expected: string
  readonly about: string
  readonly isSecret: boolean
  /** Whether it is a path, which starts at the directory of the file if it is relative. */
  readonly isPath: boolean
  /** Whether a reload puts a new value in force; a restart puts all of them in force. */
  readonly isLive: boolean
}

/** The types of keys whose values are paths. */
export const pathTypes = z.registry()

/** The documentation of each key, found by the key's zod type. */
export const docs = z.registry<KeyDocs>()

function document(type: z.ZodType, of: KeyType<z.ZodType>, about: string, byDefault: unknown, shown: string): void {
  const { expected, isSecret = false } = of
  docs.add(type, { byDefault, shown, expected, about, isSecret, isPath: pathTypes.has(of.type), isLive: false })
}

/** A key with its value type, its default as it would stand in the file, and one sentence of documentation. */
export function key<T extends z.ZodType>(of: KeyType<T>, byDefault: z.input<T>, about: string, shown?: string) {
  const type = z.prefault(of.type, byDefault)
  document(type, of, about, byDefault, shown ?? `\`${toml(byDefault)}\``)
  return type
}

/** The same for a key whose new value a reload puts in force. */
export function liveKey<T extends z.ZodType>(of: KeyType<T>, byDefault: z.input<T>, about: string, shown?: string) {
  const type = key(of, byDefault, about, shown)
  docs.add(type, { ...(docs.get(type) as KeyDocs), isLive: true })
  return type
}

/**
 * A live key whose default depends on other sections: if it is left out it is undefined until whoever knows these fills it in.
 * `usually`: what it is then in most configurations.
 */
export function dependentKey<T extends z.ZodType>(of: KeyType<T>, usually: z.input<T>, about: string, shown: string) {
  const type = of.type.optional()
  document(type, of, about, usually, shown)
  docs.add(type, { ...(docs.get(type) as KeyDocs), isLive: true })
  return type
}

/** A key of a table that has no default: it has to be there. */
export function needed<T extends z.ZodType>(of: KeyType<T>, about: string): T {
  document(of.type, of, about, undefined, 'needed')
  return of.type
}

/** A key that may be left out, and then is not there. */
export function optional<T extends z.ZodType>(of: KeyType<T>, about: string) {
  const type = of.type.optional()
  document(type, of, about, undefined, 'none')
  return type
}

export function toggle() {
  return { type: z.boolean(), expected: 'true or false' }
}

export function integer(min: number, max: number) {
  const type = z.bigint().min(BigInt(min)).max(BigInt(max)).transform(Number)
  return { type, expected: `an integer from ${min} to ${max}` }
}

/** A number of bytes, or a share of something that has a size. */
export type BytesOrShare = number | { readonly share: number }

export function bytesOrShare(max: number) {
  const share = z.string().regex(/^([1-9]\d?|100)%$/)
  // A variable of the environment is a text, also where it means an integer.
  const digits = z.string().regex(/^\d{1,15}$/)
  return {
    type: z.union([
      integer(0, max).type,
      share.transform((text): BytesOrShare => ({ share: Number.parseInt(text, 10) / 100 })),
      digits.transform(Number).refine((bytes) => bytes <= max),
    ]),
    expected: `an integer from 0 to ${max}, or a share from "1%" to "100%"`,
  }
}

const BYTE_UNITS = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 } as const

function parseByteSize(text: string): number | undefined {
  const match = /^(\d{1,15})(KiB|MiB|GiB|TiB|)$/.exec(text)
  return match === null ? undefined : Number(match[1]) * BYTE_UNITS[match[2] as keyof typeof BYTE_UNITS]
}

/** A number of bytes, or a text with a unit. */
export function byteSize(min: number, max: number) {
  const text = decoded(parseByteSize).refine((bytes) => bytes >= min && bytes <= max)
  return {
    type: z.union([integer(min, max).type, text]),
    expected: `an integer from ${min} to ${max}, or a whole number and KiB, MiB, GiB or TiB, like "4GiB"`,
  }
}

/** The bytes that a limit allows of something of `whole` bytes. */
export function inBytes(limit: BytesOrShare, whole: number): number {
  return typeof limit === 'number' ? limit : Math.floor(limit.share * whole)
}

export function oneOf<const T extends readonly string[]>(...words: T) {
  return { type: z.enum(words), expected: `one of ${words.map((word) => JSON.stringify(word)).join(', ')}` }
}

export function path() {
  const type = z.string().regex(/^[^\0]+$/)
  pathTypes.add(type)
  return { type, expected: 'a path, not empty' }
}

/** undefined if it is empty. */
export function pathOrOff() {
  const type = z
    .string()
    .regex(/^[^\0]*$/)
    .transform(orOff)
  pathTypes.add(type)
  return { type, expected: 'a path, or "" for none' }
}

const orOff = (text: string): string | undefined => text || undefined

/** A text that is not empty. */
export function filledText() {
  return { type: z.string().regex(/^\P{Cc}+$/u), expected: 'a text without control characters, not empty' }
}

export function plainText() {
  return { type: z.string().regex(/^\P{Cc}*$/u), expected: 'a text without control characters' }
}

/** A name on the wire: 1 to 255 bytes of UTF-8, nothing below 0x20 [MON 1]. */
export function wireName() {
  const type = z.string().refine((text) => {
    const bytes = new TextEncoder().encode(text)
    return bytes.length >= 1 && bytes.length <= 255 && bytes.every((byte) => byte >= 0x20)
  })
  return { type, expected: 'a name of 1 to 255 bytes without control characters' }
}

/** The part of an identity before the slash [MON 11]. */
export function tenant() {
  return {
    type: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
    expected: 'a tenant: 1 to 64 letters, digits, ".", "_" or "-", the first a letter or digit',
  }
}

export const ALL_TENANTS = '*'

export function tenantOrAll() {
  const { type, expected } = tenant()
  return { type: z.union([z.literal(ALL_TENANTS), type]), expected: `${expected}; or "${ALL_TENANTS}" for all` }
}

/** Milliseconds, from a duration between `min` and `max`, both written as durations. */
export function duration(min: string, max: string) {
  const type = decoded(parseDuration).refine((ms) => ms >= (parseDuration(min) ?? 0) && ms <= (parseDuration(max) ?? 0))
  return { type, expected: `a duration from ${min} to ${max}: a whole number and ms, s, m, h or d, like "30s"` }
}

/** An address to listen on; undefined if it is empty. */
export function addressOrOff() {
  return {
    type: z.union([z.literal('').transform(() => undefined), decoded(parseAddress)]),
    expected: 'an address like "127.0.0.1:7650", "[::1]:7650" or "name:7650", or "" for off',
  }
}

/** An address of this machine; undefined if it is empty. */
export function ipv4OrOff() {
  return { type: textOrOff(isIPv4), expected: 'an IPv4 address, or "" for none' }
}

export function multicastOrOff() {
  return {
    type: textOrOff((text) => isIPv4(text) && /^2(2[4-9]|3\d)[.]/.test(text)),
    expected: 'an IPv4 multicast address like "239.2.11.71", or "" for off',
  }
}

export function networks() {
  return { type: z.array(decoded(parseNetwork)), expected: 'a list of networks like ["10.0.0.0/8", "::1/128"]' }
}

/** Tables that give peers a name: `[[section.key]]` with `name` and `address`. */
export function peers() {
  const table = z.strictObject({ name: wireName().type, address: decoded(parsePeer) })
  return {
    type: z
      .array(table.transform(({ name, address }) => ({ name, ...address })))
      .refine((list) => new Set(list.map(({ address, port }) => `${address} ${port}`)).size === list.length),
    expected:
      'tables with a `name` and an `address` each (an IP address, or "IPv4:port", or "[IPv6]:port"), no address twice',
  }
}

/** A table that gives sources to a tenant: `[[section.feed]]` with `tenant` and `allow`, and what the section adds. */
export function feed() {
  return z.strictObject({ tenant: tenant().type, allow: networks().type })
}

/** Such tables; `more`: what the section has added to them, in words. */
export function feeds<T extends z.ZodType<z.output<ReturnType<typeof feed>>>>(table: T, more = '') {
  return {
    type: z
      .array(table)
      .refine((list) => new Set(list.map((feed) => feed.tenant)).size === list.length)
      .refine((list) => list.every(({ allow }) => allow.length > 0)),
    expected: `tables with a \`tenant\` and an \`allow\` each (networks like ["10.1.0.0/16"])${more}, no tenant twice`,
  }
}

/** Patterns of destinations, as they stand in the file. */
export function destinations() {
  return {
    type: z.array(z.string().refine((text) => parseDestinationPattern(text) !== undefined)),
    expected:
      'a list of destinations like ["tls://*.example.org:7650", "tcp://10.0.0.0/8:*", "gmetric://[::1]:8649"], ' +
      'with tcp, tls, ws, wss, gmetric, smtp or smtps, or prometheus, otlp, webhook, alertmanager, ntfy, json or heartbeat with +http or +https',
  }
}

export function origins() {
  return {
    // Browsers leave the port out where it is the scheme's own: an origin that does not come back unchanged never matches.
    type: z.array(z.string().refine((text) => URL.canParse(text) && new URL(text).origin === text)),
    expected:
      'a list of origins as browsers send them, like ["https://monitor.example:8443"]: no path, no default port',
  }
}

export function hostNames() {
  return {
    type: z.array(
      z
        .string()
        .refine(isHostName)
        .transform((name) => name.toLowerCase()),
    ),
    expected: 'a list of host names like ["monitor.example"], without ports',
  }
}

/** undefined if it is empty. */
export function hostNameOrOff() {
  return { type: textOrOff(isHostName), expected: 'a host name like "node.example", or "" for none' }
}

/** A value as it would stand in the file. */
export function toml(value: unknown): string {
  return Array.isArray(value)
    ? `[${value.map(toml).join(', ')}]`
    : typeof value === 'string'
      ? JSON.stringify(value)
      : `${value}`
}

/** A value of the file in words: what was found where something else was expected. */
export function described(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Date) return 'a date'
  if (isTomlTable(value)) return 'a table'
  if (typeof value === 'number') return `the float ${Number.isInteger(value) ? value.toFixed(1) : value}`
  const text = toml(value)
  return text.length <= 80 ? text : `${text.slice(0, 80)}...`
}

export function isTomlTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

function textOrOff(isValid: (text: string) => boolean) {
  return z
    .string()
    .refine((text) => text === '' || isValid(text))
    .transform(orOff)
}

export function decoded<T>(decode: (text: string) => T | undefined) {
  return z.string().transform((text, context): T => {
    const value = decode(text)
    if (value !== undefined) return value
    context.issues.push({ code: 'invalid_format', format: 'text', input: text })
    return z.NEVER
  })
}
