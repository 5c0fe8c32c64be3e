/**
 * Signatures of Standard Webhooks 1.0.0 (https://www.standardwebhooks.com): HMAC-SHA256 of `id.timestamp.body`. Each attempt has a
 * time of its own, so that a request cannot be replayed later; the id stays the same, so that a receiver knows what it has.
 */
import { fromBase64, toBase64 } from '../bytes/base64.ts'

const PREFIX = 'whsec_'
const MIN_SECRET_BYTES = 24
const MAX_SECRET_BYTES = 64
const HMAC = { name: 'HMAC', hash: 'SHA-256' } as const

/** One attempt to deliver. Neither `id` nor `timestampS` has a full stop in it. */
export interface WebhookAttempt {
  readonly id: string
  /** Seconds since 1970. */
  readonly timestampS: number
  readonly body: Uint8Array
}

/** The key in a secret as people have it: `whsec_` and base64 of 24 to 64 bytes. undefined if it is none. */
export function webhookKey(secret: string): Uint8Array | undefined {
  if (!secret.startsWith(PREFIX)) return undefined
  const key = fromBase64(secret.slice(PREFIX.length))
  return key !== undefined && key.length >= MIN_SECRET_BYTES && key.length <= MAX_SECRET_BYTES ? key : undefined
}

/** The headers of an attempt, with one signature by each key: while a secret is being replaced, receivers know one of two. */
export async function webhookHeaders(
  attempt: WebhookAttempt,
  keys: readonly Uint8Array[],
): Promise<Record<string, string>> {
  const { id, timestampS } = attempt
  const signatures = await Promise.all(keys.map((key) => signature(attempt, key)))
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  }
}

async function signature({ id, timestampS, body }: WebhookAttempt, key: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto
  const head = new TextEncoder().encode(`${id}.${timestampS}.`)
  const signed = new Uint8Array(head.length + body.length)
  signed.set(head)
  signed.set(body, head.length)
  const imported = await subtle.importKey('raw', new Uint8Array(key), HMAC, false, ['sign'])
  return `v1,${toBase64(new Uint8Array(await subtle.sign('HMAC', imported, signed)))}`
}
