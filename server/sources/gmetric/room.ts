/**
 * How much room there is for hosts, metrics and bytes, and who took it. The last tenth of each is for sources that have
 * less than a tenth: a sender that makes up names without end must not keep the others out.
 */

const SHARE = 0.1
const KINDS = ['hosts', 'metrics', 'bytes'] as const

export type Amount = Readonly<Record<(typeof KINDS)[number], number>>
const NOTHING: Amount = { hosts: 0, metrics: 0, bytes: 0 }

export class Capacity {
  readonly #limits: Amount
  readonly #bySource = new Map<string, Amount>()
  #taken = NOTHING

  constructor(limits: Amount) {
    this.#limits = limits
  }

  get taken(): Amount {
    return this.#taken
  }

  /** Of what there is not enough for `more` from a source; what shrinks there is always room for. */
  findFull(source: string, more: Amount): keyof Amount | undefined {
    const own = this.#bySource.get(source) ?? NOTHING
    return KINDS.find((kind) => {
      const limit = this.#limits[kind]
      const isModest = own[kind] + more[kind] <= limit * SHARE
      return more[kind] > 0 && this.#taken[kind] + more[kind] > (isModest ? limit : Math.ceil(limit * (1 - SHARE)))
    })
  }

  /** Below 0: it is given back, by who took it. */
  book(source: string, more: Amount): void {
    this.#taken = sum(this.#taken, more)
    const own = sum(this.#bySource.get(source) ?? NOTHING, more)
    if (KINDS.every((kind) => own[kind] === 0)) this.#bySource.delete(source)
    else this.#bySource.set(source, own)
  }
}

function sum(a: Amount, b: Amount): Amount {
  return { hosts: a.hosts + b.hosts, metrics: a.metrics + b.metrics, bytes: a.bytes + b.bytes }
}
