/** The tables `[[scrape]]`: programs whose metrics are fetched as text. A URL may hold a password by mistake, so no message shows it. */
import { z } from 'zod'
import { nameProblem } from '../../../../protocol/monitor/value.ts'
import {
  duration,
  hostNameOrOff,
  integer,
  isLoopback,
  key,
  needed,
  pathOrOff,
  plainText,
  type SectionConfig,
  tableList,
  tenant,
  toggle,
  wireName,
} from '../../../kit/config.ts'
import { fromForeign, MAX_LABEL_BYTES } from '../../../kit/metrics.ts'

const MAX_LABELS = 32

const url = () => ({
  type: z.string().transform((text, context): URL => {
    const parsed = parseTargetUrl(text)
    if (parsed !== undefined) return parsed
    context.issues.push({ code: 'invalid_format', format: 'text', input: text })
    return z.NEVER
  }),
  expected: 'a URL like "http://127.0.0.1:9100/metrics", with http or https and without a user or password',
  isSecret: true,
})

const labels = () => ({
  type: z
    .record(
      z.string().refine((name) => nameProblem(name) === undefined && fromForeign(name) === name),
      z.string().refine((text) => text.isWellFormed() && new TextEncoder().encode(text).length <= MAX_LABEL_BYTES),
    )
    .refine((table) => Object.keys(table).length <= MAX_LABELS),
  expected: `a table of at most ${MAX_LABELS} labels with a text each, like { env = "prod" }; not \`name\`, \`time\` and the like`,
})

const table = z
  .strictObject({
    name: needed(wireName(), 'What the target is called: the label `job` of its series, unless `labels` has one.'),
    url: needed(
      url(),
      'Where its metrics are; without a path `/metrics`. The label `instance` of its series is the host with the port, unless ' +
        '`labels` has one.',
    ),
    tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
    interval: key(duration('1s', '1d'), '15s', 'How often it is scraped while somebody wants its metrics.'),
    timeout: key(duration('100ms', '10m'), '10s', 'How long it may take to answer; never longer than `interval`.'),
    labels: key(labels(), {}, 'Labels that all its series get.', 'none'),
    honor_labels: key(
      toggle(),
      false,
      'Whether a label of the target wins over one of the same name from here; otherwise it is called `exported_` and its name.',
    ),
    honor_timestamps: key(toggle(), true, 'Whether times that the target gives are taken.'),
    max_samples: key(integer(1, 10_000_000), 100_000n, 'With more samples a scrape fails.'),
    max_bytes: key(
      integer(1_024, 1_073_741_824),
      67_108_864n,
      'With a longer body a scrape fails, before or after decompression.',
    ),
    token_file: key(pathOrOff(), '', 'A file with a bearer token, read at each scrape.'),
    username: key(plainText(), '', 'The user for basic authentication, with `password_file`.'),
    password_file: key(pathOrOff(), '', 'A file with the password, read at each scrape.'),
    ca: key(pathOrOff(), '', 'Certificate authorities for an `https://` URL; by default those of Node.'),
    cert: key(pathOrOff(), '', 'A client certificate with its chain, a PEM file, read at each scrape, like `key`.'),
    key: key(pathOrOff(), '', 'The private key of `cert`, a PEM file without a passphrase.'),
    server_name: key(
      hostNameOrOff(),
      '',
      'The name that the certificate must be for, if it is not the host of the URL.',
    ),
  })
  .superRefine(({ url, token_file, username, password_file, ca, cert, key, server_name }, context) => {
    const say = (message: string): void => context.addIssue({ code: 'custom', message })
    const isTls = url.protocol === 'https:'
    const isNamed = username !== ''
    const hasSecret = token_file !== undefined || password_file !== undefined
    if (isNamed !== (password_file !== undefined)) say('`username` and `password_file` are needed together')
    if (isNamed && token_file !== undefined) say('`token_file` and `username` exclude each other')
    if (hasSecret && !isTls && !isThisMachine(url)) say('a secret is only sent over `https://`, or to this machine')
    if (!isTls && (ca ?? cert ?? server_name) !== undefined)
      say('`ca`, `cert` and `server_name` are for an `https://` url')
    if ((cert === undefined) !== (key === undefined)) say('`cert` and `key` are needed together')
  })
  .transform(({ interval, timeout, honor_labels, honor_timestamps, max_samples, max_bytes, token_file, ...rest }) => ({
    name: rest.name,
    url: rest.url.href,
    tenant: rest.tenant,
    intervalMs: interval,
    timeoutMs: Math.min(timeout, interval),
    labels: { job: rest.name, instance: hostAndPort(rest.url), ...rest.labels },
    honorsLabels: honor_labels,
    honorsTimestamps: honor_timestamps,
    maxSamples: max_samples,
    maxBytes: max_bytes,
    tokenFile: token_file,
    username: rest.username,
    passwordFile: rest.password_file,
    ca: rest.ca,
    cert: rest.cert,
    key: rest.key,
    serverName: rest.server_name,
  }))

export const scrapeSection = tableList(
  z
    .array(table)
    .max(1000)
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'two of them have the same `name`')
    .default([])
    .describe(
      'Programs whose metrics are scraped, one table each; only in the file. What they give: ' +
        '[sources/scrape.md](sources/scrape.md).',
    ),
  { isLive: true },
)
/** A program to scrape. */
export type ScrapeTable = SectionConfig<typeof scrapeSection>[number]

/** Undefined if `text` is not such a URL. */
function parseTargetUrl(text: string): URL | undefined {
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.username !== '' || url.password !== '' || url.hash !== '') return undefined
  if (url.pathname === '/') url.pathname = '/metrics'
  return url
}

/** The port stands there even if it is that of the scheme, as Prometheus has it. */
function hostAndPort({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`
}

function isThisMachine({ hostname }: URL): boolean {
  return hostname === 'localhost' || isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'))
}
