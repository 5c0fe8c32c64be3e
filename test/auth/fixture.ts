/** Two accounts, clocks that stand still, and a hasher that needs no thread: `hash of x` is the hash of x. */
import { createHash } from 'node:crypto'
import { Authenticator, type AuthenticatorOptions } from '../../auth/authenticator.ts'
import type { Account, AuthExchange, AuthPeer, AuthStep, PeerCertificate } from '../../auth/mechanism.ts'
import type { OpaqueToken } from '../../auth/mechanisms/token.ts'
import { ScramClient } from '../../auth/scram/client.ts'
import { Throttle } from '../../auth/throttle.ts'
import { makeSecretVerifier } from '../../auth/verifiers.ts'

/** The wall clock at the beginning, milliseconds since 1970. */
export const BEGIN = Date.UTC(2026, 0, 1)

export const LOCAL: AuthPeer = { address: '127.0.0.1', loopback: true, encrypted: false }
export const REMOTE: AuthPeer = { address: '192.0.2.1', loopback: false, encrypted: false }
export const SECURE: AuthPeer = { address: '192.0.2.1', loopback: false, encrypted: true }
/** TLS 1.3. */
export const BOUND: AuthPeer = { ...SECURE, exporter: new Uint8Array(32).map((_, i) => i) }

export function certificateOf(subject: string, validUntil = BEGIN + 1000): PeerCertificate {
  return { subject, serial: '0A', fingerprint: 'AB:CD', raw: new Uint8Array(8), validUntil }
}

const scram = { alice: await makeSecretVerifier('wonderland'), local: await makeSecretVerifier('machine') }

const ALICE: Account = {
  id: 1,
  tenant: 'acme',
  name: 'alice',
  role: 'reader',
  bcrypt: 'hash of wonderland',
  scram: scram.alice,
  loopbackOnly: false,
  created: 0,
}
const LOCAL_USER: Account = {
  id: 2,
  tenant: 'default',
  name: 'local',
  role: 'admin',
  bcrypt: undefined,
  scram: scram.local,
  loopbackOnly: true,
  created: 0,
}

export class Fixture {
  /** Milliseconds since the beginning. */
  now = 0
  accounts: Account[] = [ALICE, LOCAL_USER]
  /** By the token's text. */
  readonly tokens = new Map<string, OpaqueToken>()
  /** What the hasher was asked to compare. */
  readonly compared: [string, string | undefined][] = []
  /** Runs while a comparison is under way. */
  duringVerify: () => void = () => undefined
  readonly authenticator: Authenticator

  constructor(
    options: Partial<Pick<AuthenticatorOptions, 'plainOnLoopback' | 'tokens' | 'jwt' | 'certificates'>> = {},
  ) {
    this.authenticator = new Authenticator({
      accounts: {
        find: (tenant, name) => this.accounts.find((each) => each.tenant === tenant && each.name === name),
        byId: (id) => this.accounts.find((each) => each.id === id),
      },
      hasher: {
        verify: async (password, hash) => {
          this.compared.push([password, hash])
          await Promise.resolve()
          this.duringVerify()
          return hash === `hash of ${password}`
        },
      },
      throttle: new Throttle(() => this.now),
      serverSecret: new Uint8Array(32).fill(1),
      iterations: 4096,
      plainOnLoopback: true,
      wallMs: () => BEGIN + this.now,
      tokens: {
        find: (hash) => [...this.tokens].find(([text]) => createHash('sha256').update(text).digest().equals(hash))?.[1],
        byId: (id) => [...this.tokens.values()].find((token) => token.id === id),
      },
      ...options,
    })
  }

  begin(peer: AuthPeer = LOCAL): AuthExchange {
    return this.authenticator.begin(peer)
  }

  /** The one step of a method that has one. */
  step(method: string, data: Uint8Array | string, peer: AuthPeer = LOCAL): Promise<AuthStep> {
    return this.begin(peer).step(method, typeof data === 'string' ? Buffer.from(data) : data)
  }

  password(identity: string, password: string, peer: AuthPeer = LOCAL): Promise<AuthStep> {
    return this.step('password', passwordData(identity, password), peer)
  }

  /** All outcomes of one SCRAM exchange, ended by the first that is not `continue`. */
  async scram(identity: string, password: string, peer: AuthPeer = LOCAL): Promise<string[]> {
    const exchange = this.begin(peer)
    const client = new ScramClient({ identity, password, channelBinding: peer.exporter })
    const first = await exchange.step(client.method, client.first())
    if (first.outcome !== 'continue') return [first.outcome]
    const final = await exchange.step('', await client.final(first.data))
    if (final.outcome !== 'continue') return ['continue', final.outcome]
    client.verify(final.data)
    return ['continue', 'continue', (await exchange.step('', NOTHING)).outcome]
  }
}

export const NOTHING = new Uint8Array(0)

/** Two XDR strings, by hand. RFC 4506 4.11 */
export function passwordData(identity: string, password: string): Uint8Array {
  return Buffer.concat([identity, password].flatMap(xdrString))
}

function xdrString(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return [length, bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]
}
