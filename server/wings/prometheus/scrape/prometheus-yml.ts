/**
 * The `scrape_configs` of a `prometheus.yml`, as jobs. Whatever it says about scraping that this server does not do is refused by
 * its name, with its line: a setting that is passed over would be a promise. Sections that are not about scraping, such as rules,
 * are those of Prometheus alone.
 */

import { dirname, resolve } from 'node:path'
import { boundedDurationMs } from '../../../../promql/parse/numbers.ts'
import { ConfigError, type ConfigProblem } from '../../../kit/config.ts'
import { readYaml, type YamlTable } from '../../../kit/yaml-table.ts'
import {
  addressWithPort,
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_SAMPLES,
  type LabelTexts,
  type ScrapeJob,
  shownAddress,
  type TargetGroup,
  type WatchedPaths,
} from './job.ts'
import { DEFAULT_RULE, RELABEL_ACTIONS, type RelabelRule, ruleProblem } from './relabel.ts'
import { boundedText, looksOf, TARGET_FILE } from './target-files.ts'

/** Of the whole file: what is not about scraping. */
const OF_PROMETHEUS = ['alerting', 'rule_files', 'remote_write', 'remote_read', 'storage', 'tracing', 'otlp', 'runtime']
/** The same in `global`. */
const GLOBAL_OF_PROMETHEUS = ['evaluation_interval', 'rule_query_offset', 'external_labels', 'query_log_file']
const DEFAULT_INTERVAL = 60_000
const DEFAULT_TIMEOUT = 10_000
const DEFAULT_REFRESH = 300_000
const MIN_INTERVAL_MS = 1_000

/** The jobs of a file, for a tenant. Rejects with ConfigError that has all problems. */
export async function readPrometheusYml(path: string, tenant: string): Promise<readonly ScrapeJob[]> {
  const problems: ConfigProblem[] = []
  let text: string
  try {
    text = await boundedText(path, await looksOf(path))
  } catch (error) {
    throw new ConfigError([{ source: path, message: `cannot be read: ${(error as Error).message}` }])
  }
  const file = await readYaml(text, (message, line) => problems.push({ source: path, line, message }))
  const jobs = file === undefined ? [] : new FileReader(file, dirname(path), tenant).jobs()
  if (problems.length > 0) throw new ConfigError(problems)
  return jobs
}

class FileReader {
  readonly #file: YamlTable
  readonly #directory: string
  readonly #tenant: string

  constructor(file: YamlTable, directory: string, tenant: string) {
    this.#file = file
    this.#directory = directory
    this.#tenant = tenant
  }

