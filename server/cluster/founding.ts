/**
 * When a log has to be founded, and by whom. JetStream may have no log yet, or have lost the end of one, or all of it; the
 * databases of the nodes then are ahead of it. Whoever founds the next log decides what is kept, so it is the most advanced
 * database, and all of them have to be known.
 */
import type { LogPlace } from '../../storage/replicated/place.ts'
import type { LogEnd } from './replica.ts'

/** A node with its database. */
export interface Founder {
  readonly node: string
  readonly place: LogPlace
}

/** Below 0 if `one` is behind `other`. */
export function comparePlaces(one: LogPlace, other: LogPlace): number {
  return one.log - other.log || one.epoch - other.epoch || one.sequence - other.sequence
}

/** Whether the nats-servers have no log, or less of it than one of the databases. */
export function needsFounding(end: LogEnd, places: readonly LogPlace[]): boolean {
  if (end.log === 0) return true
  return places.some((place) => isBeyond(place, end))
}

/** Whether a database has records that the log has lost. */
function isBeyond({ log, sequence }: LogPlace, end: LogEnd): boolean {
  return log > end.log || (log === end.log && sequence > end.last)
}

/** `by`: the node that founds the log. `wait`: why nobody does, as a sentence. */
export type FoundingVerdict =
  | { readonly by: string; readonly wait?: undefined }
  | { readonly by?: undefined; readonly wait: string }

/** `heard` are the nodes that are there, this one among them; `nodes` the configured ones. */
export function founderOf(heard: readonly Founder[], nodes: readonly string[]): FoundingVerdict {
  const missing = nodes.filter((name) => !heard.some(({ node }) => node === name))
  if (missing.length > 0) {
    return {
      wait: `the log of the cluster has to be founded, and ${listed(missing)} ${missing.length > 1 ? 'are' : 'is'} not heard`,
    }
  }
  const candidates = heard.filter(({ node }) => nodes.includes(node)).toSorted(mostAdvancedFirst)
  const [first, second] = candidates
  if (first === undefined) return { wait: 'no node is configured' }
  // Both have what the other has not: only a person knows which of them is to be kept.
  if (second !== undefined && isApart(first.place) && isApart(second.place)) {
    const names = candidates.filter(({ place }) => isApart(place)).map(({ node }) => node)
    return {
      wait: `${listed(names)} have databases that are in no log: run \`cinnabar cluster found\` on the one to keep`,
    }
  }
  return { by: first.node }
}

/**
 * Whether there may have been records that no database has which is there: one of the configured nodes is not, or its database has
 * nothing beyond the end of the log, as that of a new machine, which may have followed what is left of the log already. Then
 * whoever founds the next log may not know all transaction ids that were given.
 */
export function mayLackRecords(
  place: LogPlace,
  end: LogEnd,
  heard: readonly Founder[],
  nodes: readonly string[],
): boolean {
  const isKept = (name: string): boolean =>
    heard.some(({ node, place }) => node === name && place.log > 0 && isBeyond(place, end))
  return place.log > 0 && !nodes.every(isKept)
}

interface Ordered {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** That an operator wants a log to be founded with the database of this node. */
export class FoundOrder {
  #ordered: Ordered | undefined

  get isGiven(): boolean {
    return this.#ordered !== undefined
  }

  /** Settles as whoever takes the order says. Rejects if there is one already. */
  give(): Promise<void> {
    if (this.isGiven) return Promise.reject(new Error('a log is being founded already'))
    return new Promise((resolve, reject) => {
      this.#ordered = { resolve, reject }
    })
  }

  /** Takes the order, so that there is none any more. */
  take(): Ordered | undefined {
    const ordered = this.#ordered
    this.#ordered = undefined
    return ordered
  }
}

/** Whether a database with content is in no log. */
const isApart = ({ log, sequence }: LogPlace): boolean => log === 0 && sequence > 0

/** Orders nodes by how far their databases are, and by their names. */
export function mostAdvancedFirst(one: Founder, other: Founder): number {
  return comparePlaces(other.place, one.place) || (one.node < other.node ? -1 : 1)
}

function listed(names: readonly string[]): string {
  return names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : (names[0] ?? '')
}
