/**
 * Every section and key of the configuration, with default, bounds and one sentence each: docs/configuration.md, the
 * environment variables and the error messages all come from here. A key that nothing honours yet must not stand here:
 * to accept it would be a promise.
 */
import { hostname } from 'node:os'
import { z } from 'zod'
import { execs } from '../controls/exec/config.ts'
import { gmetric } from '../sources/gmetric/config.ts'
import { mono } from '../sources/mono/config.ts'
import { qmfs } from '../sources/qmf/config.ts'
import {
  addressOrOff,
  destinations,
  duration,
  feeds,
  integer,
  key,
  type Notes,
  name,
  networks,
  notes,
  oneOf,
  origins,
  path,
  pathOrOff,
  peers,
  tenant,
  toggle,
} from './kinds.ts'
import { jwt, tls } from './proofs.ts'

const TEBIBYTE = 2 ** 40

const channels = z
  .strictObject({
    max_bytes: key(integer(4_096, TEBIBYTE), 67_108_864n, 'Bytes of values that may wait in one channel.'),
    max_age: key(duration('1s', '3650d'), '7d', 'How long a value waits before it is dropped as expired.'),
    overflow: key(
      oneOf('drop-oldest', 'drop-newest', 'keep-latest'),
      'drop-oldest',
      'What gives way in a channel that is full. A consumer may choose any of the three.',
    ),
    window: key(integer(1, 16_777_216), 65_536n, 'Values that may be sent and not yet committed.'),
    window_bytes: key(integer(4_096, TEBIBYTE), 8_388_608n, 'The same in bytes; not more than `max_bytes`.'),
    expire: key(duration('1s', '3650d'), '7d', 'How long a channel without a connection is kept.'),
  })
  .superRefine((section, context) => {
    const { window_bytes, max_bytes } = section
    if (window_bytes <= max_bytes) return
    context.addIssue({
      code: 'custom',
      path: ['window_bytes'],
      params: { also: 'max_bytes' },
      message: `${window_bytes} is more than \`channels.max_bytes\` (${max_bytes}): lower the one or raise the other`,
    })
  })
  .describe(
    'Each of these is the default of a new channel and, but for `overflow`, the most that a consumer may ask for.',
  )

