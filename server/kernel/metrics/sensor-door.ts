/**
 * The door for sensors that a program or a plug-in adds to the server (`sensors` of `startServer`, `[[plugin]]`). Their code is
 * not the server's: what it throws is a fault of that sensor and of nothing else, and every value is checked here, once, however
 * many consumers it has. The server's own sensors are added to the hub directly.
 */
import type { Owner } from '../../../auth/permissions.ts'
import { MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, writeTyped } from '../../../protocol/monitor/value.ts'
import { isRefusal, StatusError } from '../core/errors.ts'
import { isSteps, type Steps } from '../core/fair-work.ts'
import type { Hub } from './hub.ts'
import { isListening } from './kinds.ts'
import { MAX_LABELS, MAX_SERIES_BYTES } from './labels.ts'
import type {
  EventSensor,
  Labels,
  ListeningSensor,
  LocalSensor,
  Measurement,
  Metric,
  PolledSensor,
  ResumePoint,
  Sensor,
  SensorStatus,
  Series,
} from './metric.ts'
import { labelsProblem, metricProblem, statusProblem, valueProblem } from './value-problem.ts'

/** A value with its labels has to fit a frame: XDR adds at most fifteen bytes to a label. */
const MAX_VALUE_BYTES = MAX_FRAME_BYTES - MAX_SERIES_BYTES - 16 * (MAX_LABELS + 1)

/** Where a program adds sensors, and where these report births, values and deaths of their series. Nothing here throws. */
export interface SensorHub {
  add(sensor: LocalSensor): void
  /** Reports that a series is new, or that it answers to other names than before. */
  born(sensor: ListeningSensor, series: Series): void
  /** Passes on a value of a series; `time` is in microseconds since 1970. A value that does not fit its type is dropped. */
  emit(series: Series, value: Value, time: number): void
  /** Reports that the source of a series is gone. */
  died(series: Series): void
}

/** Whose sensors come through a door, and what bounds them. */
export interface Guest {
  /** To whom its sensors belong, whatever they say. */
  readonly owner?: Owner
  /** What its faults are counted for, besides the sensor. */
  readonly whole?: object
  /** The series that it may have, and the metrics that each sensor may list. */
  readonly maxSeries: number
  /** Runs its code. */
  enter<T>(act: () => T): T
  /** Runs code of the server that it has called. */
  leave<T>(act: () => T): T
  /** Settles with `measuring`, or rejects when that takes too long. */
  inTime<T>(measuring: Promise<T>): Promise<T>
  /** Counts a value that it brings in; returns false if that is one too many. */
  takeValue(): boolean
  /** Counts a series or metric that is one too many. */
  refuseSeries(): void
}

/** A program that calls `startServer` bounds itself. */
const PROGRAM: Guest = {
  maxSeries: Number.POSITIVE_INFINITY,
  enter: (act) => act(),
  leave: (act) => act(),
  inTime: (measuring) => measuring,
  takeValue: () => true,
  refuseSeries() {},
}

interface Admitted {
  readonly sensor: Sensor
  readonly series: Series
}

export class SensorDoor implements SensorHub {
  readonly #hub: Hub
  /** The sensors of the hub, by what the program added. */
  readonly #sensors = new WeakMap<Sensor, Sensor>()
  readonly #series = new WeakMap<Series, Admitted>()
  /** The other way round. */
  readonly #own = new WeakMap<Series, Series>()
  readonly #guest: Guest
  /** The series that were born and have not died. */
  readonly #live = new Set<Series>()
  readonly #writer = new XdrWriter()

  constructor(hub: Hub, guest = PROGRAM) {
    this.#hub = hub
    this.#guest = guest
  }

