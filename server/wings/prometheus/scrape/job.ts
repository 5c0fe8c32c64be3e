/**
 * A job says how some targets are scraped, and where they are: a table `[[scrape]]`. What it says of one target, with all labels
 * of that target, is a `TargetSpec`. Targets become these as they do in Prometheus, by labels that begin with `__`: there is one
 * for each part of the URL.
 */
import { boundedDurationMs, durationText } from '../../../../promql/parse/numbers.ts'
import { isLoopback } from '../../../kit/config.ts'
import { type MutableLabels, Relabelling, type RelabelRule } from './relabel.ts'

/** How each target of a job is scraped. */
export interface Scraping {
  /** What its targets are called. */
  readonly name: string
  readonly tenant: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly honorsLabels: boolean
  readonly honorsTimestamps: boolean
  readonly maxSamples: number
  /** With more samples that the rules keep, a scrape fails; undefined if there may be any number. */
  readonly sampleLimit: number | undefined
  readonly maxBytes: number
  readonly tokenFile: string | undefined
  readonly username: string
  readonly passwordFile: string | undefined
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly serverName: string | undefined
  /** Rules for the labels of their series. */
  readonly metricRelabel: readonly RelabelRule[]
}

export type Scheme = 'http' | 'https'
export type LabelTexts = Readonly<Record<string, string>>

/** Addresses with labels that they have in common. */
export interface TargetGroup {
  readonly targets: readonly string[]
  readonly labels: LabelTexts
}

/** Files with groups; the last part of a path may have stars. */
export interface WatchedPaths {
  readonly paths: readonly string[]
  /** They are read again after so long even if they look the same. */
  readonly refreshMs: number
  /** Labels of their targets, unless the files give others. */
  readonly labels: LabelTexts
}

export interface ScrapeJob extends Scraping {
  /** The label `job` of its series. */
  readonly job: string
  /** Of the only target, whose parts are not known by labels; undefined if there are any number of them. */
  readonly url: string | undefined
  readonly groups: readonly TargetGroup[]
  readonly scheme: Scheme
  readonly metricsPath: string
  readonly params: Readonly<Record<string, readonly string[]>>
  /** Files with more groups. */
  readonly files: readonly WatchedPaths[]
  /** Rules for the labels of its targets. */
  readonly relabel: readonly RelabelRule[]
}

/** One target. */
export interface TargetSpec extends Scraping {
  readonly url: string
  /** What it is called; others may be called so, too. */
  readonly shown: string
  /** The labels that its series get. */
  readonly labels: LabelTexts
}

/** Of one job. */
export const MAX_TARGETS = 10_000
/** With more samples, or a longer body, a scrape fails. */
export const DEFAULT_MAX_SAMPLES = 100_000
export const DEFAULT_MAX_BYTES = 67_108_864
/** Characters of an address in a message. */
const MAX_SHOWN = 100
const JOB = 'job'
const INSTANCE = 'instance'
const ADDRESS = '__address__'
const SCHEME = '__scheme__'
const PATH = '__metrics_path__'
const INTERVAL = '__scrape_interval__'
const TIMEOUT = '__scrape_timeout__'
const PARAM = '__param_'
const MIN_INTERVAL_MS = 1_000
const DEFAULT_PORTS = { http: '80', https: '443' } as const

/** What comes of the addresses of a job. */
export interface FoundTargets {
  readonly specs: readonly TargetSpec[]
  /** Dropped by rules. */
  readonly dropped: number
  /** Why others cannot be scraped, for people. */
  readonly problems: readonly string[]
}

/** The targets of a job, in the order in which it names them. */
export function targetsOf(job: ScrapeJob): FoundTargets {
  if (job.url !== undefined) return { specs: [namedTarget(job, job.url)], dropped: 0, problems: [] }
  const relabelling = new Relabelling(job.relabel)
  const specs: TargetSpec[] = []
  const problems: string[] = []
  let dropped = 0
  for (const { targets, labels } of job.groups) {
    for (const target of targets) {
      const all = discoveredLabels(job, target, labels)
      if (!relabelling.apply(all)) {
        dropped++
        continue
      }
      const found = foundTarget(job, all)
      if (typeof found === 'string') problems.push(`${shownAddress(target)}: ${found}`)
      else if (specs.length === MAX_TARGETS) {
        problems.push(`it has more than ${MAX_TARGETS} targets: the others are not scraped`)
        return { specs, dropped, problems }
      } else specs.push(found)
    }
  }
  return { specs, dropped, problems }
}

/** The target of a `url`, which no rule changes. */
function namedTarget(job: ScrapeJob, url: string): TargetSpec {
  const [{ targets: [instance = ''] = [], labels } = { labels: {} }] = job.groups
  return { ...scrapingOf(job), url, shown: job.name, labels: { job: job.job, instance, ...labels } }
}

