/**
 * Whom a connection lets in that the producer made [MON 14]: nobody but the owner of its channel, by that channel's secret,
 * by SCRAM. So the owner's password is never shown to whoever answers there, and is worth nothing if it is.
 */
import { createHash, createHmac, pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Account } from '../../../auth/mechanism.ts'
import { AuthMethods } from '../../../auth/mechanism.ts'
import { ScramMechanism } from '../../../auth/mechanisms/scram-sha-256.ts'
import { MIN_ITERATIONS, type ScramVerifier } from '../../../auth/scram/keys.ts'
import { Throttle } from '../../../auth/throttle.ts'
import type { AuthProvider } from '../../sessions/incoming-connection.ts'

const SALT_BYTES = 16
const KEY_BYTES = 32

/** What is kept of a secret. Its bytes are what SCRAM calls the password, as they are: it need not be text. */
export async function secretVerifier(secret: Uint8Array): Promise<ScramVerifier> {
  const salt = randomBytes(SALT_BYTES)
  // A copy: what it lies in is used again before this is done.
  const salted = await promisify(pbkdf2)(Uint8Array.from(secret), salt, MIN_ITERATIONS, KEY_BYTES, 'sha256')
  const key = (use: string): Uint8Array => new Uint8Array(createHmac('sha256', salted).update(use).digest())
  const storedKey = new Uint8Array(createHash('sha256').update(key('Client Key')).digest())
  return { salt: new Uint8Array(salt), iterations: MIN_ITERATIONS, storedKey, serverKey: key('Server Key') }
}

export interface DoorOptions {
  /** The owner as it is now; undefined: removed. */
  readonly owner: () => Account | undefined
  readonly verifier: ScramVerifier
  /** For guesses at other names: see ScramMechanism. */
  readonly serverSecret: Uint8Array
  /** Monotonic, ms. */
  readonly now: () => number
}

/** One for each channel: guesses at one never throttle another. */
export function channelDoor({ owner, verifier, serverSecret, now }: DoorOptions): AuthProvider {
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

/** Nobody gets in any more by an attempt that was given up: the channel may be another's by now. */
export function whileWanted(door: AuthProvider, signal: AbortSignal): AuthProvider {
  return {
    methods: (peer) => door.methods(peer),
    begin(peer) {
      const exchange = door.begin(peer)
      return {
        async step(method, data) {
          const step = await exchange.step(method, data)
          return signal.aborted ? { outcome: 'failed' } : step
        },
      }
    },
  }
}
