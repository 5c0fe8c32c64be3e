/** The tables `[[qmf]]`: Qpid brokers to connect to. A URL may hold a password, so no message shows it. */
import { z } from 'zod'
import {
  integer,
  key,
  needed,
  pathOrOff,
  type SectionConfig,
  tableList,
  tenant,
  toggle,
  wireName,
} from '../../kit/config.ts'
import { formatAddress, parseAddress } from '../../kit/io/address.ts'
import type { QmfVersion } from './wire.ts'

const url = () => ({
  type: z.string().transform((text, context): BrokerUrl => {
    const parsed = parseBrokerUrl(text)
    if (parsed !== undefined) return parsed
    context.issues.push({ code: 'invalid_format', format: 'text', input: text })
    return z.NEVER
  }),
  expected:
    'a URL like "amqp://user:password@127.0.0.1:5672/vhost", or amqps://, with everything but the address optional and ' +
    'odd characters as %40',
  isSecret: true,
})

const version = () => ({
  type: z
    .union([z.literal('auto'), z.literal(1n), z.literal(2n)])
    .transform((text): QmfVersion | 'auto' => (text === 'auto' ? text : text === 1n ? 1 : 2)),
  expected: '"auto", 1 or 2',
})

const qmfTable = z
  .strictObject({
    name: needed(wireName(), 'What the broker is called: `broker` of its metrics.'),
    url: needed(
      url(),
      'The address, and the user who connects: by SASL PLAIN; without a user or as `anonymous` by EXTERNAL if there is a `cert`, otherwise by ANONYMOUS. It is never shown.',
    ),
    password_file: key(pathOrOff(), '', 'A file with the password, instead of one in the URL; read at each connect.'),
    ca: key(pathOrOff(), '', 'Certificate authorities for an `amqps://` URL; by default those of Node.'),
    cert: key(
      pathOrOff(),
      '',
      'A client certificate with its chain, a PEM file, for an `amqps://` URL; read at each connect, like `key`.',
    ),
    key: key(pathOrOff(), '', 'The private key of `cert`, a PEM file without a passphrase.'),
    version: key(
      version(),
      'auto',
      'The version of QMF that is spoken with the broker; `"auto"`: 2 if the broker answers and broadcasts by it, otherwise 1 if it broadcasts by that, otherwise 2.',
    ),
    interval_ms: key(
      integer(1_000, 86_400_000),
      5_000n,
      'Milliseconds between two polls of wanted objects if the broker does not broadcast.',
    ),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    max_objects: key(integer(1, 1_000_000), 20_000n, 'The limit for objects that are remembered at once.'),
    agent: key(toggle(), false, 'Whether this server shows itself there as a QMF agent.'),
  })
  .superRefine(({ url: { user, password, isTls }, password_file, ca, cert, key }, context) => {
    const say = (message: string): void => context.addIssue({ code: 'custom', message })
    const isFile = password_file !== undefined
    if (user === undefined && isFile) say('`password_file` is for a `url` with a user')
    if (user !== undefined && password === undefined && !isFile) say('the user needs a password, or a `password_file`')
    if (password !== undefined && isFile) say('the password is given twice: in `url` and in `password_file`')
    if (ca !== undefined && !isTls) say('`ca` is for an `amqps://` url')
    if (cert !== undefined && !isTls) say('`cert` is for an `amqps://` url')
    if ((cert === undefined) !== (key === undefined)) say('`cert` and `key` are needed together')
  })
  .transform(({ name, url, password_file, ca, cert, key, version, interval_ms, tenant, max_objects, agent }) => ({
    name,
    ...url,
    passwordFile: password_file,
    ca,
    cert,
    key,
    version,
    intervalMs: interval_ms,
    tenant,
    maxObjects: max_objects,
    isAgent: agent,
  }))

export const qmfSection = tableList(
  z
    .array(qmfTable)
    .max(1000)
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'two of them have the same `name`')
    .default([])
    .describe(
      'Qpid brokers that the server connects to, one table each; only in the file. What they give: ' +
        '[sources/qmf.md](sources/qmf.md).',
    ),
)
/** A Qpid broker to connect to. */
export type QmfTable = SectionConfig<typeof qmfSection>[number]

/** The address of a broker and the user who connects. No message repeats any part of it. */
export interface BrokerUrl {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  /** Undefined for SASL EXTERNAL and ANONYMOUS. */
  readonly user: string | undefined
  readonly password: string | undefined
  /** Empty for the broker's default. */
  readonly virtualHost: string
}

const PORTS = { amqp: 5672, amqps: 5671 } as const

/** `amqp://user:secret@host:5672/vhost`, parts percent-encoded; undefined if `text` is not such a URL. */
export function parseBrokerUrl(text: string): BrokerUrl | undefined {
  const match =
    /^(amqps?):\/\/(?:([^\s@/?#:]*)(?::([^\s@/?#]*))?@)?(\[[^\]\s]*\]|[^\s@/?#:]+)(?::(\d+))?(?:\/([^\s?#]*))?$/i.exec(
      text,
    )
  if (match === null) return undefined
  const [, scheme = '', user = '', password, host = '', port, virtualHost = ''] = match
  const isTls = scheme.toLowerCase() === 'amqps'
  const address = parseAddress(`${host}:${port ?? (isTls ? PORTS.amqps : PORTS.amqp)}`)
  const decoded = [user, password ?? '', virtualHost].map(percentDecoded)
  const [name = '', secret, path = ''] = decoded
  if (address === undefined || address.port === 0 || decoded.includes(undefined)) return undefined
  const isAnonymous = name === '' || name === 'anonymous'
  if (name === '' && password !== undefined) return undefined
  return {
    ...address,
    isTls,
    user: isAnonymous ? undefined : name,
    password: isAnonymous || password === undefined ? undefined : secret,
    virtualHost: path,
  }
}

/** Formats the address without the user and password. */
export function formatBroker({ host, port, isTls }: Pick<BrokerUrl, 'host' | 'port' | 'isTls'>): string {
  return `${isTls ? 'amqps' : 'amqp'}://${formatAddress({ host, port })}`
}

function percentDecoded(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text)
    // NUL ends names and passwords of SASL PLAIN [RFC 4616].
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}
