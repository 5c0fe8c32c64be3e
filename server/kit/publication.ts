/**
 * What programs hand over in one request, for the families that take published values: rights are judged for all series before
 * the first value is taken, what begins is taken whole, and the yes is given when it is durable (channels/intake.ts).
 */
import type { Value } from '../../protocol/monitor/value.ts'
import type { Asker, Rights } from '../kernel/accounts/rights.ts'
import type { Intake, IntakeRefusal } from '../kernel/channels/intake.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Steps } from '../kernel/core/fair-work.ts'
import type { MetricMetadata } from '../kernel/metrics/catalogue.ts'
import { fromForeign, shownName } from '../kernel/metrics/labels.ts'
import type { LabelledFamily, LabelledSensor } from './labelled-sensor.ts'
import { LabelledSeries } from './labelled-series.ts'
import { type NotNow, notNow, type Poll } from './poll.ts'

const SERIES_PER_STEP = 32
const VALUES_PER_STEP = 128
const SECOND_MS = 1_000
/** Times on the wire are exact up to here: the year 2255. */
const MAX_TIME = Number.MAX_SAFE_INTEGER
/** Senders of OTLP wait for ten seconds unless they are told otherwise. */
const PATIENCE_MS = 9_000

export interface PublishedSeries {
  /** With the family. */
  readonly name: string
  /** Its labels under their own names. */
  readonly labels: readonly (readonly [name: string, text: string])[]
  readonly metadata: MetricMetadata | undefined
  /** Ascending by time, microseconds since 1970. */
  readonly values: readonly { readonly value: Value; readonly time: number }[]
}

const LATE: NotNow = { reason: 'behind', detail: 'the values are taken, but not stored yet', waitMs: SECOND_MS }

export type Published =
  | { readonly outcome: 'not-now'; readonly why: NotNow }
  /** Nothing was taken, because a series may not be published. */
  | { readonly outcome: 'denied'; readonly detail: string }
  /** Everything but `rejected` values; `detail` says for people why the first of those was not. */
  | { readonly outcome: 'taken'; readonly taken: number; readonly rejected: number; readonly detail: string }

export interface PublicationServices {
  readonly poll: Pick<Poll, 'work' | 'refusal'>
  readonly intake: Pick<Intake, 'begin'>
  readonly rights: Pick<Rights, 'publisher'>
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
}

export class Publication {
  readonly #family: LabelledFamily
  readonly #services: PublicationServices

  constructor(family: LabelledFamily, services: PublicationServices) {
    this.#family = family
    this.#services = services
  }

  /** Whether somebody may publish any series of the family: asked before anything of his request is read. */
  mayPublish(asker: Asker): boolean {
    const { family } = this.#family
    const { tenant } = asker.identity
    return this.#services.rights.publisher(asker, { family, owner: { tenant }, isPublished: true }).mayAnything
  }

  /** Which metrics of the family somebody may describe, by names without its prefix, and of how many his tenant may have series. */
  describing(asker: Asker): { readonly may: (name: string) => boolean; readonly most: number } {
    const sensor = this.#family.of(asker.identity.tenant)
    const publisher = this.#services.rights.publisher(asker, sensor)
    const may = (name: string): boolean => {
      const full = this.#family.family + name
      return publisher.mayWithLabels(full) && sensor.metric(full) !== undefined
    }
    return { may, most: sensor.mostSeries }
  }

  /**
   * Publishes series for an identity. `whole`: one series that may not be published refuses the whole request; otherwise it is
   * left out, and counts as rejected.
   */
  async publish(asker: Asker, given: readonly PublishedSeries[], whole: boolean): Promise<Published> {
    const { poll, intake } = this.#services
    const { tenant } = asker.identity
    const sensor = this.#family.of(tenant)
    const party = { tenant }
    const rejections = new Rejections()
    const allowed = await poll.work(party, this.#allowed(asker, sensor, given, rejections))
    if (whole && rejections.values > 0) return { outcome: 'denied', detail: rejections.first }
    const why = poll.refusal(sensor)
    if (why !== undefined) return { outcome: 'not-now', why }
    const taking = intake.begin(sensor)
    const touched: LabelledSeries[] = []
    const taken = await poll.work(party, this.#take(sensor, allowed, touched, rejections))
    const refusal = await this.#within(taking.stored())
    if (refusal === LATE) return { outcome: 'not-now', why: LATE }
    if (refusal !== undefined) {
      // It comes again, and is new then.
      for (const series of touched) series.forget()
      return { outcome: 'not-now', why: refusal }
    }
    return { outcome: 'taken', taken, rejected: rejections.values, detail: rejections.first }
  }

  /** What is known after a while: senders do not wait for long, and what is sent again then is known again. */
  #within(stored: Promise<IntakeRefusal | undefined>): Promise<NotNow | undefined> {
    const { clock } = this.#services
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(LATE), PATIENCE_MS)
      void stored.then((refusal) => {
        clock.clear(timer)
        resolve(refusal && notNow(refusal))
      })
    })
  }

  *#allowed(
    asker: Asker,
    sensor: LabelledSensor,
    given: readonly PublishedSeries[],
    rejections: Rejections,
  ): Steps<PublishedSeries[]> {
    const publisher = this.#services.rights.publisher(asker, sensor)
    const allowed: PublishedSeries[] = []
    let judged = 0
    for (const series of given) {
      const { name, labels } = series
      // Rules name labels as they are shown.
      const text = (wanted: string): string => labels.find(([label]) => fromForeign(label) === wanted)?.[1] ?? ''
      if (publisher.may(name, text)) allowed.push(series)
      else rejections.add(series, `PUBLISH of ${shownName(name)} is not allowed with these labels`)
      if (++judged % SERIES_PER_STEP === 0) yield
    }
    return allowed
  }

  *#take(
    sensor: LabelledSensor,
    allowed: readonly PublishedSeries[],
    touched: LabelledSeries[],
    rejections: Rejections,
  ): Steps<number> {
    let [taken, sinceStep] = [0, 0]
    for (const given of allowed) {
      const series = sensor.of(
        given.name,
        given.labels.map(([name, text]) => [fromForeign(name), text] as const),
      )
      if (!(series instanceof LabelledSeries)) rejections.add(given, `${shownName(given.name)}: ${series.detail}`)
      else {
        if (given.metadata !== undefined) sensor.describe(series, given.metadata)
        touched.push(series)
        for (const { value, time } of given.values) {
          if (!(time >= 0 && time <= MAX_TIME)) {
            rejections.addValue(`${shownName(given.name)}: the time ${time} µs is not possible`)
            continue
          }
          sensor.meter.take()
          sensor.take(series, value, time)
          taken++
          if (++sinceStep % VALUES_PER_STEP === 0) yield
        }
      }
      if (++sinceStep % VALUES_PER_STEP === 0) yield
    }
    return taken
  }
}

/** The header of an answer that says when it is worth another try. */
export function retryAfter({ waitMs }: NotNow): { readonly 'retry-after': string } {
  return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / SECOND_MS))) }
}

/** What of a request is not taken. */
class Rejections {
  values = 0
  /** Why the first was not, for people. */
  first = ''

  add({ values }: PublishedSeries, detail: string): void {
    this.values += values.length
    if (this.first === '') this.first = detail
  }

  addValue(detail: string): void {
    this.values++
    if (this.first === '') this.first = detail
  }
}
