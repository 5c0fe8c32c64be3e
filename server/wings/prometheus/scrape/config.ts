/** The tables `[[scrape]]`: programs whose metrics are fetched as text. A URL may hold a password by mistake, so no message shows it. */
import { z } from 'zod'
import { nameProblem } from '../../../../protocol/monitor/value.ts'
import {
  duration,
  hostNameOrOff,
  integer,
  key,
  needed,
  oneOf,
  optional,
  pathOrOff,
  plainText,
  tableList,
  tenant,
  toggle,
  wireName,
} from '../../../kit/config.ts'
import { fromForeign, MAX_LABEL_BYTES } from '../../../kit/metrics.ts'
import {
  addressWithPort,
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_SAMPLES,
  hostOfAddress,
  isThisMachine,
  MAX_TARGETS,
  type ScrapeJob,
  shownAddress,
} from './job.ts'
import { DEFAULT_RULE, RELABEL_ACTIONS, type RelabelRule, ruleProblem } from './relabel.ts'
import { TARGET_FILE } from './target-files.ts'

const MAX_LABELS = 32
const MAX_FILES = 100
const MAX_RULES = 1_000

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
  type: z.record(z.string(), z.string()).refine((table) => Object.keys(table).length <= MAX_LABELS),
  expected: `a table of at most ${MAX_LABELS} labels with a text each, like { env = "prod" }; not \`name\`, \`time\` and the like`,
})

const targets = () => ({
  type: z.array(z.string()).max(MAX_TARGETS),
  expected: `a list of at most ${MAX_TARGETS} addresses like ["n1.example:9100", "[::1]:9100"]`,
})

const files = () => ({
  type: z.array(z.string().regex(TARGET_FILE)).max(MAX_FILES),
  expected:
    'a list of paths that end in .json, .yml or .yaml, like ["targets/*.yml"], with stars in the last part alone',
})

const metricsPath = () => ({
  type: z.string().regex(/^\/\P{Cc}*$/u),
  expected: 'a path like "/metrics", without parameters',
})

const params = () => ({
  type: z.record(z.string().min(1), z.array(z.string()).min(1)),
  expected: 'a table of parameters with a list of texts each, like { module = ["http_2xx"] }',
})

const names = () => ({ type: z.array(z.string().min(1)), expected: 'a list of labels' })
const text = () => ({ type: z.string(), expected: 'a text' })