  add(sensor: LocalSensor): void {
    const admitted = this.#admit(sensor)
    this.#sensors.set(sensor, admitted)
    if (this.#guest.whole !== undefined) this.#hub.faults.belongs(admitted, this.#guest.whole)
    this.#guest.leave(() => this.#hub.add(admitted))
  }

  born(sensor: ListeningSensor, series: Series): void {
    const admitted = this.#sensors.get(sensor)
    if (admitted === undefined || !isListening(admitted)) return
    if (!this.#live.has(series) && this.#live.size >= this.#guest.maxSeries) {
      this.#guest.refuseSeries()
      return
    }
    this.#pass(admitted, () => {
      const own = this.#admitSeries(admitted, series)
      this.#live.add(series)
      this.#hub.born(admitted, own)
    })
  }

  emit(series: Series, value: Value, time: number): void {
    const admitted = this.#series.get(series)
    if (admitted === undefined || !this.#guest.takeValue()) return
    this.#pass(admitted.sensor, () => {
      const encoded = this.#encoded(series.name, { value, time })
      this.#hub.emitEncoded(admitted.series, encoded, time)
    })
  }

  died(series: Series): void {
    this.#live.delete(series)
    const admitted = this.#series.get(series)
    if (admitted !== undefined) this.#pass(admitted.sensor, () => this.#hub.died(admitted.series))
  }

  /** Does what a sensor asks for. */
  #pass(sensor: Sensor, act: () => void): void {
    try {
      this.#guest.leave(act)
    } catch (error) {
      this.#hub.faults.report(sensor, error)
    }
  }

  /** Asks a sensor. */
  #attempt<T>(sensor: Sensor, act: () => T, otherwise: T): T {
    try {
      return this.#guest.enter(act)
    } catch (error) {
      this.#hub.faults.report(sensor, error)
      return otherwise
    }
  }

  /**
   * What a sensor lists: one at a time, because the list may be read over several turns, and as many as the guest may have.
   * `sound` throws for one that cannot be used, which is left out.
   */
  *#listed<T, U>(sensor: Sensor, list: () => Iterable<T>, sound: (one: T) => U): Generator<U> {
    const begin = (): Iterator<T> => {
      const all = list()
      // An array may change between two turns, and others would be skipped then.
      return (Array.isArray(all) ? all.slice() : all)[Symbol.iterator]()
    }
    const all = this.#attempt(sensor, begin, undefined)
    if (all === undefined) return
    const next = (): { readonly one: T } | undefined => {
      const { done, value } = all.next()
      return done === true ? undefined : { one: value }
    }
    try {
      for (let count = 0; ; count++) {
        const found = this.#attempt(sensor, next, undefined)
        if (found === undefined) return
        if (count >= this.#guest.maxSeries) {
          this.#guest.refuseSeries()
          return
        }
        const checked = this.#attempt(sensor, () => ({ one: sound(found.one) }), undefined)
        if (checked !== undefined) yield checked.one
      }
    } finally {
      this.#attempt(sensor, () => all.return?.(), undefined)
    }
  }

  /** Throws TypeError. */
  #encoded(name: string, { value, time }: Measurement): Uint8Array {
    const problem = valueProblem(value)
    if (problem !== undefined) throw new TypeError(`${name}: ${problem}`)
    if (!(time >= 0 && time <= Number.MAX_SAFE_INTEGER))
      throw new TypeError(`${name}: the time ${time} is not possible`)
    writeTyped(this.#writer.clear(), value)
    if (this.#writer.length > MAX_VALUE_BYTES) throw new TypeError(`${name}: a value of ${this.#writer.length} bytes`)
    return this.#writer.bytes()
  }

  /** Throws TypeError. */
  #checked(metric: Metric, measured: Measurement): Measurement {
    this.#encoded(metric.name, measured)
    const { type } = measured.value
    if (metric.type !== undefined && type !== metric.type && type !== BasicType.VOID) {
      throw new TypeError(`${metric.name}: basic type ${metric.type} was declared, and ${type} was measured`)
    }
    return measured
  }

  *#checkedSteps(metric: Metric, steps: Steps<Measurement>): Steps<Measurement> {
    for (;;) {
      const step = this.#guest.enter(() => steps.next())
      if (step.done === true) return this.#checked(metric, step.value)
      yield
    }
  }

  #admit(sensor: LocalSensor): LocalSensor {
    if (sensor.polled === 'event') return this.#events(sensor)
    return sensor.polled ? this.#polled(sensor) : this.#listening(sensor)
  }

  /** What the three kinds of sensor share. */
  #family(
    sensor: LocalSensor,
    admitted: () => Sensor,
  ): Pick<LocalSensor, 'family' | 'owner' | 'metrics' | 'metric' | 'status'> {
    const { family } = sensor
    const failed: SensorStatus = { name: family, state: 'failed', detail: '', counters: {} }
    /** Throws TypeError; a metric may also be an object that fails when it is looked at. */
    const sound = (metric: Metric): Metric => {
      const problem = metricProblem(metric, family)
      if (problem !== undefined) throw new TypeError(problem)
      return metric
    }
    const found = (name: string): Metric | undefined => {
      const metric = sensor.metric(name)
      return metric === undefined ? undefined : sound(metric)
    }
    const status = (): SensorStatus => {
      const status = sensor.status?.() ?? failed
      const problem = statusProblem(status)
      if (problem !== undefined) throw new TypeError(problem)
      return status
    }
    return {
      family,
      owner: this.#guest.owner ?? sensor.owner,
      metrics: (prefix, after) => this.#listed(admitted(), () => sensor.metrics(prefix, after), sound),
      metric: (name) => this.#attempt(admitted(), () => found(name), undefined),
      ...(sensor.status && { status: () => this.#attempt(admitted(), status, failed) }),
    }
  }

  #polled(sensor: PolledSensor): PolledSensor {
    const admitted: PolledSensor = {
      ...this.#family(sensor, () => admitted),
      polled: true,
      personal: sensor.personal,
      check: (metric, args) => {
        try {
          this.#guest.enter(() => sensor.check(metric, args))
        } catch (error) {
          if (isRefusal(error)) throw error
          this.#hub.faults.report(admitted, error)
          throw new StatusError('INTERNAL', `the sensor of ${metric.name} failed`)
        }
      },
      // The hub takes what this throws, for every sensor.
      measure: (metric, args, identity, key) => {
        const measured = this.#guest.enter(() => sensor.measure(metric, args, identity, key))
        if (isSteps<Measurement>(measured)) return this.#checkedSteps(metric, measured)
        return measured instanceof Promise
          ? this.#guest.inTime(measured).then((later) => this.#checked(metric, later))
          : this.#checked(metric, measured)
      },
      forget: (key) => this.#attempt(admitted, () => sensor.forget?.(key), undefined),
      labels: (metric) => this.#attempt(admitted, () => soundLabels(sensor.labels(metric)), { name: metric.name }),
      ...(sensor.parts && {
        parts: (metric, parameter) => [...this.#listed(admitted, () => sensor.parts!(metric, parameter), soundText)],
      }),
    }
    return admitted
  }

  #listening(sensor: ListeningSensor): ListeningSensor {
    const { expected } = sensor
    const all = (list: () => Iterable<Series>): Iterable<Series> =>
      this.#listed(admitted, list, (one) => this.#admitSeries(admitted, one))
    const last = (series: Series): Measurement | undefined => {
      const measured = sensor.last(this.#own.get(series) ?? series)
      if (measured !== undefined) this.#encoded(series.name, measured)
      return measured
    }
    const admitted: ListeningSensor = {
      ...this.#family(sensor, () => admitted),
      polled: false,
      hasOpenLabels: sensor.hasOpenLabels === true,
      series: (...which) => all(() => sensor.series(...which)),
      ...(expected && { expected: (name) => all(() => expected.call(sensor, name)) }),
      last: (series) => this.#attempt(admitted, () => last(series), undefined),
    }
    return admitted
  }

  #events(sensor: EventSensor): EventSensor {
    /** The event that came last, which counts once if each of its listeners gets the same object; and how many there were. */
    let [last, round, isTaken]: [Measurement | undefined, number, boolean] = [undefined, 0, false]
    const admitted: EventSensor = {
      ...this.#family(sensor, () => admitted),
      polled: 'event',
      subscribe: (metric, identity, listener, args, place) => {
        let [taken, isOver] = [0, false]
        const checked = (event: Measurement): void => {
          if (isOver) return
          if (event !== last || taken === round) {
            last = event
            round++
            isTaken = this.#guest.takeValue()
          }
          taken = round
          if (isTaken) this.#pass(admitted, () => listener(this.#checked(metric, event)))
        }
        const reach = (number: number): void => {
          if (!isOver) this.#pass(admitted, () => place.reach(soundNumber(number)))
        }
        const own: ResumePoint = {
          get reached() {
            return place.reached
          },
          reach,
        }
        const nothing = (): void => {}
        const end = this.#attempt(admitted, () => sensor.subscribe(metric, identity, checked, args, own), nothing)
        return () => {
          isOver = true
          this.#attempt(admitted, end, undefined)
        }
      },
    }
    return admitted
  }

  #admitSeries(sensor: ListeningSensor, own: Series): Series {
    const known = this.#series.get(own)
    if (known !== undefined) return known.series
    soundLabels(own.labels, sensor.hasOpenLabels)
    if (typeof own.name !== 'string' || !own.name.startsWith(sensor.family)) {
      throw new TypeError(`the name of a series has to begin with "${sensor.family}", unlike ${String(own.name)}`)
    }
    // The hub adds to it.
    if (!Array.isArray(own.subscriptions) || !Object.isExtensible(own.subscriptions)) {
      throw new TypeError(`${own.name}: \`subscriptions\` of a series is an array, empty at first`)
    }
    const first = (): Measurement | undefined => {
      const measured = own.first?.()
      if (measured !== undefined) this.#encoded(own.name, measured)
      return measured
    }
    const series: Series = {
      subscriptions: own.subscriptions,
      name: own.name,
      labels: own.labels,
      isEvent: own.isEvent === true,
      matches: (label, matcher) => this.#attempt(sensor, () => own.matches(label, matcher), false),
      ...(own.first && { first: () => this.#attempt(sensor, first, undefined) }),
      ...(own.wanted && { wanted: (is) => this.#attempt(sensor, () => own.wanted!(is), undefined) }),
    }
    this.#series.set(own, { sensor, series })
    this.#own.set(series, own)
    return series
  }
}

/** Throws TypeError. */
function soundLabels(labels: Labels, open = false): Labels {
  const problem = labelsProblem(labels, open)
  if (problem !== undefined) throw new TypeError(problem)
  return labels
}

/** Throws TypeError. */
function soundText(text: string): string {
  soundLabels({ name: text })
  return text
}

/** Throws TypeError. */
function soundNumber(number: number): number {
  if (!(Number.isSafeInteger(number) && number >= 0)) {
    throw new TypeError(`the number of an event is a whole number from 0 on, unlike ${String(number)}`)
  }
  return number
}
