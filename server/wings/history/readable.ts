/**
 * What of the history somebody may read, judged for each series as for a QUERY of its metric, and what those who ask by HTTP get of
 * it: the series of their tenant and those of the server.
 */
import { prometheusLabel } from '../../../protocol/prometheus/names.ts'
import type { FamilyType } from '../../../protocol/prometheus/samples.ts'
import type { HistoryLoss, HistorySeries } from '../../../storage/history/store.ts'
import type {
  CurrentSelection,
  HistoryEngine,
  LossesAsked,
  RememberedFamily,
  RememberedHistory,
  RememberedLoss,
  RememberedSelection,
  RememberedSeries,
} from '../../kit/history.ts'
import type { Kit } from '../../kit/kit.ts'
import { type Owner, type PolledSensor, toForeign } from '../../kit/metrics.ts'
import { compilePattern } from '../../kit/producers.ts'
import { type HistorySelection, type LossSelection, SERVER, type SelectedSamples } from './messages.ts'
import type { HistoryReading } from './reading.ts'

/** So many series of a selection that is there are judged in a step. */
const JUDGED_PER_STEP = 64
/** All times. */
const EVER = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

export type HistoryReader = Parameters<PolledSensor['measure']>[2]
type Rights = ReturnType<Kit['peer']['view']['readRights']>

export function ownerOf(tenant: string): Owner {
  return tenant === SERVER ? 'producer' : { tenant }
}

/** Whether a series of a tenant may be read, by the rules of now. */
export function mayReadSeries(rights: Rights, tenant: string, { native, labels }: HistorySeries): boolean {
  // Few rules name labels.
  let texts: ReadonlyMap<string, string> | undefined
  const label = (name: string): string | undefined => {
    texts ??= new Map(labels)
    return texts.get(prometheusLabel(toForeign(name)))
  }
  return rights.mayReadRemembered(ownerOf(tenant), native, label)
}

/**
 * The ranges of loss that concern what somebody reads: those of a metric, or of a pattern, that a series has which is asked for and may
 * be read, and those of unknown metrics if there is any such series. It does not need to have a sample in the range.
 */
export async function readableLosses(
  reading: Pick<HistoryReading, 'select' | 'losses'>,
  { tenant, matchers, fromMs, toMs }: LossSelection & Pick<HistorySelection, 'matchers'>,
  mayRead: (series: HistorySeries) => boolean,
): Promise<readonly HistoryLoss[]> {
  const losses = await reading.losses({ tenant, fromMs, toMs })
  const open = new Map(losses.map(({ native }) => [native, native === '' ? () => true : compilePattern(native)]))
  const concerning = new Set<string>()
  if (open.size === 0) return []
  for await (const portion of reading.select({ tenant, matchers, ...EVER, isWithoutSamples: true })) {
    for (const { series } of portion) {
      const found = [...open].filter(([, matches]) => matches(series.native))
      if (found.length === 0 || !mayRead(series)) continue
      for (const [native] of found) {
        concerning.add(native)
        open.delete(native)
      }
    }
    if (open.size === 0) break
  }
  return losses.filter(({ native }) => concerning.has(native))
}

export interface ReadableServices {
  readonly reading: Pick<HistoryReading, 'select' | 'current' | 'families' | 'losses'>
  readonly readRights: (reader: HistoryReader) => Rights
  readonly problem: () => string | undefined
  readonly engine?: HistoryEngine | undefined
  readonly backUp: RememberedHistory['backUp']
  readonly caughtUp: RememberedHistory['caughtUp']
}

export class ReadableHistory implements RememberedHistory {
  readonly #services: ReadableServices

  constructor(services: ReadableServices) {
    this.#services = services
  }

  get engine(): HistoryEngine | undefined {
    return this.#services.engine
  }

  get problem(): string | undefined {
    return this.engine === undefined ? this.unreadable : undefined
  }

  get unreadable(): string | undefined {
    return this.#services.problem()
  }

  caughtUp(tenant: string): Promise<void> {
    return this.#services.caughtUp(tenant)
  }

  backUp(directory: string): Promise<number | undefined> {
    return this.#services.backUp(directory)
  }

  async *families(reader: HistoryReader): AsyncGenerator<readonly RememberedFamily[], void, void> {
    if (this.unreadable !== undefined) return
    const rights = this.#services.readRights(reader)
    for (const tenant of [SERVER, reader.tenant]) {
      for await (const families of this.#services.reading.families(tenant)) {
        const listed = families.filter(({ native }) => rights.isListed({ owner: ownerOf(tenant) }, native))
        // It was a type when it was stored.
        yield listed.map(({ name, type, help, unit }) => ({ name, type: type as FamilyType, help, unit }))
      }
    }
  }

