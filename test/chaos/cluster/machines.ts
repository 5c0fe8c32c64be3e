/**
 * The machines of a cluster: each is a network namespace with a node and a nats-server in it. Two switches join them, one between
 * the nodes and one between the nats-servers and whoever uses them, and each machine can be unplugged from either: nobody is told,
 * what is sent just does not arrive. The rig reaches every machine by a link of its own, so that it can see what a machine does
 * that is cut off. Where no namespace can be made, everything is on loopback and nothing can be unplugged.
 */
import { randomBytes } from 'node:crypto'
import { inNamespace, ip, madeOrMissing } from '../../rig/namespaces.ts'

export type Switch = 'nodes' | 'nats'

/** `access` is the link to the rig: without it the machine is gone for consumers, too. */
export type Cable = Switch | 'access'

const SWITCHES: readonly Switch[] = ['nodes', 'nats']
const LOOPBACK = '127.0.0.1'
/** Addresses that RFC 2544 sets aside for tests: two runs at the same time take different ones by chance. */
const TEST_NETWORKS = 2 ** 13

export interface Machine {
  /** Where the rig reaches it. */
  readonly host: string
  /** What comes from the rig comes from there. */
  readonly network: string
  /** Its address at each of the switches. */
  readonly addresses: Readonly<Record<Switch, string>>
  /** The program and the arguments that run a command there. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]]
}

export class Machines {
  readonly all: readonly Machine[]
  /** Why none of them can be unplugged, as a sentence; undefined if they can. */
  readonly missing: string | undefined
  readonly #network: Network | undefined

  private constructor(all: readonly Machine[], network: Network | undefined, missing?: string) {
    this.all = all
    this.#network = network
    this.missing = missing
  }

  static make(count: number): Machines {
    const network = Network.make(count)
    if (typeof network !== 'string') return new Machines(network.machines, network)
    return Machines.onLoopback(count, network)
  }

  /** `missing`: why nothing can be unplugged. */
  static onLoopback(count: number, missing: string): Machines {
    const here: Machine = {
      host: LOOPBACK,
      network: `${LOOPBACK}/32`,
      addresses: { nodes: LOOPBACK, nats: LOOPBACK },
      command: (program, args) => [program, args],
    }
    return new Machines(
      Array.from({ length: count }, () => here),
      undefined,
      missing,
    )
  }

  unplug(index: number, from: Cable): void {
    this.#network?.set(index, from, 'down')
  }

  plug(index: number, into: Cable): void {
    this.#network?.set(index, into, 'up')
  }

  /** Nothing may run there any more. */
  remove(): void {
    this.#network?.remove()
  }
}

class Network {
  readonly machines: readonly Machine[]
  readonly #id = randomBytes(4).toString('hex')
  readonly #count: number

  private constructor(count: number) {
    this.#count = count
    const base = (198 * 256 + 18) * 65_536 + Math.floor(Math.random() * TEST_NETWORKS) * 16
    try {
      this.#makeSwitches()
      this.machines = Array.from({ length: count }, (_, index) => this.#machine(index, base + 4 * index))
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** What is missing here, as a sentence, instead of a network. */
  static make(count: number): Network | string {
    return madeOrMissing(() => new Network(count), 'iproute2 (apt-get install iproute2)')
  }

  set(index: number, which: Cable, state: 'up' | 'down'): void {
    if (which === 'access') ip('-n', this.#name(index), 'link', 'set', 'access', state)
    else ip('-n', this.#switches, 'link', 'set', `${which}${index}`, state)
  }

  /** The interfaces go with the namespaces. */
  remove(): void {
    const names = [this.#switches, ...Array.from({ length: this.#count }, (_, index) => this.#name(index))]
    const made = ip('netns', 'list')
    for (const name of names) if (made.includes(`${name}\n`) || made.includes(`${name} `)) ip('netns', 'delete', name)
  }

  get #switches(): string {
    return `cinnabar-${this.#id}`
  }

  #name(index: number): string {
    return `${this.#switches}-${index}`
  }

  #makeSwitches(): void {
    ip('netns', 'add', this.#switches)
    for (const name of SWITCHES) {
      ip('-n', this.#switches, 'link', 'add', name, 'type', 'bridge')
      ip('-n', this.#switches, 'link', 'set', name, 'up')
    }
  }

  /** `access` is the first of the four addresses of its link to the rig. */
  #machine(index: number, access: number): Machine {
    const name = this.#name(index)
    const within = ['-n', name] as const
    ip('netns', 'add', name)
    ip(...within, 'link', 'set', 'lo', 'up')
    const outside = `cnb${this.#id}${index}`
    ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', 'access', 'netns', name)
    ip('address', 'add', `${dotted(access + 1)}/30`, 'dev', outside)
    ip('link', 'set', outside, 'up')
    ip(...within, 'address', 'add', `${dotted(access + 2)}/30`, 'dev', 'access')
    ip(...within, 'link', 'set', 'access', 'up')
    const addresses = { nodes: `10.77.1.${index + 1}`, nats: `10.77.2.${index + 1}` }
    for (const to of SWITCHES) {
      const port = `${to}${index}`
      ip('-n', this.#switches, 'link', 'add', port, 'type', 'veth', 'peer', 'name', to, 'netns', name)
      ip('-n', this.#switches, 'link', 'set', port, 'master', to)
      ip('-n', this.#switches, 'link', 'set', port, 'up')
      ip(...within, 'address', 'add', `${addresses[to]}/24`, 'dev', to)
      ip(...within, 'link', 'set', to, 'up')
    }
    return {
      host: dotted(access + 2),
      network: `${dotted(access)}/30`,
      addresses,
      command: (program, args) => inNamespace(name, program, args),
    }
  }
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')
}
