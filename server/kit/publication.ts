/**
 * What programs hand over in one request, for the families that take published values: rights are judged for all series before
 * the first value is taken, what begins is taken whole, and the yes is given when it is durable (channels/intake.ts).
 */
import type { Publisher } from '../../auth/publisher.ts'
import type { Asker, Rights } from '../kernel/accounts/rights.ts'
import type { Intake, IntakeRefusal } from '../kernel/channels/intake.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Steps } from '../kernel/core/fair-work.ts'
import type { MetricMetadata } from '../kernel/metrics/catalogue.ts'
import { StillClock } from '../kernel/metrics/current.ts'
import { labelText, shownName } from '../kernel/metrics/labels.ts'
import type { Labels } from '../kernel/metrics/metric.ts'
import { type Columns, encodedAt, NO_SERIES, ValueKind, valueAt } from './columns.ts'
import type { Decoder, Decoding, EncodedBody } from './decoding.ts'
import type { LabelledFamily, LabelledSensor } from './labelled-sensor.ts'
import type { LabelledSeries } from './labelled-series.ts'
import { type NotNow, notNow, type Poll } from './poll.ts'
import { RequestSeries } from './request-series.ts'
import { nameOfKey, seriesOfKey } from './series-key.ts'

const SERIES_PER_STEP = 32
const VALUES_PER_STEP = 128
/** What a series costs that begins, in values. */
const SERIES_COST = 8
const SECOND_MS = 1_000
/** Times on the wire are exact up to here: the year 2255. */
const MAX_TIME = Number.MAX_SAFE_INTEGER
/** Senders of OTLP wait for ten seconds unless they are told otherwise. */
const PATIENCE_MS = 9_000

/** Too much waits to be decoded, or is decoded and not stored yet; or the server stops. */
export const BEHIND: NotNow = { reason: 'behind', detail: 'no more requests are decoded now', waitMs: SECOND_MS }
const LATE: NotNow = { reason: 'behind', detail: 'the values are taken, but not stored yet', waitMs: SECOND_MS }

export type Published =
  | { readonly outcome: 'not-now'; readonly why: NotNow }
  /** Nothing was taken, because a series may not be published. */
  | { readonly outcome: 'denied'; readonly detail: string }
  /** Everything but `rejected` values; `detail` says for people why the first of those was not. */
  | { readonly outcome: 'taken'; readonly taken: number; readonly rejected: number; readonly detail: string }

export interface PublicationOptions {
  readonly whole: boolean
  readonly describe?: (name: string) => MetricMetadata | undefined
}

export interface PublicationServices {
  readonly poll: Pick<Poll, 'work' | 'refusal'>
  readonly decoding: Pick<Decoding, 'decode'>
  readonly intake: Pick<Intake, 'begin'>
  readonly rights: Pick<Rights, 'publisher'>
  readonly clock: Pick<Clock, 'setTimeout' | 'clear' | 'monotonicMs' | 'microseconds'>
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

  /** Decodes a body for `use`, which publishes its columns. Undefined if the server is behind. Rejects with ProtocolError. */
  async decode<O, T>(
    body: EncodedBody,
    decoder: Decoder<O>,
    options: O,
    use: (columns: Columns) => Promise<T>,
  ): Promise<T | undefined> {
    const wanted = async (columns: Columns) => (body.isOver() ? undefined : use(columns))
    const used = await this.#services.decoding.decode(body, decoder, options, wanted)
    if (used === undefined && !body.isOver()) this.notNow(body.tenant)
    return used
  }

