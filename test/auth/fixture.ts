/** Two accounts, a clock that stands still, and a hasher that needs no thread: `hash of x` is the hash of x. */
import { Authenticator } from '../../auth/authenticator.ts'
import type { Account, AuthExchange, AuthStep, Peer } from '../../auth/mechanism.ts'
import { ScramClient } from '../../auth/scram/client.ts'
import { Throttle } from '../../auth/throttle.ts'
import { makeSecretVerifier } from '../../auth/verifiers.ts'

export const LOCAL: Peer = { address: '127.0.0.1', loopback: true, encrypted: false }
export const REMOTE: Peer = { address: '192.0.2.1', loopback: false, encrypted: false }
export const SECURE: Peer = { address: '192.0.2.1', loopback: false, encrypted: true }

const scram = { alice: await makeSecretVerifier('wonderland'), local: await makeSecretVerifier('machine') }

const ALICE: Account = {
  id: 1,
  tenant: 'acme',
  name: 'alice',
  role: 'reader',
  bcrypt: 'hash of wonderland',
  scram: scram.alice,
  loopbackOnly: false,
}
const LOCAL_USER: Account = {
  id: 2,
  tenant: 'default',
  name: 'local',
  role: 'admin',
  bcrypt: undefined,
  scram: scram.local,
  loopbackOnly: true,
}

export class Fixture {
  now = 0
  accounts: Account[] = [ALICE, LOCAL_USER]
  /** What the hasher was asked to compare. */
  readonly compared: [string, string | undefined][] = []
  /** Runs while a comparison is under way. */
  duringVerify: () => void = () => undefined
  readonly authenticator: Authenticator

  constructor(plainOnLoopback = true) {
    this.authenticator = new Authenticator({
      accounts: { find: (tenant, name) => this.accounts.find((each) => each.tenant === tenant && each.name === name) },
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
      plainOnLoopback,
    })
  }

  begin(peer: Peer = LOCAL): AuthExchange {
    return this.authenticator.begin(peer)
  }

  password(identity: string, password: string, peer: Peer = LOCAL): Promise<AuthStep> {
    return this.begin(peer).step('password', passwordData(identity, password))
  }

  /** All outcomes of one SCRAM exchange, ended by the first that is not `continue`. */
  async scram(identity: string, password: string, peer: Peer = LOCAL): Promise<string[]> {
    const exchange = this.begin(peer)
    const client = new ScramClient({ identity, password })
    const first = await exchange.step('scram-sha-256', client.first())
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
