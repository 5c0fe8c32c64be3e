/**
 * Guesses at the password of `admin`, half of them from one address and half from five hundred of loopback, as fast as the
 * server answers, over SCRAM. A guess that is looked at gets a challenge; a throttled one does not. Meanwhile another user
 * comes from the same network with a password, and `admin` with a token; both have to be let in at the first attempt, every
 * time.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { RigOptions, Totals } from '../rig/rig.ts'
import { done, newToken } from '../support/administration.ts'
import { command, join, status, str } from '../support/bytes.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const ADDRESSES = 500
/**
 * Connections at once: each may have its challenge before the sixth failure blocks them all, and what is proven after that
 * is not looked at, which nobody can tell from outside. With so many that are no more than is promised.
 */
const AT_ONCE = 12
/** Of one connection: the third failure closes it [MON 11]. */
const GUESSES_EACH = 3
/** The promise: so many guesses at an identity are looked at in a minute, and all of loopback is one network. */
const MAX_A_MINUTE = 20
const OWNER_EVERY = 1_000

export async function guesses({ seed, count, say }: RigOptions): Promise<Totals> {
  const server = new ServerProcess()
  await server.start()
  try {
    const owner = await Owner.made(server)
    const one = await attack(server, owner, count / 2, () => '127.0.1.1')
    say(`from one address: ${one.guesses} guesses, ${one.looked} looked at in ${one.minutes} minutes begun`)
    const many = await attack(server, owner, count / 2, (n) => addressOf(n % ADDRESSES))
    say(`from ${ADDRESSES}: ${many.guesses} guesses, ${many.looked} looked at in ${many.minutes} minutes begun`)
    await owner.comesIn()
    const unexpected = one.tooMany + many.tooMany + one.admitted + many.admitted
    if (unexpected + owner.lockedOut > 0) {
      throw new Error(`seed ${seed}: ${JSON.stringify({ one, many, ownerLockedOut: owner.lockedOut })}`)
    }
    const { logins, lockedOut } = owner
    const looked = { lookedAtOfOne: one.looked, lookedAtOfMany: many.looked, minutesOfMany: many.minutes }
    return {
      lost: lockedOut,
      unexpected,
      reused: 0,
      guesses: one.guesses + many.guesses,
      ...looked,
      ownerLogins: logins,
    }
  } finally {
    await server.remove()
  }
}

interface Attacked {
  guesses: number
  looked: number
  admitted: number
  /** 1 if more were looked at than is promised. */
  tooMany: number
  minutes: number
}

async function attack(
  server: ServerProcess,
  owner: Owner,
  count: number,
  addressOfNext: (n: number) => string,
): Promise<Attacked> {
  const attacked: Attacked = { guesses: 0, looked: 0, admitted: 0, tooMany: 0, minutes: 0 }
  const started = performance.now()
  let connections = 0
  const guesser = async (): Promise<void> => {
    while (attacked.guesses < count) {
      const peer = await connected(server, addressOfNext(connections++))
      for (let seq = 1; seq <= GUESSES_EACH; seq++) {
        const outcome = await guess(peer, seq * 2)
        attacked.guesses++
        if (outcome === 'admitted') attacked.admitted++
        if (outcome === 'refused') attacked.looked++
        if (attacked.guesses % OWNER_EVERY === 0) await owner.comesIn()
      }
      peer.destroy()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, guesser))
  attacked.minutes = Math.ceil((performance.now() - started) / 60_000)
  if (attacked.looked > MAX_A_MINUTE * attacked.minutes) attacked.tooMany = 1
  return attacked
}

/** client-first and, if there is a challenge, a proof that is random. */
async function guess(peer: RawPeer, seq: number): Promise<'throttled' | 'refused' | 'admitted'> {
  const nonce = randomBytes(18).toString('base64')
  peer.send(command.auth(seq, 'scram-sha-256', Buffer.from(`n,,n=admin,r=${nonce}`)))
  if ((await peer.response(seq)).status !== status.AUTH_NEEDED) return 'throttled'
  const serverFirst = (await peer.until('auth')).data.toString()
  const [whole] = serverFirst.split(',')
  const proof = randomBytes(32).toString('base64')
  peer.send(command.auth(seq + 1, '', Buffer.from(`c=biws,${whole},p=${proof}`)))
  return (await peer.response(seq + 1)).status === status.AUTH_FAILED ? 'refused' : 'admitted'
}

async function connected(server: ServerProcess, localAddress: string): Promise<RawPeer> {
  const socket = connect({ host: '127.0.0.1', port: server.tcpPort, localAddress })
  await once(socket, 'connect')
  const peer = new RawPeer(socket)
  await peer.until('caps')
  return peer
}

/** 127.1.0.1 and so on. */
function addressOf(n: number): string {
  return `127.1.${n >> 7}.${(n & 127) + 1}`
}

class Owner {
  logins = 0
  lockedOut = 0
  readonly #server: ServerProcess
  readonly #token: Uint8Array
  #next = 0

  private constructor(server: ServerProcess, token: string) {
    this.#server = server
    this.#token = new TextEncoder().encode(token)
  }

  /** With a token for `admin`, and another user. */
  static async made(server: ServerProcess): Promise<Owner> {
    const seat = await server.seat()
    const { token, hash } = newToken()
    await done(seat, 'token.add', { user: 'admin', hash })
    await done(seat, 'user.add', { user: 'bob', password: PASSWORD })
    seat.peer.destroy()
    return new Owner(server, token)
  }

  /** From an address that was never used before. */
  async comesIn(): Promise<void> {
    await this.#logIn('token', this.#token)
    await this.#logIn('password', join(str('bob'), str(PASSWORD)))
  }

  async #logIn(method: string, data: Uint8Array): Promise<void> {
    const n = this.#next++
    const peer = await connected(this.#server, `127.2.${n >> 7}.${(n & 127) + 1}`)
    peer.send(command.auth(1, method, data))
    if ((await peer.response(1)).status === status.OK) this.logins++
    else this.lockedOut++
    peer.destroy()
  }
}