  jobs(): readonly ScrapeJob[] {
    const file = this.#file
    const global = file.table('global')
    file.allow(['global', 'scrape_configs', ...OF_PROMETHEUS])
    global.allow([...GLOBAL_OF_PROMETHEUS, ...LIMITS, 'scrape_interval', 'scrape_timeout'])
    const jobs = file.tables('scrape_configs').map((table) => this.#job(table, global))
    const names = new Set<string>()
    for (const [index, { job }] of jobs.entries()) {
      if (names.has(job)) file.say(`two jobs are called ${JSON.stringify(job)}`, ['scrape_configs', index])
      names.add(job)
    }
    return jobs
  }

  #job(table: YamlTable, global: YamlTable): ScrapeJob {
    table.allow(JOB_KEYS)
    const job = table.text('job_name')
    if (job === '') table.say('it needs a `job_name`')
    const intervalMs = durationIn(table, 'scrape_interval', durationIn(global, 'scrape_interval', DEFAULT_INTERVAL))
    const byDefault = Math.min(durationIn(global, 'scrape_timeout', DEFAULT_TIMEOUT), intervalMs)
    const timeoutMs = durationIn(table, 'scrape_timeout', byDefault)
    if (intervalMs < MIN_INTERVAL_MS) table.say('`scrape_interval` is shorter than 1s')
    if (timeoutMs === 0) table.say('`scrape_timeout` is 0')
    if (timeoutMs > intervalMs) table.say('`scrape_timeout` is longer than `scrape_interval`', ['scrape_timeout'])
    const scheme = table.oneOf('scheme', ['http', 'https'], 'http')
    for (const [key, only] of ONLY)
      if (table.flag(key, only) !== only) table.say(`\`${key}: ${!only}\` is not supported`, [key])
    const relabel = rulesIn(table, 'relabel_configs')
    const sampleLimit = countIn(table, 'sample_limit') || countIn(global, 'sample_limit') || undefined
    return {
      name: job,
      job,
      url: undefined,
      groups: table.tables('static_configs').map((group) => groupIn(group, scheme, relabel.length > 0)),
      files: table.tables('file_sd_configs').map((files) => this.#files(files)),
      scheme,
      metricsPath: table.text('metrics_path', '/metrics'),
      params: paramsIn(table),
      relabel,
      metricRelabel: rulesIn(table, 'metric_relabel_configs'),
      tenant: this.#tenant,
      intervalMs,
      timeoutMs,
      honorsLabels: table.flag('honor_labels', false),
      honorsTimestamps: table.flag('honor_timestamps', true),
      maxSamples: Math.max(DEFAULT_MAX_SAMPLES, sampleLimit ?? 0),
      sampleLimit,
      maxBytes: bytesIn(table) || bytesIn(global) || DEFAULT_MAX_BYTES,
      ...this.#credentials(table),
      ...this.#tls(table.table('tls_config')),
    }
  }

  #credentials(table: YamlTable): Pick<ScrapeJob, 'tokenFile' | 'username' | 'passwordFile'> {
    const basic = table.table('basic_auth')
    const authorization = table.table('authorization')
    basic.allow(['username', 'password_file'], FILE_INSTEAD)
    authorization.allow(['type', 'credentials_file'], FILE_INSTEAD)
    const type = authorization.text('type', 'Bearer')
    if (type.toLowerCase() !== 'bearer')
      authorization.say(`the type ${JSON.stringify(type)} is not supported`, ['type'])
    const tokens = [authorization.text('credentials_file'), table.text('bearer_token_file')].filter(
      (path) => path !== '',
    )
    const username = basic.text('username')
    const passwordFile = basic.text('password_file')
    if ((username === '') !== (passwordFile === '')) basic.say('`username` and `password_file` are needed together')
    if (tokens.length + (username === '' ? 0 : 1) > 1)
      table.say('`basic_auth`, `authorization` and `bearer_token_file` exclude each other')
    return { tokenFile: this.#path(tokens[0] ?? ''), username, passwordFile: this.#path(passwordFile) }
  }

  #tls(table: YamlTable): Pick<ScrapeJob, 'ca' | 'cert' | 'key' | 'serverName'> {
    table.allow(['ca_file', 'cert_file', 'key_file', 'server_name', 'insecure_skip_verify'], FILE_INSTEAD)
    if (table.flag('insecure_skip_verify', false))
      table.say('`insecure_skip_verify: true` is not supported: name the authority by `ca_file`', [
        'insecure_skip_verify',
      ])
    const [cert, key] = [this.#path(table.text('cert_file')), this.#path(table.text('key_file'))]
    if ((cert === undefined) !== (key === undefined)) table.say('`cert_file` and `key_file` are needed together')
    return { ca: this.#path(table.text('ca_file')), cert, key, serverName: table.text('server_name') || undefined }
  }

  #files(table: YamlTable): WatchedPaths {
    table.allow(['files', 'refresh_interval'])
    const files = table.texts('files')
    if (files.length === 0) table.say('it needs `files`')
    for (const [index, path] of files.entries()) {
      if (!TARGET_FILE.test(path))
        table.say(`${JSON.stringify(path)} is no path for \`file_sd_configs\``, ['files', index])
    }
    const paths = files.map((path) => resolve(this.#directory, path))
    return { paths, refreshMs: durationIn(table, 'refresh_interval', DEFAULT_REFRESH), labels: {} }
  }

  /** Relative paths start at the directory of the file. */
  #path(path: string): string | undefined {
    return path === '' ? undefined : resolve(this.#directory, path)
  }
}

const LIMITS = ['sample_limit', 'body_size_limit']
/** Settings that have to be as this server does it anyway. */
const ONLY = [
  ['follow_redirects', false],
  ['enable_compression', true],
  ['track_timestamps_staleness', false],
] as const
const JOB_KEYS = [
  ...[
    'job_name',
    'honor_labels',
    'honor_timestamps',
    'params',
    'scrape_interval',
    'scrape_timeout',
    'metrics_path',
    'scheme',
  ],
  ...['static_configs', 'file_sd_configs', 'relabel_configs', 'metric_relabel_configs'],
  ...['basic_auth', 'authorization', 'bearer_token_file', 'tls_config'],
  ...LIMITS,
  ...ONLY.map(([key]) => key),
]
const FILE_INSTEAD: Readonly<Record<string, string>> = {
  password: 'write it into a file, and name that by `password_file`',
  credentials: 'write it into a file, and name that by `credentials_file`',
}

function groupIn(table: YamlTable, scheme: 'http' | 'https', isRelabelled: boolean): TargetGroup {
  table.allow(['targets', 'labels'])
  const targets = table.texts('targets')
  for (const [index, target] of targets.entries()) {
    // Rules may make an address of anything.
    if (isRelabelled || addressWithPort(target, scheme) !== undefined) continue
    table.say(`${JSON.stringify(shownAddress(target))} is no address like "n1.example:9100"`, ['targets', index])
  }
  return { targets, labels: labelsIn(table) }
}

function labelsIn(table: YamlTable): LabelTexts {
  const labels = table.table('labels')
  return Object.fromEntries(labels.keys.map((name) => [name, labels.text(name)]))
}

function paramsIn(table: YamlTable): Readonly<Record<string, readonly string[]>> {
  const params = table.table('params')
  return Object.fromEntries(params.keys.map((name) => [name, params.texts(name)]))
}

function rulesIn(table: YamlTable, key: string): readonly RelabelRule[] {
  return table.tables(key).map((rule) => {
    rule.allow(['action', 'source_labels', 'separator', 'regex', 'modulus', 'target_label', 'replacement'])
    const made: RelabelRule = {
      action: rule.oneOf('action', RELABEL_ACTIONS, DEFAULT_RULE.action),
      sourceLabels: rule.texts('source_labels'),
      separator: rule.text('separator', DEFAULT_RULE.separator),
      regex: rule.text('regex', DEFAULT_RULE.regex),
      modulus: countIn(rule, 'modulus'),
      targetLabel: rule.text('target_label', DEFAULT_RULE.targetLabel),
      replacement: rule.text('replacement', DEFAULT_RULE.replacement),
    }
    const problem = ruleProblem(made)
    if (problem !== undefined) rule.say(problem)
    return made
  })
}

function durationIn(table: YamlTable, key: string, byDefault: number): number {
  return table.read(key, boundedDurationMs, 'a duration like "1m30s"') ?? byDefault
}

function countIn(table: YamlTable, key: string): number {
  const count = (text: string): number | undefined => (/^\d{1,15}$/.test(text) ? Number(text) : undefined)
  return table.read(key, count, 'a whole number') ?? 0
}

/** Units of 1024, as Prometheus has them. */
function bytesIn(table: YamlTable): number {
  const bytes = (text: string): number | undefined => {
    const match = /^(\d{1,9})(?:([KMGT])i?)?B$/.exec(text)
    if (match === null) return text === '0' ? 0 : undefined
    const unit = match[2] === undefined ? 0 : 'KMGT'.indexOf(match[2]) + 1
    return Number(match[1]) * 1024 ** unit
  }
  return table.read('body_size_limit', bytes, 'a size like "10MB"') ?? 0
}
