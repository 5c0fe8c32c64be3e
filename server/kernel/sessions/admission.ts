/**
 * Who may have a connection. When there is no room, a connection before AUTH gives way: the oldest of the network that has
 * most of them, so that whoever opens very many closes only their own. Some places are kept for insiders: loopback, and the
 * networks from which an admin has logged in. Networks are IPv4 /24 and IPv6 /48.
 */
import { isLoopback, networkPrefix, networkSite } from '../../../auth/network.ts'

/** Places kept for insiders, but at most a tenth of all. */
const KEPT = 100
/** Networks of admins that are remembered, the latest ones. */
const MAX_ADMIN_NETWORKS = 1024

/** Files that the rest of the server needs, such as those of the store and the connections of sources. */
const OTHER_FILES = 512

export interface AdmissionLimits {
  /** Connections, before and after AUTH. */
  readonly connections: number
  /** Connections before AUTH of one network that is no insider's. */
  readonly unauthenticatedPerNetwork: number
  /** Files that the process may have open, if that is known. A connection for which there is none left is never accepted. */
  readonly openFiles?: number | undefined
}

/** The place of one connection, from connecting to its end. Only `Admission` writes it. */
export interface ConnectionPlace {
  readonly address: string
  readonly network: string
  isInside: boolean
  readonly close: () => void
  isOpen: boolean
}

export class Admission {
  /** Connections that may be open: `limits.connections`, or fewer if there are not enough files. */
  readonly max: number
  readonly #maxOfNetwork: number
  readonly #kept: number
  readonly #outsiders = new Crowd()
  readonly #insiders = new Crowd()
  readonly #adminNetworks = new Set<string>()
  #open = 0
  #openInside = 0
  /** The number of connections before AUTH that gave way to others. */
  evicted = 0
  /** The number of connections that found no place. */
  refused = 0

  constructor(limits: AdmissionLimits) {
    const { connections, unauthenticatedPerNetwork, openFiles = Number.POSITIVE_INFINITY } = limits
    // A process that may open very few files keeps half of them.
    this.max = Math.min(connections, openFiles - Math.min(OTHER_FILES, openFiles >> 1))
    this.#maxOfNetwork = unauthenticatedPerNetwork
    this.#kept = Math.min(KEPT, Math.floor(this.max / 10))
  }

  /** Connections with a place. */
  get open(): number {
    return this.#open
  }

  /** Those of them that have not logged in. */
  get unauthenticated(): number {
    return this.#outsiders.size + this.#insiders.size
  }

  /** A place for a connection; undefined if there is none. `close` is called if the place goes to another connection. */
  enter(address: string, close: () => void): ConnectionPlace | undefined {
    const isInside = isLoopback(address) || this.#adminNetworks.has(networkPrefix(address))
    const crowd = isInside ? this.#insiders : this.#outsiders
    const network = networkSite(address)
    if (!isInside && crowd.countOf(network) >= this.#maxOfNetwork) this.#evict(crowd.oldest(network))
    if (this.#isFull(isInside)) this.#evict(this.#victimFor(isInside))
    if (this.#isFull(isInside)) {
      this.refused++
      return undefined
    }
    const place = { address, network, isInside, close, isOpen: true }
    crowd.add(place)
    this.#open++
    if (isInside) this.#openInside++
    return place
  }

  /** AUTH succeeded: the connection gives way to nobody any more. It is closed if it may not have a place that is kept. */
  authenticated(place: ConnectionPlace, isAdmin: boolean): void {
    this.#crowdOf(place).delete(place)
    if (isAdmin) this.#remember(networkPrefix(place.address))
    // Only admins, and those who may be one, take up the places that are kept: it takes one of the others now.
    else if (place.isOpen && place.isInside) {
      this.leave(place)
      if (this.#isFull(false)) this.#evict(this.#victimFor(false))
      if (this.#isFull(false)) {
        this.refused++
        place.close()
        return
      }
      place.isInside = false
      place.isOpen = true
      this.#open++
    }
  }

  /** The connection has ended; it may be reported more than once. */
  leave(place: ConnectionPlace): void {
    if (!place.isOpen) return
    place.isOpen = false
    this.#crowdOf(place).delete(place)
    this.#open--
    if (place.isInside) this.#openInside--
  }

  #crowdOf({ isInside }: ConnectionPlace): Crowd {
    return isInside ? this.#insiders : this.#outsiders
  }

  #isFull(isInside: boolean): boolean {
    const kept = isInside ? 0 : Math.max(0, this.#kept - this.#openInside)
    return this.#open + kept >= this.max
  }

  /** Insiders give way to outsiders only beyond the places that are kept for them. */
  #victimFor(isInside: boolean): ConnectionPlace | undefined {
    const inside = this.#insiders.largest
    const beyondKept = this.#insiders.countOf(inside) - this.#kept
    const outside = this.#outsiders.largest
    if (outside !== undefined && this.#outsiders.countOf(outside) >= beyondKept) return this.#outsiders.oldest(outside)
    return isInside || beyondKept > 0 ? this.#insiders.oldest(inside) : undefined
  }

  #evict(place: ConnectionPlace | undefined): void {
    if (place === undefined) return
    this.evicted++
    this.leave(place)
    place.close()
  }

  #remember(adminNetwork: string): void {
    this.#adminNetworks.delete(adminNetwork)
    for (const oldest of this.#adminNetworks) {
      if (this.#adminNetworks.size < MAX_ADMIN_NETWORKS) break
      this.#adminNetworks.delete(oldest)
    }
    this.#adminNetworks.add(adminNetwork)
  }
}

/** Connections before AUTH by network, and the networks by the number of their connections. */
class Crowd {
  /** The places of each network, the oldest first. */
  readonly #places = new Map<string, Set<ConnectionPlace>>()
  readonly #networksOfSize: Set<string>[] = []
  size = 0

  /** The network with most connections; undefined if there is none. */
  get largest(): string | undefined {
    while (this.#networksOfSize.at(-1)?.size === 0) this.#networksOfSize.pop()
    return this.#networksOfSize.at(-1)?.values().next().value
  }

  countOf(network: string | undefined): number {
    return network === undefined ? 0 : (this.#places.get(network)?.size ?? 0)
  }

  oldest(network: string | undefined): ConnectionPlace | undefined {
    return network === undefined ? undefined : this.#places.get(network)?.values().next().value
  }

  add(place: ConnectionPlace): void {
    const { network } = place
    const places = this.#places.get(network) ?? new Set()
    places.add(place)
    this.#places.set(network, places)
    this.size++
    this.#resized(network, places.size - 1, places.size)
  }

  delete(place: ConnectionPlace): void {
    const { network } = place
    const places = this.#places.get(network)
    if (places?.delete(place) !== true) return
    if (places.size === 0) this.#places.delete(network)
    this.size--
    this.#resized(network, places.size + 1, places.size)
  }

  #resized(network: string, from: number, to: number): void {
    this.#networksOfSize[from]?.delete(network)
    if (to === 0) return
    while (this.#networksOfSize.length <= to) this.#networksOfSize.push(new Set())
    this.#networksOfSize[to]?.add(network)
  }
}
