/** The section [history]: what is remembered, for how long, and how much of the disk it may take (docs/history.md). */
import { z } from 'zod'
import {
  bytesOrShare,
  duration,
  inBytes,
  isOwnMachine,
  key,
  liveKey,
  pathOrOff,
  plainText,
  type SectionConfig,
  toggle,
} from '../../kit/config.ts'

/** What is pushed comes anyway; what is measured or scraped is so all the time because of this. */
const METRICS = [
  ...['gmetric.*', 'smon.*', 'mono.*', 'statsd.*', 'otlp.*', 'prometheus.*'],
  ...['rules.*', 'host.*', 'producer.stats.*'],
]

const MEBIBYTE = 2 ** 20
const PEBIBYTE = 2 ** 50

/** `"0"`, also with a unit, or a duration. */
function durationOrOff(min: string, max: string) {
  const { type, expected } = duration(min, max)
  const off = z
    .string()
    .regex(/^0(ms|s|m|h|d)?$/)
    .transform(() => 0)
  return { type: z.union([off, type]), expected: `"0" for off, or ${expected}` }
}

function patterns() {
  return {
    // The family has to be known: whose metrics they are, the server's or a tenant's, depends on it.
    type: z.array(z.string().regex(/^[^*.\p{Cc}]+[.]\P{Cc}{1,250}$/u)).max(64),
    expected:
      'a list of at most 64 names or patterns of metrics that begin with a family and a dot, like ["gmetric.*", "host.load.one"]',
  }
}

function engineUrl() {
  return {
    type: z.string().refine((text) => {
      if (text === '') return true
      if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false
      const { username, password, search, hash } = new URL(text)
      return username === '' && password === '' && search === '' && hash === ''
    }),
    expected:
      '"" for none, or a URL like "https://metrics.example/prometheus", to which /api/v1 is added, without a user, "?" or "#"',
    isSecret: true,
  }
}

function labelName() {
  return {
    type: z.string().regex(/^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$|^$/),
    expected: 'the name of a label: letters, digits and "_", and no digit in front',
  }
}

const keys = z
  .strictObject({
    keep: liveKey(durationOrOff('1h', '36500d'), '30d', 'How long samples are kept; `"0"` switches the history off.'),
    keep_rollups: liveKey(duration('1h', '36500d'), '730d', 'How long rollups of five minutes are kept.'),
    max_bytes: liveKey(
      bytesOrShare(PEBIBYTE),
      '10%',
      'Bytes of all files, or a share of the file system with `data_dir`, at least 1 GiB or a quarter of a small one; beyond that ' +
        'the oldest days go first.',
    ),
    metrics: liveKey(
      patterns(),
      METRICS,
      'What is recorded. It is measured or scraped all the time, as any consumer has it.',
    ),
    resolution: liveKey(
      durationOrOff('1ms', '1h'),
      '1s',
      'Of the values of a pushed series in one such span of time only the first is recorded; `"0"`: all are.',
    ),
    interval: liveKey(
      duration('1s', '1h'),
      '10s',
      'How often what is measured on request, such as `host.*`, is measured.',
    ),
    below: liveKey(toggle(), false, 'Whether the same is recorded of the servers that this one consumes.'),
    engine: key(
      engineUrl(),
      '',
      'A VictoriaMetrics, Mimir or Thanos that answers expressions in place of what is recorded here.',
    ),
    engine_tenant_label: key(
      labelName(),
      '',
      'The label that says there whose a series is: `tenant_label` of the drain. Needed with `engine`.',
    ),
    engine_token_file: key(
      pathOrOff(),
      '',
      'A file with a token, which `engine` is sent as `Authorization: Bearer`. Read for each query.',
    ),
    engine_username: key(plainText(), '', 'A user name for HTTP Basic authentication at `engine`.'),
    engine_password_file: key(pathOrOff(), '', 'A file with the password of that user. Read for each query.'),
    engine_ca: key(pathOrOff(), '', 'Authorities for the certificate of `engine`, a PEM file; else those of Node.'),
  })
  .superRefine((section, context) => {
    const { engine, engine_tenant_label, engine_token_file, engine_username, engine_password_file } = section
    const add = (name: keyof typeof section, also: keyof typeof section, message: string): void =>
      context.addIssue({ code: 'custom', path: [name], params: { also }, message })
    // What is no URL has been reported.
    if (!URL.canParse(engine)) return
    if (engine_tenant_label === '')
      add(
        'engine',
        'engine_tenant_label',
        'needs `history.engine_tenant_label`, which tells series of tenants apart there',
      )
    if ((engine_username === '') !== (engine_password_file === undefined))
      add('engine_username', 'engine_password_file', 'goes together with `history.engine_password_file`')
    if (engine_token_file !== undefined && engine_username !== '')
      add('engine_token_file', 'engine_username', 'is given, and `history.engine_username` too: one of them is sent')
    const { protocol, hostname } = new URL(engine)
    const hasSecret = engine_token_file !== undefined || engine_username !== ''
    if (hasSecret && protocol === 'http:' && !isOwnMachine(hostname))
      add('engine', 'engine_token_file', 'would be sent a token or password in clear: use https')
  })
  .describe(
    'The history: what was accepted is remembered. What it records, and what that costs: [history.md](history.md).',
  )

export const historySection = {
  type: keys,
  read: (given: z.output<typeof keys>) => ({
    keepMs: given.keep,
    keepRollupsMs: given.keep_rollups,
    maxBytes: given.max_bytes,
    metrics: given.metrics,
    resolutionMs: given.resolution,
    intervalMs: given.interval,
    below: given.below,
    engine: engineOf(given),
  }),
}

/** Undefined if what is recorded here is asked. */
function engineOf(given: z.output<typeof keys>) {
  if (given.engine === '') return undefined
  return {
    href: given.engine,
    tenantLabel: given.engine_tenant_label,
    tokenFile: given.engine_token_file,
    username: given.engine_username,
    passwordFile: given.engine_password_file,
    ca: given.engine_ca,
  }
}
export type EngineKeys = NonNullable<ReturnType<typeof engineOf>>

export type HistorySection = SectionConfig<typeof historySection>

/** A share is no less than this, */
const LEAST_BYTES = 1_024 * MEBIBYTE
/** but no more than this part of a small file system. */
const MOST_OF_SMALL = 0.25

/** How many bytes all files may have on a file system of this size. */
export function mostBytes({ maxBytes }: Pick<HistorySection, 'maxBytes'>, sizeBytes: number): number {
  const most = inBytes(maxBytes, sizeBytes)
  if (typeof maxBytes === 'number') return most
  return Math.max(most, Math.min(LEAST_BYTES, Math.floor(sizeBytes * MOST_OF_SMALL)))
}
