/**
 * `producer.recent`: the recent values of metrics, from the history as far as it records them, and otherwise from memory. Rights are
 * judged for each series, as for a QUERY of its metric.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { prometheusLabel } from '../../../protocol/prometheus/names.ts'
import { STALE_NAN } from '../../../protocol/prometheus/stale-marker.ts'
import type { HistoryMatcher, HistorySamples, HistorySeries } from '../../../storage/history/store.ts'
import type { Kit } from '../../kit/kit.ts'
import {
  AllLabelsBut,
  type Arguments,
  fromForeign,
  type Measurement,
  type Metric,
  maySee,
  type Owner,
  openFields,
  type PolledSensor,
  RecordList,
  toForeign,
} from '../../kit/metrics.ts'
import { isPattern } from '../../kit/producers.ts'
import { StatusError, type Steps } from '../../kit/running.ts'
import { nameForPrometheus } from '../../kit/samples.ts'
import { SERVER } from './messages.ts'
import { type HistoryReader, mayReadSeries, ownerOf } from './readable.ts'
import type { HistoryReading } from './reading.ts'
import { labelMatcher, matcherOf } from './select.ts'

const { ARRAY, BOOLEAN, DOUBLE, REC, STRING, UINT64 } = BasicType

const HOUR_MS = 3_600_000
/** A time may be so far ahead of the clock of the server. */
const AHEAD_MS = 60_000
const MICROSECONDS = 1_000n
/** A record has at most this many samples, so that any fits a frame. */
const MAX_SAMPLES = 16_384
/** A field `after` with numbers of 5 and 16 digits. */
const AFTER_BYTES = 56
/** Where the list goes on in the history: with which owner, and after which place of a series of it. */
const PLACE = /^h(\d{1,5})\.(\d{1,16})$/
const BEGINNING: Place = { owner: 0, series: 0 }
/** Arguments that are no labels. */
const OWN_ARGUMENTS: ReadonlySet<string> = new Set(['metric', 'last_ms', 'after'])
const STALE_BITS = (BigInt(STALE_NAN.high) << 32n) | BigInt(STALE_NAN.low)

const allLabels = new AllLabelsBut()

interface Place {
  readonly owner: number
  readonly series: number
}

/** What it needs of the kit. */
export interface RecentServices {
  readonly clock: Pick<Kit['clock'], 'microseconds' | 'wallMs'>
  readonly poll: Pick<Kit['poll'], 'work'>
  readonly peer: { readonly view: Pick<Kit['peer']['view'], 'tenants' | 'readRights' | 'recent'> }
}

/** What is recorded. */
export interface RecentHistory {
  readonly reading: Pick<HistoryReading, 'select'>
  isRecorded(name: string): boolean
  /** What has come is read by what is asked from now on. */
  freshen(): void
  /** Why nothing that is stored can be read now; undefined if it can. */
  readonly unreadable: string | undefined
}

