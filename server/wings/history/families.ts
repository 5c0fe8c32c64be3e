/** What is known of metrics, by the names that their samples have in Prometheus. */
import { familyMetadata, type TextMetadata } from '../../../protocol/prometheus/text-line.ts'
import type { HistoryFamily, HistoryMetric, HistoryStore } from '../../../storage/history/store.ts'

/** What samples of a histogram or summary have after the name of their family. */
const PART = /_(?:bucket|sum|count)$/
/** What a family of a text is here; a family of any other type is one of which no more is known. */
const KNOWN_TYPES: readonly string[] = ['counter', 'gauge', 'histogram', 'summary']

/** The family of samples with a name; undefined if it is not among them. */
export function familyOfSample(name: string, families: readonly HistoryFamily[]): HistoryFamily | undefined {
  const own = families.find((family) => family.name === name)
  if (own !== undefined) return own
  const base = name.replace(PART, '')
  return families.find(({ name: whole, type }) => whole === base && (type === 'histogram' || type === 'summary'))
}

/** What a text says of samples with a name, as metrics of here say it; undefined if it says nothing. */
function familyOfText(name: string, said: ReadonlyMap<string, TextMetadata>): HistoryFamily | undefined {
  const metadata = familyMetadata(name, said)
  // When a counter began is none.
  if (metadata === undefined || name.endsWith('_created')) return undefined
  const { help, unit } = metadata
  const type = KNOWN_TYPES.includes(metadata.type) ? metadata.type : 'unknown'
  if (type === 'unknown' && help === '' && unit === '') return undefined
  // A counter is called as its samples are.
  const isOfParts = type === 'histogram' || type === 'summary'
  return { name: isOfParts ? name.replace(PART, '') : name, type, help, unit }
}

/** What texts say of metrics that are imported: it counts where nothing else is known. */
export class ImportedFamilies {
  readonly #store: Pick<HistoryStore, 'familiesOf' | 'describe'>
  /** The names of samples, by tenant and native name. */
  readonly #names = new Map<string, Map<string, Set<string>>>()

  constructor(store: Pick<HistoryStore, 'familiesOf' | 'describe'>) {
    this.#store = store
  }

  /** A metric has samples with this name. */
  has(tenant: string, native: string, name: string): void {
    const natives = this.#names.get(tenant) ?? new Map<string, Set<string>>()
    this.#names.set(tenant, natives)
    natives.set(native, (natives.get(native) ?? new Set()).add(name))
  }

  /** `said`: by the names of families. */
  describe(said: ReadonlyMap<string, TextMetadata>): void {
    if (said.size === 0) return
    for (const [tenant, natives] of this.#names) {
      for (const [native, names] of natives) {
        const metric = this.#metricOf(tenant, native, names, said)
        if (metric !== undefined) this.#store.describe(tenant, metric)
      }
    }
  }

  /** With what is known already; undefined if nothing is new. */
  #metricOf(
    tenant: string,
    native: string,
    names: ReadonlySet<string>,
    said: ReadonlyMap<string, TextMetadata>,
  ): HistoryMetric | undefined {
    const families = [...this.#store.familiesOf(tenant, native)]
    const known = families.length
    for (const name of names) {
      const family = familyOfText(name, said)
      if (family !== undefined && !families.some((other) => other.name === family.name)) families.push(family)
    }
    return families.length > known ? { native, families } : undefined
  }
}
