/**
 * One attempt of a peer to log in. Only this file decides whether an account exists for the peer, whether the attempt is
 * throttled, and whether a proof still counts when it arrives.
 */
import { AuthError } from './errors.ts'
import { formatIdentity, type QualifiedName, splitIdentity } from './identity.ts'
import type { Account, Accounts, AuthPeer, AuthStep, Failed } from './mechanism.ts'
import { isLoopback, networkSite } from './network.ts'
import type { PasswordWaiter } from './password.ts'
import { parseIdentity } from './prepare.ts'
import { equalBytes, type ScramVerifier } from './scram/keys.ts'
import type { Throttle } from './throttle.ts'

export class LoginAttempt {
  /** The canonical form of the identity. */
  readonly identity: string
  readonly account: Account | undefined
  readonly #who: QualifiedName
  readonly #peer: AuthPeer
  readonly #accounts: Pick<Accounts, 'find'>
  readonly #throttle: Throttle

  constructor(who: QualifiedName, peer: AuthPeer, accounts: Pick<Accounts, 'find'>, throttle: Throttle) {
    this.identity = formatIdentity(who)
    this.#who = who
    this.#peer = peer
    this.#accounts = accounts
    this.#throttle = throttle
    this.account = this.#find()
  }

  /** A throttled attempt is answered with `throttled()` unchecked and is not counted. */
  get isThrottled(): boolean {
    return this.#waitMs > 0
  }

  throttled(): Failed {
    return { outcome: 'failed', identity: this.identity, waitMs: this.#waitMs }
  }

  /** The proof was wrong. If concurrent attempts have exceeded the limit, the answer is the one that a right proof gets. */
  failed(): Failed {
    if (this.isThrottled) return this.throttled()
    if (this.#isGuess) this.#throttle.failed(this.identity, this.#peer.address)
    return { outcome: 'failed', identity: this.identity }
  }

  /**
   * The secret of the command line's own user is made at random, too long to be guessed. A wrong one is that of another server, and
   * whoever has looked for it in the wrong directory is not to be locked out.
   */
  get #isGuess(): boolean {
    return this.account?.loopbackOnly !== true
  }

  get #waitMs(): number {
    return this.#throttle.waitMs(this.identity, this.#peer.address)
  }

  /** Runs an asynchronous check of the proof. Rejects as `check` does, and with AuthError HASHER_BUSY. */
  async checkProof(check: (waiter: PasswordWaiter) => Promise<boolean>): Promise<boolean> {
    const { address, isGone = () => false } = this.#peer
    const done = this.#throttle.begin(this.identity, address)
    if (!done)
      throw new AuthError('HASHER_BUSY', 'too many attempts at one password are being checked: try again later')
    const isKnown = this.#throttle.isKnown(this.identity, address)
    try {
      return await check({ lane: isKnown ? this.identity : networkSite(address), isKnown, isGone })
    } finally {
      done()
    }
  }

  /**
   * The proof was right when the attempt began. If concurrent attempts have exceeded the limit since then, the result is not
   * reported. The account must still exist, with the same password.
   */
  succeeded(method: string): AuthStep {
    if (this.isThrottled) return this.throttled()
    const account = this.#find()
    if (!account || !this.account || !hasSameSecrets(account, this.account)) return this.failed()
    this.#throttle.succeeded(this.identity, this.#peer.address)
    return { outcome: 'ok', account, credential: { method } }
  }

  #find(): Account | undefined {
    const account = this.#accounts.find(this.#who.tenant, this.#who.name)
    const isLocal = this.#peer.loopback && isLoopback(this.#peer.address)
    return account?.loopbackOnly && !isLocal ? undefined : account
  }
}

/** Parses an identity; undefined if `text` is not one. */
export function parseIdentityOrNone(text: string): QualifiedName | undefined {
  try {
    return parseIdentity(text)
  } catch (error) {
    if (error instanceof AuthError) return undefined
    throw error
  }
}

/**
 * Parses a name that an issuer vouches for; undefined unless it is in canonical form: two names with the same canonical form
 * may be two people for the issuer.
 */
export function parseExactIdentity(text: string): QualifiedName | undefined {
  const who = parseIdentityOrNone(text)
  if (!who) return undefined
  const { tenant, name } = splitIdentity(text)
  return tenant === who.tenant && name === who.name ? who : undefined
}

function hasSameSecrets(now: Account, then: Account): boolean {
  return now.id === then.id && now.bcrypt === then.bcrypt && isSameVerifier(now.scram, then.scram)
}

function isSameVerifier(now: ScramVerifier | undefined, then: ScramVerifier | undefined): boolean {
  return now && then ? equalBytes(now.storedKey, then.storedKey) : now === then
}
