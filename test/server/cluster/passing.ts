/** What tests of fronts need: certificates of nodes, who leads, a listener for nodes, and a front before it. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Front, type FrontOptions } from '../../../server/cluster/front.ts'
import type { Leader, Leadership } from '../../../server/cluster/leadership.ts'
import { NodeCertificates } from '../../../server/cluster/node-certificates.ts'
import { NodeListener, type NodeListenerOptions } from '../../../server/cluster/node-listener.ts'
import type { Address } from '../../../server/kernel/core/address.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { RareWarnings } from '../../../server/kernel/core/rare-warnings.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { FakeClock } from '../../support/fake-clock.ts'

export const LOOPBACK = { host: '127.0.0.1', port: 0 }
export const NODES = ['n1', 'n2']
const NOWHERE = { tcp: undefined, tls: undefined, http: undefined, https: undefined }

/** An authority, and files of nodes in a directory. */
export class NodeFiles {
  readonly authority: Authority
  readonly directory = new OperatorDirectory()

  private constructor(authority: Authority) {
    this.authority = authority
  }

  static async make(): Promise<NodeFiles> {
    return new NodeFiles(await Authority.make('the authority of a cluster'))
  }

  /** The certificate of a node, by default issued for its name. */
  async of(node: string, names: readonly string[] = [node], authority = this.authority): Promise<NodeCertificates> {
    const { cert, key } = await authority.node(names)
    return new NodeCertificates({
      ca: this.directory.write(`${node}-ca.pem`, this.authority.cert),
      cert: this.directory.write(`${node}.pem`, cert),
      key: this.directory.write(`${node}.key`, key),
    })
  }

  remove(): void {
    this.directory.remove()
  }
}

/** Tests say who leads. */
export class SaidLeadership implements Leadership {
  readonly #listeners = new Set<() => void>()
  leader: Leader | undefined

  say(leader: Leader | undefined): void {
    this.leader = leader
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get listeners(): number {
    return this.#listeners.size
  }
}

/** A part with its clock and its log, whose lines are parsed. */
export interface Watched<T> {
  readonly part: T
  readonly clock: FakeClock
  readonly logged: readonly { readonly reason?: string; readonly msg: string; readonly unlogged?: number }[]
}

function watch() {
  const clock = new FakeClock()
  const logged: Watched<unknown>['logged'][number][] = []
  const log = createLogger('trace', { write: (line) => void logged.push(JSON.parse(line)) })
  return { clock, logged, warnings: new RareWarnings(log, clock) }
}

/** A listener for nodes, open on loopback. */
export async function nodeListener(
  options: Pick<NodeListenerOptions, 'certificates' | 'takerOf'> & Partial<NodeListenerOptions>,
): Promise<Watched<NodeListener> & { readonly address: Address }> {
  const { clock, logged, warnings } = watch()
  const part = new NodeListener({
    address: LOOPBACK,
    key: 'cluster.listen',
    // Nobody connects to these ports.
    nodes: NODES.map((name, index) => ({ name, host: '127.0.0.1', port: 7654 + index })),
    clock,
    warnings,
    ...options,
  })
  return { part, clock, logged, address: await part.open() }
}

/** A front that listens on loopback: by default with the listener `tcp` alone. */
export async function frontBefore(
  leadership: SaidLeadership,
  options: Partial<FrontOptions> & Pick<FrontOptions, 'certificates'>,
): Promise<Watched<Front> & { readonly listening: FrontOptions['listen'] }> {
  const { clock, logged, warnings } = watch()
  const part = new Front({
    listen: { ...NOWHERE, tcp: LOOPBACK },
    leadership,
    from: undefined,
    counters: { passed: 0, expired: 0, refused: 0, failed: 0 },
    limits: { connections: 100, held: 100 },
    clock,
    warnings,
    ...options,
  })
  return { part, clock, logged, listening: await part.open() }
}

export async function connected(address: Address | undefined, more: { localAddress?: string } = {}): Promise<Socket> {
  const { host = '', port = 0 } = address ?? {}
  const socket = connect({ host, port, allowHalfOpen: true, ...more }).on('error', () => {})
  await once(socket, 'connect')
  return socket
}