export class RecentSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'producer.'
  readonly owner: Owner = 'producer'
  readonly personal = true
  readonly #kit: RecentServices
  readonly #history: RecentHistory

  constructor(kit: RecentServices, history: RecentHistory) {
    this.#kit = kit
    this.#history = history
  }

  get #metric(): Metric {
    return this.#kit.peer.view.recent.metric
  }

  metrics(): Iterable<Metric> {
    return [this.#metric]
  }

  metric(name: string): Metric | undefined {
    return name === this.#metric.name ? this.#metric : undefined
  }

  labels(): { readonly name: string } {
    return { name: this.#metric.name }
  }

  check(_: Metric, args: Arguments): void {
    const others = new Map(args)
    if (placeOf(args) !== undefined) others.delete('after')
    this.#kit.peer.view.recent.check(others)
  }

  async measure(...[, args, reader]: Parameters<PolledSensor['measure']>): Promise<Measurement> {
    return { value: await this.#page(args, reader), time: this.#kit.clock.microseconds() }
  }

  async #page(args: Arguments, reader: HistoryReader): Promise<Value> {
    const place = placeOf(args)
    const name = String(args.get('metric'))
    if (place === undefined && (isPattern(name) || !this.#history.isRecorded(name))) {
      const kept = await this.#kept(args, reader)
      const isWhole = kept.at(-1)?.some((field) => field.name === 'more') !== true
      if (isWhole && kept.length > 0 && isPattern(name) && this.#history.unreadable === undefined) kept.push(goesOn())
      if (kept.length > 0 || !isPattern(name)) return { type: ARRAY, value: { element: REC, items: kept } }
    }
    return this.#remembered(args, reader, place ?? BEGINNING)
  }

  /** What is in memory. Before the history began to record a metric, its values were kept there, too. */
  async #kept(args: Arguments, reader: HistoryReader): Promise<Field[][]> {
    const { poll, peer } = this.#kit
    const value = await poll.work(reader, peer.view.recent.show(reader, args) as Steps<Value>)
    if (value.type !== ARRAY) return []
    return (value.value.items as readonly Field[][]).filter((record) => {
      const name = record.find((field) => field.name === 'name')
      return name === undefined || !this.#history.isRecorded(String(name.value))
    })
  }

  async #remembered(args: Arguments, reader: HistoryReader, begin: Place): Promise<Value> {
    const { poll, peer } = this.#kit
    const rights = peer.view.readRights(reader)
    const list = new RecordList(AFTER_BYTES)
    const owners = [...peer.view.tenants(), SERVER].filter((tenant) => maySee(reader, ownerOf(tenant)))
    let place = begin
    const show = function* (this: RecentSensor, tenant: string, portion: readonly HistorySamples[]): Steps<boolean> {
      for (const samples of portion) {
        yield
        const isShown = this.#isOwn(samples.series) && mayReadSeries(rights, tenant, samples.series)
        const record = isShown ? recordOf(samples, args) : undefined
        if (record !== undefined && !list.add(record, [afterOf(place)])) return true
        place = { ...place, series: samples.place as number }
      }
      return false
    }
    this.#history.freshen()
    try {
      for (const [owner, tenant] of owners.entries()) {
        if (owner < begin.owner) continue
        place = { owner, series: owner === begin.owner ? begin.series : 0 }
        const asked = { tenant, ...this.#asked(args), after: place.series }
        for await (const portion of this.#history.reading.select(asked)) {
          if (await poll.work(reader, show.call(this, tenant, portion))) return list.value()
        }
      }
    } catch (error) {
      // The history is off, or has failed: there is nothing but what was read of it.
      if (!(error instanceof StatusError)) throw error
    }
    return list.value()
  }

  /** Parts of a histogram, and what stands for another metric, have names of their own. */
  #isOwn({ native, name }: HistorySeries): boolean {
    return this.#history.isRecorded(native) && nameForPrometheus(native).name === name
  }

  #asked(args: Arguments): { matchers: HistoryMatcher[]; fromMs: number; toMs: number } {
    const nowMs = this.#kit.clock.wallMs()
    const lastMs = Math.min((args.get('last_ms') as number | undefined) ?? HOUR_MS, HOUR_MS)
    const labels = labelsIn(args).map(([label, text]) => labelMatcher(label, text))
    const matchers = [matcherOf('__name__', String(args.get('metric'))), ...labels]
    return { matchers, fromMs: nowMs - lastMs, toMs: nowMs + AHEAD_MS }
  }
}

function goesOn(): Field[] {
  return [{ name: 'more', type: BOOLEAN, value: true }, afterOf(BEGINNING)]
}

function afterOf({ owner, series }: Place): Field {
  return { name: 'after', type: STRING, value: `h${owner}.${series}` }
}

/** Undefined: at the beginning, or in memory. */
function placeOf(args: Arguments): Place | undefined {
  const [, owner, series] = PLACE.exec(String(args.get('after') ?? '')) ?? []
  return series === undefined ? undefined : { owner: Number(owner), series: Number(series) }
}

function labelsIn(args: Arguments): [label: string, text: string][] {
  return [...args].flatMap(([name, value]) => (OWN_ARGUMENTS.has(name) ? [] : [[name, String(value)] as const])) as [
    string,
    string,
  ][]
}

/** Undefined if it has no sample but its end. */
function recordOf({ series, times, values }: HistorySamples, args: Arguments): Field[] | undefined {
  const words = new BigUint64Array(values.buffer, values.byteOffset, values.length)
  const [shownTimes, shownValues]: [bigint[], number[]] = [[], []]
  for (let at = Math.max(0, times.length - MAX_SAMPLES); at < times.length; at++) {
    if (words[at] === STALE_BITS) continue
    shownTimes.push(BigInt(times[at] as number) * MICROSECONDS)
    shownValues.push(values[at] as number)
  }
  if (shownTimes.length === 0) return undefined
  // A label that was asked for has the name by which it was.
  const given = new Map(labelsIn(args).map(([label]) => [prometheusLabel(toForeign(label)), label]))
  const labels = series.labels.map(([label, text]) => [given.get(label) ?? fromForeign(label), text])
  return [
    ...openFields({ ...Object.fromEntries(labels), name: series.native }, allLabels),
    { name: 'times', type: ARRAY, value: { element: UINT64, items: shownTimes } },
    { name: 'values', type: ARRAY, value: { element: DOUBLE, items: shownValues } },
  ]
}