const sectionsOf = z.strictObject({
  producer: z
    .strictObject({
      name: key(
        name(),
        hostname(),
        'What this server calls itself, and the `host` of its own metrics.',
        'the host name',
      ),
      data_dir: key(path(), './data', 'Where everything durable lies; made if missing, for the owner only.'),
    })
    .describe('The server itself. A relative `data_dir` starts at the directory the server is started in.'),
  listen: z
    .strictObject({
      tcp: key(addressOrOff(), '127.0.0.1:7650', 'The Monitoring Protocol over TCP.'),
      http: key(addressOrOff(), '127.0.0.1:7651', 'Health, and the Monitoring Protocol over WebSocket.'),
      tls: key(addressOrOff(), '', 'The Monitoring Protocol over TLS from the first byte on; needs `[tls]`.'),
      https: key(addressOrOff(), '', 'What `http` offers, over TLS (`https://`, `wss://`); needs `[tls]`.'),
    })
    .describe('Where consumers connect. Port 0 takes any free port.'),
  tls,
  auth: z
    .strictObject({
      plain_on_loopback: key(toggle(), true, 'Whether a listener on loopback takes passwords and tokens without TLS.'),
      scram_iterations: key(integer(4_096, 10_000_000), 600_000n, 'PBKDF2 iterations of passwords set from now on.'),
    })
    .describe('How consumers prove who they are.'),
  jwt,
  http: z
    .strictObject({
      allowed_origins: key(origins(), [], 'Further origins whose pages may open the WebSocket.'),
      pages: key(
        pathOrOff(),
        '',
        'A directory whose files are served at `/`, as pages of your own; `/client.js` is there.',
      ),
      requests_per_minute: key(
        integer(1, 1_000_000),
        6_000n,
        'HTTP requests that one address may make, those that open a WebSocket among them.',
      ),
    })
    .describe('What browsers may do.'),
  storage: z
    .strictObject({
      synchronous: key(
        oneOf('full', 'normal'),
        'full',
        '`full`: what is stored survives a power cut; `normal`: only a crash of the process.',
      ),
    })
    .describe('The database.'),
  channels,
  limits: z
    .strictObject({
      connections: key(integer(1, 1_000_000), 10_000n, 'Open connections of all listeners together.'),
      channels_per_identity: key(integer(1, 1_000_000), 1_024n, 'Channels that one identity may have.'),
      instances_per_identity: key(integer(1, 16_777_216), 65_536n, 'Metric ids that one identity may hold.'),
    })
    .describe('What the server refuses to exceed.'),
  quota: z
    .strictObject({
      connections: key(integer(0, 1_000_000), 0n, 'Authenticated connections.'),
      channels: key(integer(0, 100_000_000), 0n, 'Channels that are kept.'),
      queued_bytes: key(integer(0, TEBIBYTE), 0n, 'Bytes of values that wait in all channels together.'),
      instances: key(
        integer(0, 1_000_000_000),
        0n,
        'Metrics that are bound, each match of a pattern counted by itself.',
      ),
      values_per_second: key(integer(0, 1_000_000_000), 0n, 'Values that its feeds may bring in.'),
      controls_per_minute: key(integer(0, 1_000_000), 0n, 'EXECUTEs.'),
      dials_per_minute: key(integer(0, 1_000_000), 60n, 'Attempts to connect to consumers [MON 14].'),
    })
    .describe('What each tenant may have; 0 is no limit of its own. `tenant.set` gives a tenant others.'),
  dial: z
    .strictObject({
      allow: key(
        destinations(),
        [],
        'Destinations that channels may be defined with, like `tls://*.example.org:7650` or `tcp://10.1.2.3:*`.',
      ),
      ca: key(pathOrOff(), '', 'Authorities for the certificates of `tls://` and `wss://`; else those of Node.'),
    })
    .describe(
      'Connections that the producer makes to consumers (DEF_CHANNEL). Nothing may be dialled unless it is here.',
    ),
  audit: z
    .strictObject({
      keep: key(duration('1h', '36500d'), '365d', 'How long records of the audit log are kept.'),
    })
    .describe('The audit log.'),
  host: z
    .strictObject({
      interval_ms: key(
        integer(10, 86_400_000),
        1_000n,
        'Milliseconds between two readings, where a consumer names none.',
      ),
    })
    .describe('The metrics of this machine.'),
  gmetric,
  smon: z
    .strictObject({
      tcp: key(addressOrOff(), '', 'The TCP address for smon streams; any number of sources may connect.'),
      udp: key(addressOrOff(), '', 'The UDP address for smon datagrams, each a stream of its own.'),
      tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
      feed: key(
        feeds(),
        [],
        'Sources of other tenants, by the networks they send from; the first that fits counts. Only in the file.',
      ),
      allow: key(networks(), ['127.0.0.0/8', '::1/128'], 'Source addresses that streams are taken from.'),
      max_sources: key(integer(1, 100_000), 1_000n, 'Sources at once: open streams, and senders of datagrams.'),
      max_tokens: key(integer(1, 1_000_000), 10_000n, 'Tokens that one stream may define.'),
      max_metrics: key(integer(1, 16_777_216), 100_000n, 'Metrics remembered at once, of all sources together.'),
      source: key(peers(), [], 'Names for sources that are otherwise called by address and port. Only in the file.'),
    })
    .describe('smon streams. Off unless an address is named, which must be free then.'),
  mono,
  log: z
    .strictObject({
      level: key(
        oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
        'info',
        'The least to write down.',
      ),
    })
    .describe('The log: JSON lines on standard error.'),
  exec: execs,
  qmf: qmfs,
})

export const schema = sectionsOf.superRefine(({ listen, tls }, context) => {
  if (tls.cert !== '') return
  for (const key of ['tls', 'https'] as const) {
    if (listen[key] === undefined) continue
    const message = 'needs a certificate: name `tls.cert` and `tls.key`, or leave this key out'
    context.addIssue({ code: 'custom', path: ['listen', key], params: { also: key }, message })
  }
})

/** A key with everything known about it. */
export interface Setting extends Notes {
  readonly section: string
  readonly key: string
  /** The environment variable that overrides it. */
  readonly variable: string
}

/** `[[exec]]` and `[[qmf]]` are no sections: lists of tables, only in the file. */
const { exec: _exec, qmf: _qmf, ...sectionShapes } = schema.shape
const sections: Readonly<Record<string, z.ZodObject>> = sectionShapes

export const sectionNames: readonly string[] = Object.keys(sections)

export function sectionAbout(section: string): string {
  return sections[section]?.description ?? ''
}

/** Every key, in the order of the schema. */
export const settings: readonly Setting[] = Object.entries(sections).flatMap(([section, { shape }]) =>
  Object.entries(shape).map(([key, type]) => {
    const found = notes.get(type)
    if (!found) throw new Error(`${section}.${key} is not declared with key()`)
    return { ...found, section, key, variable: `CINNABAR_${section}_${key}`.toUpperCase() }
  }),
)
