/**
 * A network of two that goes away: a network namespace, and a pair of virtual interfaces that joins it to this one. Addresses
 * on loopback are one network to the server, so they cannot stand for strangers. The addresses are random unique local ones
 * (RFC 4193), so that two runs at the same time do not meet.
 */
import { randomBytes } from 'node:crypto'
import { inNamespace, ip, madeOrMissing } from '../../rig/namespaces.ts'

/** Networks (/64) that a stranger of a /48 comes from, of the 65,536 that it has. */
const NETWORKS = 256

export class Namespace {
  readonly #name: string
  readonly #interface: string
  /** The address of this side, for the server and the good tenant. */
  readonly host: string
  /** Another address of this side, of a network of its own, for the admin: where one has logged in, more is allowed. */
  readonly admin: string
  /** An address in the namespace whose network is that of `host`. */
  readonly near: string
  /** Addresses in the namespace, each of another network. */
  readonly far: readonly string[]

  private constructor() {
    const id = randomBytes(4).toString('hex')
    const prefix = (): string =>
      `fd${randomBytes(5)
        .toString('hex')
        .replace(/^(..)(....)(....)$/, '$1:$2:$3')}`
    const [ours, theirs, admins] = [prefix(), prefix(), prefix()]
    this.#name = `cinnabar-${id}`
    this.#interface = `cnb${id}`
    this.host = `${ours}::1`
    this.admin = `${admins}::1`
    this.near = `${ours}::2`
    this.far = Array.from({ length: NETWORKS }, (_, network) => `${theirs}:${(network + 1).toString(16)}::2`)
    const inside = `${this.#interface}n`
    ip('netns', 'add', this.#name)
    try {
      const within = ['-n', this.#name]
      ip('link', 'add', this.#interface, 'type', 'veth', 'peer', 'name', inside, 'netns', this.#name)
      ip('-6', 'address', 'add', `${this.host}/64`, 'dev', this.#interface, 'nodad')
      ip('-6', 'address', 'add', `${this.admin}/128`, 'dev', this.#interface, 'nodad')
      ip(...within, '-6', 'address', 'add', `${this.near}/64`, 'dev', inside, 'nodad')
      ip('link', 'set', this.#interface, 'up')
      ip(...within, 'link', 'set', 'lo', 'up')
      ip(...within, 'link', 'set', inside, 'up')
      // The whole /48 is at home in the namespace, and any address of it may be bound there.
      ip(...within, '-6', 'route', 'add', 'local', `${theirs}::/48`, 'dev', 'lo')
      ip('-6', 'route', 'add', `${theirs}::/48`, 'via', this.near)
      ip('netns', 'exec', this.#name, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind')
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** What is missing here, as a sentence, instead of a namespace. */
  static make(): Namespace | string {
    return madeOrMissing(() => new Namespace(), 'iproute2, IPv6')
  }

  /** The program and the arguments that run a command in the namespace. */
  command(program: string, ...args: readonly string[]): readonly [string, readonly string[]] {
    return inNamespace(this.#name, program, args)
  }

  /** The interfaces go with the namespace. */
  remove(): void {
    ip('netns', 'delete', this.#name)
  }
}
