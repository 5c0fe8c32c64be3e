/**
 * A network of two that goes away: a network namespace, and a pair of virtual interfaces that joins it to this one. Addresses
 * on loopback are one network to the server, so they cannot stand for strangers. The addresses are random unique local ones
 * (RFC 4193), so that two runs at the same time do not meet.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'

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
    run('ip', 'netns', 'add', this.#name)
    try {
      const within = ['-n', this.#name]
      run('ip', 'link', 'add', this.#interface, 'type', 'veth', 'peer', 'name', inside, 'netns', this.#name)
      run('ip', '-6', 'address', 'add', `${this.host}/64`, 'dev', this.#interface, 'nodad')
      run('ip', '-6', 'address', 'add', `${this.admin}/128`, 'dev', this.#interface, 'nodad')
      run('ip', ...within, '-6', 'address', 'add', `${this.near}/64`, 'dev', inside, 'nodad')
      run('ip', 'link', 'set', this.#interface, 'up')
      run('ip', ...within, 'link', 'set', 'lo', 'up')
      run('ip', ...within, 'link', 'set', inside, 'up')
      // The whole /48 is at home in the namespace, and any address of it may be bound there.
      run('ip', ...within, '-6', 'route', 'add', 'local', `${theirs}::/48`, 'dev', 'lo')
      run('ip', '-6', 'route', 'add', `${theirs}::/48`, 'via', this.near)
      run('ip', 'netns', 'exec', this.#name, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind')
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** What is missing here, as a sentence, instead of a namespace. */
  static make(): Namespace | string {
    if (process.platform !== 'linux') return 'network namespaces exist on Linux only'
    if (process.getuid?.() !== 0) return 'a network namespace is made by root only'
    try {
      return new Namespace()
    } catch (error) {
      const said = error instanceof Error && 'stderr' in error ? `${error.stderr ?? ''}`.trim() : ''
      const reason = said === '' && error instanceof Error ? error.message : said
      return `a network namespace cannot be made (${reason}): it needs iproute2, IPv6 and the permission`
    }
  }

  /** The program and the arguments that run a command in the namespace. */
  command(...words: readonly string[]): readonly [string, readonly string[]] {
    return ['ip', ['netns', 'exec', this.#name, ...words]]
  }

  /** The interfaces go with the namespace. */
  remove(): void {
    run('ip', 'netns', 'delete', this.#name)
  }
}

function run(program: string, ...words: readonly string[]): void {
  execFileSync(program, words, { stdio: 'pipe' })
}
