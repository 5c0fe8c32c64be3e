/**
 * A job says how some targets are scraped, and where they are: a table `[[scrape]]`. What it says of one target, with all labels
 * of that target, is a `TargetSpec`. Targets become these as they do in Prometheus, by labels that begin with `__`: there is one
 * for each part of the URL.
 */
import { isLoopback } from '../../../kit/config.ts'

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
  readonly maxBytes: number
  readonly tokenFile: string | undefined
  readonly username: string
  readonly passwordFile: string | undefined
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  readonly serverName: string | undefined
}

export type Scheme = 'http' | 'https'
export type LabelTexts = Readonly<Record<string, string>>

/** Addresses with labels that they have in common. */
export interface TargetGroup {
  readonly targets: readonly string[]
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
}

/** One target. */
export interface TargetSpec extends Scraping {
  readonly url: string
  /** What it is called; others may be called so, too. */
  readonly shown: string
  /** The labels that its series get. */
  readonly labels: LabelTexts
}

const DEFAULT_PORTS = { http: '80', https: '443' } as const

/** The targets of a job, in the order in which it names them. */
export function* targetsOf(job: ScrapeJob): Generator<TargetSpec> {
  for (const { targets, labels } of job.groups) for (const target of targets) yield targetOf(job, target, labels)
}

function targetOf(job: ScrapeJob, address: string, labels: LabelTexts): TargetSpec {
  const { job: name, url, groups: _, scheme, metricsPath, params, ...scraping } = job
  const instance = addressWithPort(address, scheme) ?? address
  return {
    ...scraping,
    url: url ?? urlOf({ scheme, address: instance, metricsPath, params }),
    shown: url === undefined ? `${job.name}/${labels['instance'] ?? instance}` : job.name,
    labels: { job: name, instance, ...labels },
  }
}

interface UrlParts extends Pick<ScrapeJob, 'metricsPath' | 'params'> {
  readonly scheme: string
  readonly address: string
}

function urlOf({ scheme, address, metricsPath, params }: UrlParts): string {
  const url = new URL(`${scheme}://${address}`)
  url.pathname = metricsPath
  for (const [name, texts] of Object.entries(params)) for (const text of texts) url.searchParams.append(name, text)
  return url.href
}

/** An address of a target, with the port of the scheme if it has none; undefined if it is none. */
export function addressWithPort(address: string, scheme: Scheme): string | undefined {
  if (!/^(?:\[[^[\]]+\]|[^\s:@/?#\\]+)(?::\d+)?$/.test(address) || !URL.canParse(`${scheme}://${address}`))
    return undefined
  return /:\d+$/.test(address) && !address.endsWith(']') ? address : `${address}:${DEFAULT_PORTS[scheme]}`
}

/** The host of an address. */
export function hostOf(address: string): string {
  return address.replace(/:\d+$/, '')
}

export function isThisMachine(host: string): boolean {
  return host === 'localhost' || isLoopback(host.replace(/^\[(.*)\]$/, '$1'))
}
