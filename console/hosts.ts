/**
 * The hosts that the series of the server name, whatever their source is: `producer.series`, read again and again in pages. That list
 * has the series of the server alone: hosts of the producers that it consumes are those that have a value for one of the small charts,
 * or of which a source there says whether they are silent.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Consumer, Sample } from '../client/browser.ts'
import { naturalOrder, OWN, ofAll, producerIn, producersOf } from './producers.ts'
import { pagesOf, untilAnswered } from './query.ts'
import { reasonOf } from './refusals.ts'

/** So few at once that the page is never held up. */
const PAGE = 4_000
const MAX_HOSTS = 10_000
/** During the first reading, what has come is shown at these intervals. */
const SHOWN_MS = 500
/** Reading begins again after this time, or so many times as long as it took. */
const APART_MS = 5_000
const APART_FACTOR = 10

/** What one of the small charts shows; sources name it differently. */
interface Role {
  readonly title: string
  readonly metrics: readonly { readonly name: string; readonly unit: string; readonly isRate: boolean }[]
}

export const ROLES: readonly Role[] = [
  {
    title: 'Load',
    metrics: [
      { name: 'gmetric.load_one', unit: '', isRate: false },
      { name: 'host.load.one', unit: '', isRate: false },
    ],
  },
  {
    title: 'Memory free',
    metrics: [
      { name: 'gmetric.mem_free', unit: 'KB', isRate: false },
      { name: 'host.mem.available', unit: 'B', isRate: false },
      { name: 'host.mem.free', unit: 'B', isRate: false },
    ],
  },
  {
    title: 'Network in',
    metrics: [
      { name: 'gmetric.bytes_in', unit: 'B/s', isRate: false },
      { name: 'host.net.received_bytes', unit: 'B', isRate: true },
    ],
  },
]

const IS_UP = '.host.up'
/** The metrics of the machine that the server runs on. */
const OWN_MACHINE = 'host.'

/**
 * What is asked of the producers below: names that they need not have, as patterns, since these are not refused then. None matches
 * what is scraped.
 */
const PATTERNS = [`*${IS_UP}`, ...ROLES.flatMap(({ metrics }) => metrics.map(({ name }) => `${name}*`))]

/** The metric of a small chart. */
export interface RoleMetric {
  readonly metric: string
  readonly unit: string
  readonly isRate: boolean
}

export interface Host {
  readonly name: string
  /** The path of the producer that has it; empty if that is the server itself. */
  readonly producer: string
  /** Undefined if it is not known. */
  readonly metrics: number | undefined
  /** Microseconds since 1970: the time of its newest value; 0 if it is measured on request. */
  readonly time: number
  /** Whether its source says that it is silent. */
  readonly isSilent: boolean
  /** For each role; undefined where it has no such metric. */
  readonly roles: readonly (RoleMetric | undefined)[]
}

export interface HostsState {
  /** Those of the server itself first, then by the path of the producer, and by name; undefined before the first answer. */
  readonly hosts: readonly Host[] | undefined
  /** The paths of the producers that the server consumes. */
  readonly below: readonly string[]
  /** Whether there are hosts of these that did not fit into an answer. */
  readonly isCut: boolean
  readonly problem: string
}

/** Where a value comes from. */
interface Place {
  readonly name: string
  readonly host: string
  readonly producer: string
  /** Microseconds since 1970. */
  readonly time: number
}

interface Draft {
  readonly host: string
  readonly producer: string
  metrics: number
  time: number
  readonly ranks: number[]
  readonly roles: (RoleMetric | undefined)[]
}

export class Hosts {
  readonly #consumer: Consumer
  /** Whether the machine of the server is one of the user's hosts: that of other tenants than `default` are those that send to them. */
  readonly #hasOwnMachine: boolean
  readonly #state = signal<HostsState>({ hosts: undefined, below: [], isCut: false, problem: '' })
  readonly #abort = new AbortController()
  #timer = 0

  /** `identity`: who has signed in. */
  constructor(consumer: Consumer, identity: string) {
    this.#consumer = consumer
    this.#hasOwnMachine = !identity.includes('/')
  }

  get state(): ReadonlySignal<HostsState> {
    return this.#state
  }

