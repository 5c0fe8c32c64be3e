/**
 * Guesses at the password of `admin`, half of them from one address and half from five hundred, as fast as the server
 * answers, over SCRAM. A guess that is looked at gets a challenge; a throttled one does not. Meanwhile the owner comes from
 * addresses nobody has guessed from, and has to be let in at the first attempt, every time.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { command, join, status, str } from '../support/bytes.ts'
import { RawPeer } from '../support/raw-peer.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'
import type { RigOptions, Totals } from './rig.ts'

const ADDRESSES = 500
/**
 * Connections at once: each may have its challenge before the sixth failure blocks them all, and what is proven after that
 * is not looked at, which nobody can tell from outside. With so many that are no more than is promised.
 */
const AT_ONCE = 12
/** Of one connection: the third failure closes it [MON 11]. */
const GUESSES_EACH = 3
/** The promise: so many guesses of an identity and a prefix are looked at in a minute. */
const MAX_A_MINUTE = 20
const OWNER_EVERY = 1_000

export async function guesses({ seed, count, say }: RigOptions): Promise<Totals> {
  const server = new ServerProcess()
  await server.start()
  try {
    const owner = new Owner(server)
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
  /** Addresses that had more looked at than is promised. */
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
  const looked = new Map<string, number>()
  const started = performance.now()
  let connections = 0
  const guesser = async (): Promise<void> => {
    while (attacked.guesses < count) {
      const address = addressOfNext(connections++)
      const peer = await connected(server, address)
      for (let seq = 1; seq <= GUESSES_EACH; seq++) {
        const outcome = await guess(peer, seq * 2)
        attacked.guesses++
        if (outcome === 'admitted') attacked.admitted++
        if (outcome === 'refused') looked.set(address, (looked.get(address) ?? 0) + 1)
        if (attacked.guesses % OWNER_EVERY === 0) await owner.comesIn()
      }
      peer.destroy()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, guesser))
  attacked.minutes = Math.ceil((performance.now() - started) / 60_000)
  for (const times of looked.values()) {
    attacked.looked += times
    if (times > MAX_A_MINUTE * attacked.minutes) attacked.tooMany++
  }
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
  #next = 0

  constructor(server: ServerProcess) {
    this.#server = server
  }

  /** From an address that was never used before, with the right password. */
  async comesIn(): Promise<void> {
    const n = this.#next++
    const peer = await connected(this.#server, `127.2.${n >> 7}.${(n & 127) + 1}`)
    peer.send(command.auth(1, 'password', join(str('admin'), str(PASSWORD))))
    if ((await peer.response(1)).status === status.OK) this.logins++
    else this.lockedOut++
    peer.destroy()
  }
}
