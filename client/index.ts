/** The entry of the client library on Node: `import { connect } from 'cinnabar/client'`. */
import { sha256, webCrypto } from '../auth/scram/keys.ts'
import { encodeBase64 } from '../auth/scram/message.ts'
import { type Connect, connector } from './connect.ts'
import { dial } from './dial/dial.ts'
import { Calls, type ListenOptions } from './listen.ts'

export type { QualifiedName } from '../auth/identity.ts'
export { parseIdentity } from '../auth/prepare.ts'
export { valueToJson } from '../protocol/monitor/json-value.ts'
export type { Address, Calls, ListenOptions } from './listen.ts'
export * from './public.ts'

/**
 * Connects to `tcp://host:port`, `tls://host:port`, `ws://host:port/monitor` or `wss://`, and logs in. Rejects with ConnectionError.
 *
 *     const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password })
 *     await consumer.follow('host.load.one')
 *     for await (const sample of consumer) console.log(sample.name, sample.plain)
 */
export const connect: Connect = connector(dial)

/**
 * Accepts the connections of producers, for channels that were defined with a URL. Rejects with ConnectionError or RangeError.
 *
 *     const calls = await listen({ url: 'tls://0.0.0.0:7655', identity: 'alice', secret, tls: { cert, key } })
 *     for await (const consumer of calls) void handle(consumer)
 */
export async function listen(options: ListenOptions): Promise<Calls> {
  const { openInboundListener } = await import('./dial/accept.ts')
  return Calls.open(options, openInboundListener)
}

const TOKEN_PREFIX = 'cnb_'
const TOKEN_BYTES = 32

export interface Token {
  /** The token for the user who is to log in with it. It is as secret as a password. */
  readonly token: string
  /** What the control `token.add` takes: SHA-256 of the token's text as 64 hexadecimal digits. */
  readonly hash: string
}

/**
 * Makes an opaque token. It is made here so that the producer never sees it, and keeps only its hash [MON 11]. No producer
 * accepts it before that hash was added there.
 */
export async function newToken(): Promise<Token> {
  const random = webCrypto().getRandomValues(new Uint8Array(TOKEN_BYTES))
  const base64url = encodeBase64(random).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  const token = `${TOKEN_PREFIX}${base64url}`
  const digest = await sha256(new TextEncoder().encode(token))
  return { token, hash: [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') }
}