  async *select(
    reader: HistoryReader,
    selection: RememberedSelection,
  ): AsyncGenerator<readonly RememberedSeries[], void, void> {
    const rights = this.#services.readRights(reader)
    // The server has few series. Where a tenant has one with the same name and labels, that of the server is shown.
    const shown = new Set<string>()
    const owners = [SERVER, reader.tenant].map((tenant) => ({
      tenant,
      // Both are asked for at once.
      portions: begun(this.#services.reading.select({ tenant, ...selection })),
    }))
    try {
      for (const { tenant, portions } of owners) yield* this.#readable(tenant, portions, rights, shown)
    } finally {
      for (const { portions } of owners) void portions.return()
    }
  }

  async current(reader: HistoryReader, selection: RememberedSelection): Promise<CurrentSelection | undefined> {
    const { reading, readRights } = this.#services
    const all = [SERVER, reader.tenant].map((tenant) => ({ tenant, ...selection }))
    const columns = await Promise.all(all.map((each) => reading.current(each)))
    if (columns.includes(undefined)) return undefined
    const owners = all.map((asked, index) => ({ ...asked, columns: columns[index] as FoundColumns }))
    return {
      series: () =>
        owners.every((one) => one.columns.has(one)) ? currentSeries(owners, readRights(reader)) : undefined,
    }
  }

  async *#readable(
    tenant: string,
    portions: BegunPortions,
    rights: Rights,
    shown: Set<string>,
  ): AsyncGenerator<readonly RememberedSeries[], void, void> {
    for (let portion = await portions.next(); portion !== undefined; portion = await portions.next()) {
      const readable: RememberedSeries[] = []
      for (const { series, times, values, windows } of portion) {
        const mayRead = (): boolean => mayReadSeries(rights, tenant, series)
        if (tenant === SERVER) {
          if (!mayRead()) continue
          shown.add(identityOf(series))
        } else if (shown.size > 0 && shown.has(identityOf(series))) continue
        readable.push({ series, times, values, windows, mayRead })
      }
      yield readable
    }
  }

  async losses(reader: HistoryReader, asked: LossesAsked): Promise<readonly RememberedLoss[]> {
    const { reading, readRights } = this.#services
    const rights = readRights(reader)
    const found: RememberedLoss[] = []
    for (const tenant of [SERVER, reader.tenant]) {
      const ofTenant = await readableLosses(reading, { tenant, ...asked }, (series) =>
        mayReadSeries(rights, tenant, series),
      )
      for (const { native: metric, ...loss } of ofTenant) found.push({ tenant, metric, ...loss })
    }
    return found
  }
}

type FoundColumns = NonNullable<Awaited<ReturnType<HistoryReading['current']>>>

/** As `select` has them, of this moment; of each it is judged when it comes. */
function currentSeries(
  owners: readonly (HistorySelection & { readonly columns: FoundColumns })[],
  rights: Rights,
): ReturnType<typeof readableSeries> {
  const found = owners.map(({ tenant, columns, ...range }) => ({ tenant, series: columns.read(range) }))
  return readableSeries(found, rights)
}

function* readableSeries(
  owners: readonly { readonly tenant: string; readonly series: Iterable<SelectedSamples> }[],
  rights: Rights,
): Generator<SelectedSamples | undefined, void, void> {
  const isAll = rights.mayReadAll()
  const shown = new Set<string>()
  let judged = 0
  for (const { tenant, series } of owners) {
    const isSeen = isAll && rights.maySee({ owner: ownerOf(tenant) })
    for (const one of series) {
      if (++judged % JUDGED_PER_STEP === 0) yield undefined
      if (!isSeen && !mayReadSeries(rights, tenant, one.series)) continue
      if (tenant === SERVER) shown.add(identityOf(one.series))
      else if (shown.size > 0 && shown.has(identityOf(one.series))) continue
      yield one
    }
  }
}

interface BegunPortions {
  /** Undefined if there are no more. */
  next(): Promise<readonly SelectedSamples[] | undefined>
  return(): Promise<unknown>
}

/** The first portion is asked for now. */
function begun(portions: ReturnType<HistoryReading['select']>): BegunPortions {
  let first: ReturnType<typeof portions.next> | undefined = portions.next()
  // Whoever takes it learns what went wrong.
  first.catch(() => {})
  return {
    async next() {
      const next = await (first ?? portions.next())
      first = undefined
      return next.done === true ? undefined : next.value
    },
    return: () => portions.return(),
  }
}

function identityOf({ name, labels }: HistorySeries): string {
  return JSON.stringify([name, labels])
}
