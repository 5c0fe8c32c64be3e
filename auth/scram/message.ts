/**
 * The grammar of SCRAM's four messages (RFC 5802 section 7), without state and without cryptography.
 * A parser returns undefined for text that does not follow the grammar. Base64 is accepted only in canonical form: otherwise
 * unused bits could be changed unnoticed.
 */
const PRINTABLE = String.raw`[!-+\--~]`
// The whole nonce is the client's part and the server's, so the client's part leaves room.
const CLIENT_NONCE = `${PRINTABLE}{1,128}`
const NONCE = `${PRINTABLE}{1,256}`
const BASE64 = '[A-Za-z0-9+/]+={0,2}'
// Optional extensions are ignored; `m` announces a mandatory one, and none is supported. RFC 5802 5.1
const EXTENSIONS = String.raw`(?:,(?!m=)[A-Za-z]=[^,\0]+)*`

// No authzid: acting for another user is not supported.
const CLIENT_FIRST = new RegExp(
  String.raw`^(([ny]|p=[A-Za-z0-9.-]{1,64}),,)(n=([^,\0]+),r=(${CLIENT_NONCE})${EXTENSIONS})$`,
)
const SERVER_FIRST = new RegExp(String.raw`^r=(${NONCE}),s=(${BASE64}),i=([1-9]\d{0,9})${EXTENSIONS}$`)
const CLIENT_FINAL = new RegExp(`^(c=(${BASE64}),r=(${NONCE})${EXTENSIONS}),p=(${BASE64})$`)
const SERVER_FINAL = new RegExp(`^(?:v=(${BASE64})|e=([A-Za-z0-9-]{1,64}))${EXTENSIONS}$`)

/** The only supported binding: 32 bytes that only the two ends of a TLS 1.3 connection know. RFC 9266 */
export const TLS_EXPORTER = 'p=tls-exporter'

/** Longer than any honest message: 129 characters of identity, escaped, and a nonce. */
export const MAX_MESSAGE_BYTES = 2048

export interface ClientFirst {
  readonly gs2Header: string
  /**
   * `n` if the client does not support channel binding, `y` if it does but the server seems not to offer it, `p=` and a name
   * if it uses that binding.
   */
  readonly binding: string
  readonly bare: string
  readonly username: string
  readonly nonce: string
}

export interface ServerFirst {
  readonly nonce: string
  readonly salt: Uint8Array
  readonly iterations: number
}

export interface ClientFinal {
  readonly channelBinding: Uint8Array
  readonly nonce: string
  readonly proof: Uint8Array
  /** The part that the proof signs: everything before `,p=`. */
  readonly withoutProof: string
}

export type ServerFinal = { readonly signature: Uint8Array } | { readonly error: string }

export function parseClientFirst(text: string): ClientFirst | undefined {
  const match = CLIENT_FIRST.exec(text)
  const username = match && unescapeName(match[4]!)
  if (!username) return undefined
  return { gs2Header: match[1]!, binding: match[2]!, bare: match[3]!, username, nonce: match[5]! }
}

export function parseServerFirst(text: string): ServerFirst | undefined {
  const match = SERVER_FIRST.exec(text)
  const salt = match && decodeBase64(match[2]!)
  if (!salt) return undefined
  return { nonce: match[1]!, salt, iterations: Number(match[3]) }
}

export function parseClientFinal(text: string): ClientFinal | undefined {
  const match = CLIENT_FINAL.exec(text)
  const channelBinding = match && decodeBase64(match[2]!)
  const proof = match && decodeBase64(match[4]!)
  if (!channelBinding || !proof) return undefined
  return { channelBinding, nonce: match[3]!, proof, withoutProof: match[1]! }
}

export function parseServerFinal(text: string): ServerFinal | undefined {
  const match = SERVER_FINAL.exec(text)
  if (!match) return undefined
  if (match[2] !== undefined) return { error: match[2] }
  const signature = decodeBase64(match[1]!)
  return signature && { signature }
}

/** The content of `c=`: the header of the client-first-message, then the channel-binding data. RFC 5802 5.1 */
export function channelBindingOf(gs2Header: string, exporter: Uint8Array | undefined): Uint8Array {
  return new Uint8Array([...new TextEncoder().encode(gs2Header), ...(exporter ?? [])])
}

/** A name in the form of `n=`: '=' and ',' are written =3D and =2C. */
export function escapeName(name: string): string {
  return name.replaceAll('=', '=3D').replaceAll(',', '=2C')
}

function unescapeName(text: string): string | undefined {
  if (/=(?!2C|3D)/.test(text)) return undefined
  return text.replaceAll('=2C', ',').replaceAll('=3D', '=')
}

export function encodeBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

function decodeBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0) return undefined
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  return encodeBase64(bytes) === text ? bytes : undefined
}

/** The text of a message; undefined if it is too long or not UTF-8. */
export function decodeMessage(bytes: Uint8Array): string | undefined {
  if (bytes.length > MAX_MESSAGE_BYTES) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}
