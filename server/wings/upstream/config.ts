/** The tables `[[upstream]]`: other servers whose metrics this one serves, too. */
import { z } from 'zod'
import {
  addressOrOff,
  decoded,
  duration,
  hostNameOrOff,
  integer,
  isLoopback,
  key,
  needed,
  optional,
  path,
  plainText,
  type SectionConfig,
  tableList,
  tenant,
} from '../../kit/config.ts'
import { formatAddress } from '../../kit/io/address.ts'

const SCHEMES = ['tcp:', 'tls:', 'ws:', 'wss:']

function parseUpstreamUrl(text: string): string | undefined {
  if (!/^(?:tcp|tls|wss?):\/\/[^/]/.test(text) || !URL.canParse(text) || text.includes('@')) return undefined
  const url = new URL(text)
  return SCHEMES.includes(url.protocol) && url.hostname !== '' && url.hash === '' ? text : undefined
}

const url = () => ({
  type: decoded(parseUpstreamUrl),
  expected:
    'a URL like "tls://east.example:7650" or "wss://east.example/monitor", with tcp, tls, ws or wss, and no user',
  isSecret: true,
})
const producerName = () => ({
  type: z.string().regex(/^[^/*\p{Cc}]{1,64}$/u),
  expected: 'a name of 1 to 64 characters without "/" and "*"',
})
const patterns = () => ({
  type: z
    .array(z.string().regex(/^\P{Cc}{1,255}$/u))
    .min(1)
    .max(64),
  expected: 'a list of 1 to 64 names or patterns of metrics, like ["gmetric.*", "host.*"]',
})

const optionalPatterns = () => ({
  type: z.array(z.string().regex(/^\P{Cc}{1,255}$/u)).max(64),
  expected: 'a list of at most 64 names or patterns of controls, like ["exec.*"]',
})

const table = z
  .strictObject({
    name: needed(producerName(), 'What the other server is called here: the argument and label `producer`.'),
    url: optional(url(), 'Where it listens. Either this or `listen` is needed.'),
    listen: key(
      addressOrOff(),
      '',
      'The TCP address at which this server waits for it, if it cannot be reached: it announces itself there ' +
        '(`[[announce]]`) under this `name`. Tables may share one. Beyond this machine it needs `[tls]`, and is TLS from ' +
        'the first byte.',
    ),
    tenant: key(tenant(), 'default', 'The tenant that sees its metrics.'),
    metrics: key(
      patterns(),
      ['*'],
      'The metrics that may be asked for. `producer.audit`, `producer.history.query` and `producer.history.labels` are only among them if a name here is not just `*`.',
    ),
    controls: key(
      optionalPatterns(),
      [],
      'The controls that may be run there; none unless they are named here. Rules here and there decide as well.',
    ),
    token_file: optional(path(), 'A file with the token to log in with, read for each connection.'),
    user: key(plainText(), '', 'The user to log in as, with `secret_file`.'),
    secret_file: optional(path(), 'A file with the password of `user`, read for each connection.'),
    ca: optional(path(), 'Authorities for the certificate of the other server, a PEM file; else those of Node.'),
    cert: optional(path(), 'A client certificate with its chain, a PEM file; without token and user it is the login.'),
    key: optional(path(), 'Its private key, a PEM file.'),
    server_name: key(
      hostNameOrOff(),
      '',
      'The name that the certificate must be for, if it is not the host of the URL.',
    ),
    interval: key(
      duration('1s', '1d'),
      '1m',
      'How often its catalogue is read again, besides whenever it reports a change.',
    ),
    max_series: key(
      integer(1, 10_000_000),
      100_000n,
      'Series that are known at once; beyond that the oldest is forgotten, and nothing is lost.',
    ),
    values_per_second: key(
      integer(0, 1_000_000_000),
      0n,
      'Values that are read in a second; others wait at the other server. 0 is no limit.',
    ),
  })
  .superRefine(({ url, listen, token_file, user, secret_file, ca, cert, key, server_name }, context) => {
    const say = (message: string): void => context.addIssue({ code: 'custom', message })
    if ((url === undefined) === (listen === undefined)) say('it needs either `url` or `listen`')
    if (listen !== undefined && secret_file === undefined) {
      say('it needs `user` and `secret_file`: they are how a server that announces itself is known')
    }
    const { protocol, hostname } = new URL(url ?? 'tcp://localhost')
    const isTls = protocol === 'tls:' || protocol === 'wss:'
    if ((user !== '') !== (secret_file !== undefined)) say('`user` and `secret_file` are needed together')
    if ((cert === undefined) !== (key === undefined)) say('`cert` and `key` are needed together')
    if (token_file !== undefined && user !== '') say('`token_file` and `user` exclude each other')
    if (token_file === undefined && user === '' && cert === undefined) {
      say('there is nothing to log in with: give `token_file`, `user` with `secret_file`, or `cert` with `key`')
    }
    if (!isTls && (ca ?? cert ?? server_name) !== undefined)
      say('`ca`, `cert` and `server_name` are for tls:// and wss://')
    if (token_file !== undefined && !isTls && !isThisMachine(hostname))
      say('a token is only sent over tls:// or wss://, or to this machine')
  })
  .transform(({ token_file, secret_file, server_name, interval, max_series, values_per_second, ...rest }) => ({
    ...rest,
    tokenFile: token_file,
    /** For people: where it listens, or announces itself. */
    where: rest.url ?? `announced at ${rest.listen === undefined ? '' : formatAddress(rest.listen)}`,
    secretFile: secret_file,
    serverName: server_name,
    intervalMs: interval,
    maxSeries: max_series,
    valuesPerSecond: values_per_second,
  }))

function isThisMachine(hostname: string): boolean {
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))
}

export const upstreamSection = tableList(
  z
    .array(table)
    .max(1000)
    .superRefine((tables, context) => {
      const names = new Set<string>()
      for (const { name, tenant, listen } of tables) {
        const say = (message: string): void => context.addIssue({ code: 'custom', message })
        if (names.has(`${tenant}/${name}`)) say(`two of the tenant ${tenant} are called ${name}`)
        const address = listen === undefined ? '' : formatAddress(listen)
        if (address !== '' && names.has(`${address}/${name}`)) {
          say(`two that announce themselves at ${address} are called ${name}`)
        }
        names.add(`${tenant}/${name}`).add(`${address}/${name}`)
      }
    })
    .default([])
    .describe(
      'Other servers whose metrics this one serves, one table each; only in the file. What it does with them: ' +
        '[hierarchy.md](hierarchy.md).',
    ),
  { isLive: true },
)
/** A server that this one consumes. */
export type UpstreamTable = SectionConfig<typeof upstreamSection>[number]