  /** Never throws. */
  begin(): void {
    const beganMs = performance.now()
    untilAnswered(this.#consumer, this.#abort.signal, () => this.#read()).then(
      () => this.#again(beganMs),
      (error: unknown) => {
        if (!this.#abort.signal.aborted) this.#state.value = { ...this.#state.value, problem: reasonOf(error) }
        this.#again(beganMs)
      },
    )
  }

  end(): void {
    this.#abort.abort()
    clearTimeout(this.#timer)
  }

  #again(beganMs: number): void {
    if (this.#abort.signal.aborted) return
    const took = performance.now() - beganMs
    this.#timer = window.setTimeout(() => this.begin(), Math.max(APART_MS, took * APART_FACTOR))
  }

  async #read(): Promise<void> {
    const consumer = this.#consumer
    const { signal } = this.#abort
    const drafts = new Map<string, Draft>()
    const silent = new Set<string>()
    let shownMs = Number.NEGATIVE_INFINITY
    const isFirst = this.#state.value.hosts === undefined
    const producers = producersOf(consumer)
    const { below } = producers
    const noteSilent = ({ plain, labels: { host } }: Sample, producer: string): void => {
      if (plain === false && host !== undefined) silent.add(keyOf(producer, host))
    }
    const up = consumer.query(`*${IS_UP}`, {}, { signal }).then(({ elements }) => {
      for (const sample of elements) noteSilent(sample, OWN)
    })
    // It is awaited with the first page, which is asked for meanwhile.
    up.catch(() => {})
    const ask = (after: string) => consumer.query('producer.series', { with: 'host', limit: PAGE, after }, { signal })
    for await (const records of pagesOf(ask)) {
      for (const { name, host, time } of records) {
        if (typeof name !== 'string' || typeof host !== 'string') continue
        if (!this.#hasOwnMachine && name.startsWith(OWN_MACHINE)) continue
        note(drafts, { name, host, producer: OWN, time: Number(time) })
      }
      await up
      // Names of metrics come in order: the first page may have all hosts already.
      if (!isFirst || drafts.size === 0 || performance.now() - shownMs < SHOWN_MS) continue
      shownMs = performance.now()
      this.#show(drafts, silent, { below })
    }
    if (isFirst || below.length === 0) this.#show(drafts, silent, { below })
    if (below.length === 0) return
    const asked = ofAll(producers, { host: '*' })
    const answers = await Promise.all(PATTERNS.map((pattern) => consumer.query(pattern, asked, { signal })))
    for (const sample of answers.flatMap(({ elements }) => elements)) {
      const producer = producerIn(sample, producers)
      if (producer === OWN) continue
      const { metric: name, labels, time } = sample
      note(drafts, { name, host: labels.host ?? '', producer, time })
      if (name.endsWith(IS_UP)) noteSilent(sample, producer)
    }
    this.#show(drafts, silent, { below, isCut: answers.some(({ isCut }) => isCut) })
  }

  #show(
    drafts: ReadonlyMap<string, Draft>,
    silent: ReadonlySet<string>,
    { below, isCut = false }: { readonly below: readonly string[]; readonly isCut?: boolean },
  ): void {
    const hosts = [...drafts].map(([key, { host: name, producer, metrics, time, roles }]): Host => {
      const isSilent = silent.has(key)
      return { name, producer, metrics: producer === OWN ? metrics : undefined, time, roles, isSilent }
    })
    hosts.sort((a, b) => naturalOrder.compare(a.producer, b.producer) || naturalOrder.compare(a.name, b.name))
    this.#state.value = { hosts, below, isCut, problem: '' }
  }
}

function keyOf(producer: string, host: string): string {
  return `${producer}\0${host}`
}

function note(drafts: Map<string, Draft>, { name, host, producer, time }: Place): void {
  if (host === '') return
  const key = keyOf(producer, host)
  let draft = drafts.get(key)
  if (draft === undefined) {
    if (drafts.size >= MAX_HOSTS) return
    draft = {
      host,
      producer,
      metrics: 0,
      time: 0,
      ranks: ROLES.map(() => Number.POSITIVE_INFINITY),
      roles: ROLES.map(() => undefined),
    }
    drafts.set(key, draft)
  }
  // What a source says about a host is not said by the host.
  if (/\.host\.(up|late)$/.test(name)) return
  draft.metrics++
  draft.time = Math.max(draft.time, time)
  for (const [role, { metrics }] of ROLES.entries()) {
    const rank = metrics.findIndex((metric) => metric.name === name)
    const found = metrics[rank]
    if (found === undefined || rank >= (draft.ranks[role] as number)) continue
    draft.ranks[role] = rank
    draft.roles[role] = { metric: name, unit: found.unit, isRate: found.isRate }
  }
}
