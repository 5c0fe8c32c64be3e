/**
 * The section [cluster]: which nodes there are, where they reach each other, and where the nats-servers with their log are.
 * Nothing is sent without TLS, unless both ends are on this machine.
 */
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { z } from 'zod'
import { isLoopback } from '../../auth/network.ts'
import { camelCased, type Section, type SectionConfig } from '../kernel/config/schema.ts'
import {
  addressOrOff,
  byteSize,
  decoded,
  duration,
  integer,
  key,
  pathOrOff,
  plainText,
} from '../kernel/config/value-types.ts'
import { type Address, formatAddress, isHostName, parseAddress } from '../kernel/core/address.ts'

const MAX_NODES = 9
const MAX_NATS_SERVERS = 9
const NATS_URL = /^(?:nats|tls):\/\/(?:\[([^\]]+)\]|([^/@:[\]]+))(?::(\d{1,5}))?$/
/** Each node has a user `local@<node>`, whose name has at most 64 characters. */
const NODE_NAME = /^[A-Za-z0-9_-]{1,58}$/
const ANY_ADDRESS = ['0.0.0.0', '::']

/** A node, and where the others reach it: nothing that a node says of itself changes that. */
export interface NodeAddress extends Address {
  readonly name: string
}

function parseNode(text: string): NodeAddress | undefined {
  const [, name = '', at = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  const address = NODE_NAME.test(name) ? parseAddress(at) : undefined
  const isReachable = address !== undefined && address.port > 0 && !ANY_ADDRESS.includes(address.host)
  return isReachable ? { name, ...address } : undefined
}

function parseNatsUrl(text: string): string | undefined {
  const [, bracketed, plain = '', digits = '4222'] = NATS_URL.exec(text) ?? []
  const isHost = bracketed === undefined ? isIP(plain) === 4 || isHostName(plain) : isIP(bracketed) === 6
  const port = Number(digits)
  return isHost && port >= 1 && port <= 65_535 ? text : undefined
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
const isHere = (host: string): boolean => host === 'localhost' || isLoopback(host)

const clusterName = () => ({
  type: z.string().regex(/^[A-Za-z0-9_-]{1,32}$/),
  expected: 'a name of 1 to 32 letters, digits, "_" or "-"',
})
const nodeName = () => ({
  type: z.string().refine((text) => text === '' || NODE_NAME.test(text)),
  expected: 'a name of 1 to 58 letters, digits, "_" or "-"',
})
const nodeAddresses = () => ({
  type: z
    .array(decoded(parseNode))
    .max(MAX_NODES)
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length)
    .refine((list) => new Set(list.map(formatAddress)).size === list.length),
  expected:
    `a list of at most ${MAX_NODES} nodes with their addresses, like ["n1=10.0.0.1:7654", "n2=10.0.0.2:7654"], ` +
    'no name and no address twice',
})
const natsUrls = () => ({
  type: z.array(decoded(parseNatsUrl)).max(MAX_NATS_SERVERS),
  expected: `a list of at most ${MAX_NATS_SERVERS} URLs like ["tls://10.0.0.1:4222"], with tls or nats, without a user`,
  // Somebody may write a password there, where it does not belong.
  isSecret: true,
})

const replicas = () => ({
  type: integer(0, 5).type.refine((count) => count === 0 || count % 2 === 1),
  expected: '1, 3 or 5, or 0',
})

const table = z.strictObject({
  name: key(clusterName(), 'main', 'The name of the cluster, by which its log and its messages are named in NATS.'),
  node: key(nodeName(), '', 'The name of this node.', 'the host name up to its first dot'),
  nodes: key(
    nodeAddresses(),
    [],
    'All nodes, each with the address at which the others reach it. Nodes connect to these addresses only, and a log is ' +
      'founded when each of the nodes is heard. The same on all nodes.',
  ),
  nats: key(
    natsUrls(),
    [],
    'The nats-servers, with JetStream; this server is alone if there are none. `nats://` is without TLS, so it is taken ' +
      'only for servers on this machine.',
  ),
  nats_ca: key(
    pathOrOff(),
    '',
    'Authorities for the certificates of the nats-servers, a PEM file; else those of Node.',
  ),
  credentials: key(pathOrOff(), '', 'The file with the JWT and the seed of a user of NATS.'),
  user: key(plainText(), '', 'Instead of `credentials`: the name of a user of NATS.'),
  password_file: key(pathOrOff(), '', 'A file with the password of `user`.'),
  listen: key(addressOrOff(), '', 'Where this node listens for the others.', 'its address in `nodes`'),
  status: key(
    addressOrOff(),
    '127.0.0.1:7656',
    'Where this node itself answers, whether it leads or follows: /healthz, /readyz, /metrics?node=self, and ' +
      '`cinnabar cluster` on this machine.',
  ),
  tls_ca: key(
    pathOrOff(),
    '',
    'The authority that has issued the certificates of the nodes, and no others; a PEM file.',
  ),
  tls_cert: key(pathOrOff(), '', 'The certificate of this node, with its name; a PEM file.'),
  tls_key: key(pathOrOff(), '', 'Its private key, a PEM file that only the server may read.'),
  replicas: key(
    replicas(),
    0n,
    'The nats-servers that keep the log; 0: 3 if `nats` names three or more, else 1. Used when a log is founded.',
  ),
  lease: key(
    duration('500ms', '30s'),
    '2s',
    'How long nothing may be heard of the node that leads before another takes over. The same on all nodes.',
  ),
  log_bytes: key(
    byteSize(64 * 2 ** 20, 2 ** 40),
    '4GiB',
    'The size of the log: a node that was away for longer than that needs a copy of the database.',
  ),
})
type ClusterValues = z.output<typeof table>
type ClusterKey = keyof ClusterValues & string

const shortHostName = (): string => hostname().split('.', 1)[0] ?? ''

/** The first key whose value is not the default: it means a cluster. */
function firstSet(values: ClusterValues): ClusterKey | undefined {
  const text = (value: unknown): string => JSON.stringify(value) ?? ''
  const keys = Object.keys(values) as ClusterKey[]
  return keys.find((name) => text(values[name]) !== text(table.shape[name].parse(undefined)))
}

const checked = table
  .superRefine((values, context) => {
    const say = (path: ClusterKey, message: string, also: ClusterKey = path): void =>
      context.addIssue({ code: 'custom', path: [path], params: { also }, message })
    const set = firstSet(values)
    if (set === undefined) return
    const { nats, nodes, listen } = values
    for (const path of ['nats', 'nodes'] as const) {
      if (values[path].length === 0) say(path, `is missing: \`cluster.${set}\` needs it`, set)
    }
    const node = values.node || shortHostName()
    if (nodes.length > 0 && !nodes.some(({ name }) => name === node)) {
      say('nodes', `does not name this node, which is ${JSON.stringify(node)}: add it, or set \`cluster.node\``)
    }
    const outside = nodes.find(({ host }) => !isHere(host))
    const inside = nodes.find(({ host }) => isHere(host))
    if (outside !== undefined && inside !== undefined) {
      say('nodes', `has ${outside.name} on another machine, from where nobody reaches ${inside.host} of this one`)
    }

    const open = nats.find((url) => url.startsWith('nats:') && !isHere(hostOf(url)))
    if (open !== undefined) say('nats', `${open} is neither encrypted nor on this machine: write tls:// there`)
    const areEncrypted = nats.some((url) => url.startsWith('tls:'))
    if (areEncrypted && nats.some((url) => url.startsWith('nats:'))) {
      say('nats', 'has both tls:// and nats://: all of them have to be alike')
    }
    if (values.nats_ca !== undefined && !areEncrypted)
      say('nats_ca', 'is for tls://, which `cluster.nats` does not have')
    if (values.credentials !== undefined && values.user !== '') {
      say('user', 'does not go together with `cluster.credentials`: leave one of them out')
    }
    if ((values.user === '') !== (values.password_file === undefined)) {
      const [missing, there] =
        values.user === '' ? (['user', 'password_file'] as const) : (['password_file', 'user'] as const)
      say(missing, `is missing: \`cluster.${there}\` needs it`, there)
    }

    const isOpen = outside !== undefined || (listen !== undefined && !isHere(listen.host))
    const ofTls = ['tls_ca', 'tls_cert', 'tls_key'] as const
    const there = ofTls.find((path) => values[path] !== undefined)
    for (const path of ofTls) {
      if (values[path] !== undefined) continue
      if (there !== undefined) say(path, `is missing: \`cluster.${there}\` needs it`, there)
      else if (isOpen) {
        const message = 'is missing: nodes reach each other only with TLS, unless all of them are on this machine'
        say(path, message, outside === undefined ? 'listen' : 'nodes')
      }
    }
  })
  .describe(
    'Several servers that are one: one node leads, the others follow with a copy of its database, and one of them takes over ' +
      'when it is gone. Off unless `nats` is set.',
  )

export const clusterSection = {
  type: checked,
  read: (values: ClusterValues) => (firstSet(values) === undefined ? undefined : clusterOf(values)),
} satisfies Section<typeof checked>

/** undefined: this server is alone. */
export type ClusterSection = NonNullable<SectionConfig<typeof clusterSection>>

function clusterOf(values: ClusterValues) {
  const { node: given, listen, lease, replicas, tls_ca, tls_cert, tls_key, ...rest } = values
  const node = given || shortHostName()
  const own = values.nodes.find(({ name }) => name === node) as NodeAddress
  const isEncrypted = tls_ca !== undefined && tls_cert !== undefined && tls_key !== undefined
  return {
    ...camelCased(rest),
    node,
    listen: listen ?? { host: own.host, port: own.port },
    tls: isEncrypted ? { ca: tls_ca, cert: tls_cert, key: tls_key } : undefined,
    replicas: replicas || (values.nats.length >= 3 ? 3 : 1),
    leaseMs: lease,
  }
}
