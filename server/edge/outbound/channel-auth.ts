/**
 * The login on a connection that the producer made [MON 14]: only the owner of the channel may log in, by SCRAM with the
 * secret of that channel. The peer never sees the owner's password, and cannot log in with it.
 */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Account } from '../../../auth/mechanism.ts'
import { AuthMethods } from '../../../auth/mechanism.ts'
import { ScramMechanism } from '../../../auth/mechanisms/scram-sha-256.ts'
import { MIN_ITERATIONS, type ScramVerifier } from '../../../auth/scram/keys.ts'
import { Throttle } from '../../../auth/throttle.ts'
import type { AuthProvider } from '../../kernel/sessions/incoming-connection.ts'

const SALT_BYTES = 16
const KEY_BYTES = 32

/** The verifier of a secret, which is stored instead of it. SCRAM takes the bytes of the secret as the password; they need not be text. */
export async function secretVerifier(secret: Uint8Array): Promise<ScramVerifier> {
  const salt = randomBytes(SALT_BYTES)
  // A copy, because the buffer that holds the secret is reused before this ends.
  const salted = await promisify(pbkdf2)(Uint8Array.from(secret), salt, MIN_ITERATIONS, KEY_BYTES, 'sha256')
  const key = (use: string): Uint8Array => new Uint8Array(createHmac('sha256', salted).update(use).digest())
  const storedKey = new Uint8Array(createHash('sha256').update(key('Client Key')).digest())
  return { salt: new Uint8Array(salt), iterations: MIN_ITERATIONS, storedKey, serverKey: key('Server Key') }
}

export interface ChannelAuthOptions {
  /** The owner as it is now; undefined if it was removed. */
  readonly owner: () => Account | undefined
  readonly verifier: ScramVerifier
  /** Answers logins under other names: see ScramMechanism. */
  readonly serverSecret: Uint8Array
  /** Monotonic, ms. */
  readonly now: () => number
}

/** Each channel has its own, so that guesses at one never throttle another. */
export function channelAuth({ owner, verifier, serverSecret, now }: ChannelAuthOptions): AuthProvider {
  const find = (tenant: string, name: string): Account | undefined => {
    const account = owner()
    if (account === undefined || account.tenant !== tenant || account.name !== name) return undefined
    return { ...account, bcrypt: undefined, scram: verifier, loopbackOnly: false }
  }
  const options = { accounts: { find }, throttle: new Throttle(now), serverSecret, iterations: verifier.iterations }
  return new AuthMethods([
    new ScramMechanism('scram-sha-256-plus', options),
    new ScramMechanism('scram-sha-256', options),
  ])
}

/** Lets nobody log in once the attempt was aborted, because the channel may belong to another connection by then. */
export function untilAborted(auth: AuthProvider, signal: AbortSignal): AuthProvider {
  return {
    methods: (peer) => auth.methods(peer),
    begin(peer) {
      const exchange = auth.begin(peer)
      return {
        async step(method, data) {
          const step = await exchange.step(method, data)
          return signal.aborted ? { outcome: 'failed' } : step
        },
      }
    },
  }
}