  /** Counts a request that has found no turn, or no room for what it becomes. */
  notNow(tenant: string): void {
    this.#family.of(tenant).notNow()
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
   * Publishes what a request has for an identity. `whole`: one series that may not be published refuses the whole request;
   * otherwise it is left out, and counts as rejected. `describe` knows metadata of series that the request does not describe.
   */
  async publish(asker: Asker, columns: Columns, { whole, describe }: PublicationOptions): Promise<Published> {
    const { poll, intake } = this.#services
    const { tenant } = asker.identity
    const sensor = this.#family.of(tenant)
    const party = { tenant }
    const rejections = new Rejections()
    sensor.decoderForgot(columns)
    const series = new RequestSeries(sensor, columns)
    const publisher = this.#services.rights.publisher(asker, sensor)
    const isAllowed = await poll.work(party, this.#allowed(publisher, series, columns, rejections))
    if (whole && rejections.values > 0) return { outcome: 'denied', detail: rejections.first }
    const why = poll.refusal(sensor)
    if (why !== undefined) return { outcome: 'not-now', why }
    const taking = intake.begin(sensor)
    const taken = await poll.work(party, this.#take(sensor, columns, series, isAllowed, rejections, describe))
    const refusal = await this.#within(taking.stored())
    if (refusal === LATE) return { outcome: 'not-now', why: LATE }
    if (refusal !== undefined) {
      // It comes again, and is new then.
      series.forget()
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

  /** Judges every series, and counts the values of those that are not allowed. */
  *#allowed(publisher: Publisher, series: RequestSeries, { of }: Columns, rejections: Rejections): Steps<Uint8Array> {
    const isAllowed = new Uint8Array(series.count)
    const judge = (key: string): boolean => {
      let labels: Labels | undefined
      // Rules name labels as they are shown.
      return publisher.may(nameOfKey(key), (wanted) => {
        labels ??= seriesOfKey(key).labels
        return labelText(labels, wanted) ?? ''
      })
    }
    let detail = ''
    for (let place = 0; place < isAllowed.length; place++) {
      const known = series.find(place)
      if (known === undefined ? judge(series.key(place)) : known.isAllowedBy(publisher.stamp, judge))
        isAllowed[place] = 1
      else if (detail === '')
        detail = `PUBLISH of ${shownName(nameOfKey(series.key(place)))} is not allowed with these labels`
      if ((place + 1) % SERIES_PER_STEP === 0) yield
    }
    if (detail === '') return isAllowed
    for (let place = 0; place < of.length; place++) {
      const one = of[place] as number
      if (one !== NO_SERIES && isAllowed[one] === 0) rejections.add(detail)
      if ((place + 1) % (8 * VALUES_PER_STEP) === 0) yield
    }
    return isAllowed
  }

  *#take(
    sensor: LabelledSensor,
    columns: Columns,
    ofRequest: RequestSeries,
    isAllowed: Uint8Array,
    rejections: Rejections,
    describe: PublicationOptions['describe'],
  ): Steps<number> {
    const { of, times, kinds, numbers, refusedSeries, problem } = columns
    const now = new StillClock(this.#services.clock)
    if (refusedSeries > 0) sensor.refusedLabels(refusedSeries)
    let [taken, sinceStep] = [0, 0]
    let place = -1
    let series: LabelledSeries | string = ''
    for (let at = 0; at < of.length; at++) {
      if (++sinceStep >= VALUES_PER_STEP) {
        sinceStep = 0
        yield
        now.read()
      }
      const time = times[at] as number
      if (of[at] !== place) {
        place = of[at] as number
        if (place === NO_SERIES) series = problem
        else if (isAllowed[place] === 1) {
          series = ofRequest.begun(place)
          if (typeof series !== 'string') {
            const said = ofRequest.metadata(place) ?? describe?.(series.name)
            if (said !== undefined) sensor.describe(series, said)
          }
        }
        sinceStep += SERIES_COST
      }
      if (place !== NO_SERIES && isAllowed[place] === 0) continue
      if (typeof series === 'string') rejections.add(series)
      else if (!(time >= 0 && time <= MAX_TIME)) {
        rejections.add(`${shownName(series.name)}: the time ${time} µs is not possible`)
      } else {
        sensor.meter.take()
        if (kinds[at] === ValueKind.DOUBLE) sensor.takeSentNumber(series, numbers[at] as number, time, now)
        else if (kinds[at] === ValueKind.ENCODED) {
          sensor.takeEncoded(series, encodedAt(columns, at), time, now)
          // A histogram may have very many buckets.
          sinceStep = VALUES_PER_STEP
        } else sensor.take(series, valueAt(columns, at), time)
        taken++
      }
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

  /** A value, and why it is not taken. */
  add(detail: string): void {
    this.values++
    if (this.first === '') this.first = detail
  }
}