function scrapingOf(job: ScrapeJob): Scraping {
  const {
    job: _,
    url: _url,
    groups: _groups,
    files: _files,
    scheme: _scheme,
    metricsPath: _path,
    params: _params,
    relabel: _rules,
    ...scraping
  } = job
  return scraping
}

/** All labels of a target before rules change them. */
function discoveredLabels(job: ScrapeJob, address: string, labels: LabelTexts): MutableLabels {
  const all = new Map(Object.entries({ ...labels, [ADDRESS]: address }).filter(([, text]) => text !== ''))
  const byJob = {
    job: job.job,
    [INTERVAL]: durationText(job.intervalMs),
    [TIMEOUT]: durationText(job.timeoutMs),
    [PATH]: job.metricsPath,
    [SCHEME]: job.scheme,
    ...Object.fromEntries(Object.entries(job.params).map(([name, [text = '']]) => [PARAM + name, text])),
  }
  for (const [name, text] of Object.entries(byJob)) if (text !== '' && !all.has(name)) all.set(name, text)
  return all
}

/** The target that has these labels, or why there can be none. */
function foundTarget(job: ScrapeJob, labels: MutableLabels): TargetSpec | string {
  const scheme = labels.get(SCHEME) ?? ''
  if (scheme !== 'http' && scheme !== 'https')
    return `\`${SCHEME}\` is ${JSON.stringify(scheme)}, neither http nor https`
  const address = addressWithPort(labels.get(ADDRESS) ?? '', scheme)
  if (address === undefined) return `\`${ADDRESS}\` is no address like "n1.example:9100"`
  const intervalMs = boundedDurationMs(labels.get(INTERVAL) ?? '')
  const timeoutMs = boundedDurationMs(labels.get(TIMEOUT) ?? '')
  if (intervalMs === undefined || intervalMs < MIN_INTERVAL_MS) return `\`${INTERVAL}\` is no duration of at least 1s`
  if (timeoutMs === undefined || timeoutMs === 0) return `\`${TIMEOUT}\` is no duration above 0`
  if (timeoutMs > intervalMs) return `\`${TIMEOUT}\` is longer than \`${INTERVAL}\``
  const hasSecret = job.tokenFile !== undefined || job.passwordFile !== undefined
  if (hasSecret && scheme === 'http' && !isThisMachine(hostOfAddress(address)))
    return 'a secret is only sent over https, or to this machine'
  const params = new Map(Object.entries(job.params).map(([name, texts]) => [name, [...texts]]))
  for (const [label, text] of labels) {
    if (!label.startsWith(PARAM)) continue
    const name = label.slice(PARAM.length)
    params.set(name, [text, ...(params.get(name) ?? []).slice(1)])
  }
  const {
    [JOB]: ofJob,
    [INSTANCE]: instance = address,
    ...others
  } = Object.fromEntries([...labels].filter(([name]) => !name.startsWith('__')))
  return {
    ...scrapingOf(job),
    url: urlOf(scheme, address, labels.get(PATH) ?? '/', params),
    shown: `${job.name}/${instance}`,
    labels: { ...(ofJob !== undefined && { job: ofJob }), instance, ...others },
    intervalMs,
    timeoutMs,
  }
}

function urlOf(scheme: Scheme, address: string, path: string, params: ReadonlyMap<string, readonly string[]>): string {
  const url = new URL(`${scheme}://${address}`)
  url.pathname = path
  for (const [name, texts] of params) for (const text of texts) url.searchParams.append(name, text)
  url.searchParams.sort()
  return url.href
}

/** An address of a target, with the port of the scheme if it has none; undefined if it is none. */
export function addressWithPort(address: string, scheme: Scheme): string | undefined {
  if (!/^(?:\[[^[\]]+\]|[^\s:@/?#\\]+)(?::\d+)?$/.test(address) || !URL.canParse(`${scheme}://${address}`))
    return undefined
  return /:\d+$/.test(address) && !address.endsWith(']') ? address : `${address}:${DEFAULT_PORTS[scheme]}`
}

/** An address in messages, even if it is none: short, and without what stands before an `@`, which may be a password. */
export function shownAddress(address: string): string {
  return address
    .replace(/^.*@/s, '…@')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_SHOWN)
    .toWellFormed()
}

/** The host of an address. */
export function hostOfAddress(address: string): string {
  return address.replace(/:\d+$/, '')
}

export function isThisMachine(host: string): boolean {
  return host === 'localhost' || isLoopback(host.replace(/^\[(.*)\]$/, '$1'))
}
