/** The hosts that the series of the server name, whatever their source is: `producer.series`, read again and again in pages. */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Consumer, PlainRecord } from '../client/browser.ts'
import { messageOf, pagesOf, untilAnswered } from './parts/query.ts'

/** So few at once that the page is never held up. */
const PAGE = 1_000
const MAX_HOSTS = 10_000
/** During the first reading, what has come is shown at these intervals. */
const SHOWN_MS = 500
/** Reading begins again after this time, or so many times as long as it took. */
const APART_MS = 5_000
const APART_FACTOR = 10

/** A metric that stands for one of the small charts, by the end of its name: sources name it differently. */
interface Role {
  readonly title: string
  readonly names: readonly { readonly ending: string; readonly unit: string; readonly isRate: boolean }[]
}

export const ROLES: readonly Role[] = [
  {
    title: 'Load',
    names: [
      { ending: '.load_one', unit: '', isRate: false },
      { ending: 'host.load.one', unit: '', isRate: false },
    ],
  },
  {
    title: 'Memory free',
    names: [
      { ending: '.mem_free', unit: 'KB', isRate: false },
      { ending: 'host.mem.available', unit: 'B', isRate: false },
      { ending: 'host.mem.free', unit: 'B', isRate: false },
    ],
  },
  {
    title: 'Network in',
    names: [
      { ending: '.bytes_in', unit: 'B/s', isRate: false },
      { ending: 'host.net.received_bytes', unit: 'B', isRate: true },
    ],
  },
]

/** Numbers in names are compared as numbers. */
export const naturalOrder = new Intl.Collator('en', { numeric: true })

/** The metric of a small chart. */
export interface RoleMetric {
  readonly metric: string
  readonly unit: string
  readonly isRate: boolean
}

export interface Host {
  readonly name: string
  readonly metrics: number
  /** Microseconds since 1970: the time of its newest value; 0 if it is measured on request. */
  readonly time: number
  /** Whether its source says that it is silent. */
  readonly isSilent: boolean
  /** For each role; undefined where it has no such metric. */
  readonly roles: readonly (RoleMetric | undefined)[]
}

export interface HostsState {
  /** Ascending by name; undefined before the first answer. */
  readonly hosts: readonly Host[] | undefined
  readonly problem: string
}

interface Draft {
  metrics: number
  time: number
  readonly ranks: number[]
  readonly roles: (RoleMetric | undefined)[]
}

export class Hosts {
  readonly #consumer: Consumer
  readonly #state = signal<HostsState>({ hosts: undefined, problem: '' })
  readonly #abort = new AbortController()
  #timer = 0

  constructor(consumer: Consumer) {
    this.#consumer = consumer
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
        if (!this.#abort.signal.aborted) this.#state.value = { ...this.#state.value, problem: messageOf(error) }
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
    const { signal } = this.#abort
    const drafts = new Map<string, Draft>()
    const silent = new Set<string>()
    let shownMs = Number.NEGATIVE_INFINITY
    const isFirst = this.#state.value.hosts === undefined
    const up = await this.#consumer.query('*.host.up', {}, { signal })
    for (const { labels, plain } of up.elements) {
      if (plain === false && labels.host !== undefined) silent.add(labels.host)
    }
    const ask = (after: string) => this.#consumer.query('producer.series', { limit: PAGE, after }, { signal })
    for await (const records of pagesOf(ask)) {
      for (const record of records) note(drafts, record)
      // Names of metrics come in order: the first page may have all hosts already.
      if (!isFirst || drafts.size === 0 || performance.now() - shownMs < SHOWN_MS) continue
      shownMs = performance.now()
      this.#show(drafts, silent)
    }
    this.#show(drafts, silent)
  }

  #show(drafts: ReadonlyMap<string, Draft>, silent: ReadonlySet<string>): void {
    const hosts = [...drafts].map(
      ([name, { metrics, time, roles }]): Host => ({ name, metrics, time, roles, isSilent: silent.has(name) }),
    )
    hosts.sort((a, b) => naturalOrder.compare(a.name, b.name))
    this.#state.value = { hosts, problem: '' }
  }
}

function note(drafts: Map<string, Draft>, { name, host, time }: PlainRecord): void {
  if (typeof host !== 'string' || host === '' || typeof name !== 'string') return
  let draft = drafts.get(host)
  if (draft === undefined) {
    if (drafts.size >= MAX_HOSTS) return
    draft = { metrics: 0, time: 0, ranks: ROLES.map(() => Number.POSITIVE_INFINITY), roles: ROLES.map(() => undefined) }
    drafts.set(host, draft)
  }
  // What a source says about a host is not said by the host.
  if (/\.host\.(up|late)$/.test(name)) return
  draft.metrics++
  // Whether a host is up is said by the server, not by the host.
  if (!name.endsWith('.host.up')) draft.time = Math.max(draft.time, Number(time))
  for (const [role, { names }] of ROLES.entries()) {
    const rank = names.findIndex(({ ending }) => name.endsWith(ending))
    const found = names[rank]
    if (found === undefined || rank >= (draft.ranks[role] as number)) continue
    draft.ranks[role] = rank
    draft.roles[role] = { metric: name, unit: found.unit, isRate: found.isRate }
  }
}
