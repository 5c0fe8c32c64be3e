/**
 * The method `password` [MON 11]: one step with two XDR strings, identity and password.
 * It sends the password itself, so it is offered only where nobody can eavesdrop.
 */
import { AuthError } from '../errors.ts'
import { LoginAttempt, parseIdentityOrNone } from '../login-attempt.ts'
import type { Accounts, AuthPeer, AuthStep, Mechanism, MechanismExchange } from '../mechanism.ts'
import type { PasswordHasher } from '../password.ts'
import type { Throttle } from '../throttle.ts'
import { preparePassword } from '../verifiers.ts'

const MAX_STRING_BYTES = 1024

export interface PasswordMechanismOptions {
  readonly accounts: Pick<Accounts, 'find'>
  readonly hasher: Pick<PasswordHasher, 'verify'>
  readonly throttle: Throttle
  readonly plainOnLoopback: boolean
}

export class PasswordMechanism implements Mechanism {
  readonly method = 'password'
  readonly #options: PasswordMechanismOptions

  constructor(options: PasswordMechanismOptions) {
    this.#options = options
  }

  isOffered(peer: AuthPeer): boolean {
    return mayShowSecrets(peer, this.#options.plainOnLoopback)
  }

  begin(peer: AuthPeer): MechanismExchange {
    return { step: (data) => this.#step(peer, data) }
  }

  async #step(peer: AuthPeer, data: Uint8Array): Promise<AuthStep> {
    const strings = decodeTwoStrings(data)
    if (!strings) return { outcome: 'invalid', detail: 'password data is two XDR strings, identity and password' }
    const who = parseIdentityOrNone(strings[0])
    if (!who) return { outcome: 'failed' }
    const { accounts, hasher, throttle } = this.#options
    const guess = new LoginAttempt(who, peer, accounts, throttle)
    if (guess.isThrottled) return guess.throttled()
    const password = usable(strings[1])
    if (password === undefined) return guess.failed()
    const isRight = await guess.checkProof((waiter) => hasher.verify(password, guess.account?.bcrypt, waiter))
    return isRight ? guess.succeeded(this.method) : guess.failed()
  }
}

/** Whether the peer may send a password or token in clear: only where nobody can eavesdrop. */
export function mayShowSecrets(peer: AuthPeer, plainOnLoopback: boolean): boolean {
  return peer.encrypted || ((peer.loopback || peer.nodeLoopback === true) && plainOnLoopback)
}

/** The prepared password; undefined if it could never have been set. Skipping the hash then reveals nothing about the user. */
function usable(password: string): string | undefined {
  try {
    return preparePassword(password)
  } catch (error) {
    if (error instanceof AuthError) return undefined
    throw error
  }
}

/** Decodes exactly two strings (RFC 4506 4.11): length, bytes, and zeros up to a multiple of four. */
function decodeTwoStrings(data: Uint8Array): [string, string] | undefined {
  const first = takeString(data, 0)
  const second = first && takeString(data, first.end)
  return second?.end === data.length ? [first!.text, second.text] : undefined
}

function takeString(data: Uint8Array, at: number): { text: string; end: number } | undefined {
  if (data.length - at < 4) return undefined
  const length = new DataView(data.buffer, data.byteOffset).getUint32(at)
  const start = at + 4
  const end = start + length + (-length & 3)
  if (length > MAX_STRING_BYTES || end > data.length) return undefined
  if (data.subarray(start + length, end).some((byte) => byte !== 0)) return undefined
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return { text: decoder.decode(data.subarray(start, start + length)), end }
  } catch {
    return undefined
  }
}