const rule = z
  .strictObject({
    action: key(
      oneOf(...RELABEL_ACTIONS),
      DEFAULT_RULE.action,
      'What it does, as in Prometheus: [sources/scrape.md](sources/scrape.md#relabelling).',
    ),
    source_labels: key(names(), [], 'The labels whose texts are taken, with `separator` between them.'),
    separator: key(text(), DEFAULT_RULE.separator, 'What stands between the texts.'),
    regex: key(
      text(),
      DEFAULT_RULE.regex,
      'What the whole text, or the name of a label, has to match, in the syntax of RE2.',
    ),
    modulus: key(integer(0, Number.MAX_SAFE_INTEGER), 0n, 'For `hashmod`: the remainder is below this.'),
    target_label: key(
      text(),
      DEFAULT_RULE.targetLabel,
      'The label that is set or compared. For `replace` it may have `$1`.',
    ),
    replacement: key(
      text(),
      DEFAULT_RULE.replacement,
      'What the label is set to, or for `labelmap` its name: `$1` stands for a group of `regex`.',
    ),
  })
  .transform(
    ({ source_labels, target_label, ...rest }): RelabelRule => ({
      ...rest,
      sourceLabels: source_labels,
      targetLabel: target_label,
    }),
  )
  .superRefine((rule, context) => {
    const message = ruleProblem(rule)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

const rules = (about: string) => z.array(rule).max(MAX_RULES).default([]).describe(about)

const keys = z.strictObject({
  name: needed(
    wireName(),
    'What the targets are called: the label `job` of their series, unless `job` or `labels` says otherwise. Several tables may ' +
      'have the same.',
  ),
  job: optional(wireName(), 'The label `job`, if it is not the `name`.'),
  url: optional(
    url(),
    'Where the metrics of one target are; without a path `/metrics`. The label `instance` of its series is the host with the ' +
      'port, unless `labels` has one. A table has either this, or `targets` and `file_sd`.',
  ),
  targets: key(
    targets(),
    [],
    'Addresses of any number of targets, each a host with or without a port; by default that of `scheme`. The label `instance` ' +
      'is the address with the port.',
  ),
  file_sd: key(
    files(),
    [],
    'Files of JSON or YAML with more `targets` and their `labels`, as `file_sd` of Prometheus has them; read again when they change.',
  ),
  file_sd_refresh: key(
    duration('1s', '1d'),
    '5m',
    'After that a file of `file_sd` is read again even if it looks the same.',
  ),
  scheme: key(oneOf('http', 'https'), 'http', 'How `targets` are asked.'),
  metrics_path: key(metricsPath(), '/metrics', 'Where the metrics of `targets` are.'),
  params: key(params(), {}, 'Parameters of the requests to `targets`.', 'none'),
  tenant: key(tenant(), 'default', 'The tenant that these metrics belong to.'),
  interval: key(duration('1s', '1d'), '15s', 'How often it is scraped while somebody wants its metrics.'),
  timeout: key(duration('100ms', '10m'), '10s', 'How long it may take to answer; never longer than `interval`.'),
  labels: key(labels(), {}, 'Labels that all its series get.', 'none'),
  relabel: rules(
    'Rules that change the labels of each of `targets`, or drop it, one after the other; for the `[[scrape]]` above them.',
  ),
  metric_relabel: rules('The same for each series that a target gives, with its name as the label `__name__`.'),
  honor_labels: key(
    toggle(),
    false,
    'Whether a label of the target wins over one of the same name from here; otherwise it is called `exported_` and its name.',
  ),
  honor_timestamps: key(toggle(), true, 'Whether times that the target gives are taken.'),
  max_samples: key(integer(1, 10_000_000), BigInt(DEFAULT_MAX_SAMPLES), 'With more samples a scrape fails.'),
  max_bytes: key(
    integer(1_024, 1_073_741_824),
    BigInt(DEFAULT_MAX_BYTES),
    'With a longer body a scrape fails, before or after decompression.',
  ),
  token_file: key(pathOrOff(), '', 'A file with a bearer token, read at each scrape.'),
  username: key(plainText(), '', 'The user for basic authentication, with `password_file`.'),
  password_file: key(pathOrOff(), '', 'A file with the password, read at each scrape.'),
  ca: key(pathOrOff(), '', 'Certificate authorities for an `https://` URL; by default those of Node.'),
  cert: key(pathOrOff(), '', 'A client certificate with its chain, a PEM file, read at each scrape, like `key`.'),
  key: key(pathOrOff(), '', 'The private key of `cert`, a PEM file without a passphrase.'),
  server_name: key(hostNameOrOff(), '', 'The name that the certificate must be for, if it is not the host of the URL.'),
})

const table = keys
  .superRefine((table, context) => {
    for (const { message, key } of problemsOf(table)) {
      context.addIssue(
        key === undefined
          ? { code: 'custom', message }
          : { code: 'custom', path: [key], params: { also: key }, message },
      )
    }
  })
  .transform((table): ScrapeJob => {
    const { url, targets, labels } = table
    return {
      name: table.name,
      job: table.job ?? table.name,
      url: url?.href,
      groups: [{ targets: url === undefined ? targets : [hostAndPort(url)], labels }],
      files: table.file_sd.length === 0 ? [] : [{ paths: table.file_sd, refreshMs: table.file_sd_refresh, labels }],
      scheme: table.scheme,
      metricsPath: table.metrics_path,
      params: table.params,
      relabel: table.relabel,
      metricRelabel: table.metric_relabel,
      tenant: table.tenant,
      intervalMs: table.interval,
      timeoutMs: Math.min(table.timeout, table.interval),
      honorsLabels: table.honor_labels,
      honorsTimestamps: table.honor_timestamps,
      maxSamples: table.max_samples,
      sampleLimit: undefined,
      maxBytes: table.max_bytes,
      tokenFile: table.token_file,
      username: table.username,
      passwordFile: table.password_file,
      ca: table.ca,
      cert: table.cert,
      key: table.key,
      serverName: table.server_name,
    }
  })

export const scrapeSection = tableList(
  z
    .array(table)
    .max(1000)
    .default([])
    .describe(
      'Programs whose metrics are scraped, any number in each table; only in the file. What they give: ' +
        '[sources/scrape.md](sources/scrape.md).',
    ),
  { isLive: true },
)
interface Problem {
  readonly message: string
  /** The key that it is about; undefined if it is about several. */
  readonly key?: 'labels' | 'targets'
}

/** The contradictions in a table. */
function* problemsOf(table: z.output<typeof keys>): Generator<Problem> {
  const { url, targets, scheme, token_file, username, password_file, ca, cert, key, server_name } = table
  for (const [name, text] of Object.entries(table.labels)) {
    const message = labelProblem(name, text)
    if (message !== undefined) yield { key: 'labels', message }
  }
  for (const target of table.relabel.length > 0 ? [] : targets) {
    if (addressWithPort(target, scheme) !== undefined) continue
    yield { key: 'targets', message: `${JSON.stringify(shownAddress(target))} is no address like "n1.example:9100"` }
  }
  const areMany = targets.length > 0 || table.file_sd.length > 0
  // Any target may have another scheme and address then.
  const isRelabelled = table.relabel.length > 0
  const isTls = (url?.protocol ?? `${scheme}:`) === 'https:'
  const isNamed = username !== ''
  const hasSecret = token_file !== undefined || password_file !== undefined
  if (url !== undefined && areMany) yield { message: '`url` excludes `targets` and `file_sd`' }
  if (url === undefined && !areMany) yield { message: 'it needs `url`, `targets` or `file_sd`' }
  if (url !== undefined && (scheme !== 'http' || table.metrics_path !== '/metrics' || hasKeys(table.params)))
    yield { message: '`scheme`, `metrics_path` and `params` are for `targets`: a `url` has its own' }
  if (url !== undefined && isRelabelled) yield { message: '`relabel` is for `targets`: write the `url` as it is to be' }
  if (isNamed !== (password_file !== undefined)) yield { message: '`username` and `password_file` are needed together' }
  if (isNamed && token_file !== undefined) yield { message: '`token_file` and `username` exclude each other' }
  const hosts = url === undefined ? targets.map(hostOfAddress) : [url.hostname]
  if (hasSecret && !isTls && !isRelabelled && !hosts.every(isThisMachine))
    yield { message: 'a secret is only sent over `https://`, or to this machine' }
  if (!isTls && !isRelabelled && (ca ?? cert ?? server_name) !== undefined)
    yield { message: '`ca`, `cert` and `server_name` are for an `https://` url, or `scheme = "https"`' }
  if ((cert === undefined) !== (key === undefined)) yield { message: '`cert` and `key` are needed together' }
}

function labelProblem(name: string, text: string): string | undefined {
  if (fromForeign(name) !== name) return `a label cannot be called \`${name}\`: this name is reserved, choose another`
  const problem = nameProblem(name)
  if (problem !== undefined) return `a label has ${problem}`
  const fits = text.isWellFormed() && new TextEncoder().encode(text).length <= MAX_LABEL_BYTES
  return fits ? undefined : `the text of \`${name}\` is not Unicode, or has more than ${MAX_LABEL_BYTES} bytes`
}

const hasKeys = (table: object): boolean => Object.keys(table).length > 0

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
