/** What the server can measure: `producer.metrics` as the views need it. */
import { useEffect, useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../client/browser.ts'
import { pagesOf, recordsOf, untilAnswered } from './query.ts'
import { reasonOf } from './refusals.ts'

/** Entries that are loaded; the search is told if there are more. */
export const MAX_ENTRIES = 20_000
/** While the catalogue is loaded, what has come is shown at these intervals. */
const SHOWN_MS = 300
/** A metric that is not in the catalogue yet is asked for again after this time. */
const MISSING_MS = 3_000
/** So few at once that the page is never held up. */
const PAGE = 500

export interface CatalogueParameter {
  readonly name: string
  readonly description: string
}

export interface CatalogueEntry {
  readonly name: string
  readonly kind: string
  readonly type: string
  readonly unit: string
  readonly description: string
  readonly parameters: readonly CatalogueParameter[]
  /** Whether its source says that it only grows (`monotonic` in `details`). */
  readonly isCounter: boolean
}

/** The whole catalogue, page by page; after a lost connection it goes on. Throws what the server refuses. */
async function* catalogueOf(consumer: Consumer, signal: AbortSignal): AsyncGenerator<readonly CatalogueEntry[]> {
  const ask = (after: string) =>
    untilAnswered(consumer, signal, () => consumer.query('producer.metrics', { after, limit: PAGE }, { signal }))
  let count = 0
  for await (const records of pagesOf(ask, { key: 'name' })) {
    yield records.map(toEntry)
    count += records.length
    if (count >= MAX_ENTRIES) return
  }
}

/** That of a name, or those of a pattern, one page of them; none if it is not in the catalogue. */
async function entriesOf(consumer: Consumer, name: string, signal: AbortSignal): Promise<readonly CatalogueEntry[]> {
  const ask = () => consumer.query('producer.metrics', { match: name, limit: PAGE }, { signal })
  const { plain } = await untilAnswered(consumer, signal, ask)
  return recordsOf(plain).map(toEntry)
}

/** What the catalogue says of metrics and patterns, by name; undefined until it has answered. */
export function useEntries(
  consumer: Consumer,
  names: readonly string[],
): ReadonlyMap<string, CatalogueEntry> | undefined {
  const [entries, setEntries] = useState<ReadonlyMap<string, CatalogueEntry>>()
  const wanted = [...new Set(names)].join('\n')
  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    let timer = 0
    const load = async (): Promise<void> => {
      // Without the catalogue there is no unit, and the values say why.
      const asked = wanted.split('\n').map((name) => entriesOf(consumer, name, signal).catch(() => []))
      const found = await Promise.all(asked)
      if (signal.aborted) return
      setEntries(new Map(found.flat().map((entry) => [entry.name, entry])))
      if (found.some((some) => some.length === 0)) timer = window.setTimeout(load, MISSING_MS)
    }
    void load()
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [consumer, wanted])
  return entries
}

interface LoadedCatalogue {
  readonly entries: readonly CatalogueEntry[]
  readonly isLoaded: boolean
  readonly problem: string
}

/** The whole catalogue, as far as it has been loaded since the view opened. */
export function useCatalogue(consumer: Consumer): LoadedCatalogue {
  const [loaded, setLoaded] = useState<LoadedCatalogue>({ entries: [], isLoaded: false, problem: '' })
  useEffect(() => {
    const abort = new AbortController()
    const load = async (): Promise<void> => {
      let entries: readonly CatalogueEntry[] = []
      let shownMs = performance.now()
      for await (const page of catalogueOf(consumer, abort.signal)) {
        entries = [...entries, ...page]
        if (performance.now() - shownMs < SHOWN_MS) continue
        shownMs = performance.now()
        setLoaded({ entries, isLoaded: false, problem: '' })
      }
      setLoaded({ entries, isLoaded: true, problem: '' })
    }
    load().catch((error: unknown) => {
      if (!abort.signal.aborted) setLoaded((before) => ({ ...before, isLoaded: true, problem: reasonOf(error) }))
    })
    return () => abort.abort()
  }, [consumer])
  return loaded
}

/** Whether an entry is meant by a text: a part of its name or description, or a pattern of names with `*`. */
export function matcherOf(text: string): (entry: Pick<CatalogueEntry, 'name' | 'description'>) => boolean {
  const wanted = text.trim().toLowerCase()
  if (!wanted.includes('*')) {
    return ({ name, description }) => name.toLowerCase().includes(wanted) || description.toLowerCase().includes(wanted)
  }
  const parts = wanted.split('*')
  return ({ name }) => matchesParts(name.toLowerCase(), parts)
}

/** The beginnings of names up to the first dot, with the number of their metrics. */
export function familiesOf(entries: readonly CatalogueEntry[]): readonly (readonly [family: string, count: number])[] {
  const counts = new Map<string, number>()
  for (const { name } of entries) {
    const family = name.slice(0, name.indexOf('.') + 1)
    if (family !== '') counts.set(family, (counts.get(family) ?? 0) + 1)
  }
  return [...counts]
}

/** The time is linear: each part is looked for once, after the one before. */
function matchesParts(name: string, parts: readonly string[]): boolean {
  const [first = '', last = ''] = [parts[0], parts.at(-1)]
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= name.length - last.length
}

export function toEntry(record: PlainRecord): CatalogueEntry {
  const text = (name: string): string => (typeof record[name] === 'string' ? record[name] : '')
  const details = record['details'] as PlainRecord | undefined
  return {
    name: text('name'),
    kind: text('kind'),
    type: text('type'),
    unit: text('unit'),
    description: text('description'),
    parameters: recordsOf(record['parameters']).map((parameter) => ({
      name: String(parameter['name']),
      description: String(parameter['description'] ?? ''),
    })),
    isCounter: details?.['monotonic'] === true,
  }
}
