/**
 * The door for sensors that a program adds to the server (`sensors` of `startServer`). Their code is not the server's: what it
 * throws is a fault of that sensor and of nothing else, and every value is checked here, once, however many consumers
 * it has. The server's own sensors are added to the hub directly.
 */
import { MAX_FRAME_BYTES } from '../../protocol/bytes/framer.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { type Value, writeTyped } from '../../protocol/monitor/value.ts'
import { StatusError } from '../core/errors.ts'
import { isSteps, type Steps } from '../core/fair-work.ts'
import type { Hub } from './hub.ts'
import type { EventSensor, ListeningSensor, Measurement, Metric, PolledSensor, Sensor, Series } from './metric.ts'
import { valueProblem } from './value-problem.ts'

/** A value with its labels has to fit a frame; labels are at most eight texts of 255 bytes. */
const MAX_VALUE_BYTES = MAX_FRAME_BYTES - 4096

/** Where a program adds sensors, and where these report births, values and deaths of their series. Nothing here throws. */
export interface SensorHub {
  add(sensor: Sensor): void
  /** Reports that a series is new, or that it answers to other names than before. */
  born(sensor: ListeningSensor, series: Series): void
  /** Passes on a value of a series; `time` is in microseconds since 1970. A value that does not fit its type is dropped. */
  emit(series: Series, value: Value, time: number): void
  /** Reports that the source of a series is gone. */
  died(series: Series): void
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
  readonly #writer = new XdrWriter()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  add(sensor: Sensor): void {
    const admitted = this.#admit(sensor)
    this.#sensors.set(sensor, admitted)
    this.#hub.add(admitted)
  }

  born(sensor: ListeningSensor, series: Series): void {
    const admitted = this.#sensors.get(sensor)
    if (admitted?.polled !== false) return
    this.#attempt(admitted, () => this.#hub.born(admitted, this.#admitSeries(admitted, series)), undefined)
  }

  emit(series: Series, value: Value, time: number): void {
    const admitted = this.#series.get(series)
    if (admitted === undefined) return
    const pass = (): void => {
      const encoded = this.#encoded(series.name, { value, time })
      this.#hub.emitEncoded(admitted.series, encoded, time)
    }
    this.#attempt(admitted.sensor, pass, undefined)
  }

  died(series: Series): void {
    const admitted = this.#series.get(series)
    if (admitted !== undefined) this.#attempt(admitted.sensor, () => this.#hub.died(admitted.series), undefined)
  }

  #attempt<T>(sensor: Sensor, act: () => T, otherwise: T): T {
    try {
      return act()
    } catch (error) {
      this.#hub.faults.report(sensor, error)
      return otherwise
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
    return this.#checked(metric, yield* steps)
  }

  #admit(sensor: Sensor): Sensor {
    if (sensor.polled === 'event') return this.#events(sensor)
    return sensor.polled ? this.#polled(sensor) : this.#listening(sensor)
  }

  /** What the three kinds of sensor share. */
  #family(sensor: Sensor, admitted: () => Sensor): Pick<Sensor, 'family' | 'owner' | 'metrics' | 'metric' | 'status'> {
    const { family, owner } = sensor
    return {
      family,
      owner,
      metrics: () => this.#attempt(admitted(), () => [...sensor.metrics()], []),
      metric: (name) => this.#attempt(admitted(), () => sensor.metric(name), undefined),
      ...(sensor.status && {
        status: () =>
          this.#attempt(admitted(), () => sensor.status!(), {
            name: family,
            state: 'failed',
            detail: '',
            counters: {},
          }),
      }),
    }
  }

  #polled(sensor: PolledSensor): PolledSensor {
    const admitted: PolledSensor = {
      ...this.#family(sensor, () => admitted),
      polled: true,
      personal: sensor.personal,
      check: (metric, args) => {
        try {
          sensor.check(metric, args)
        } catch (error) {
          if (error instanceof StatusError) throw error
          this.#hub.faults.report(admitted, error)
          throw new StatusError('INTERNAL', `the sensor of ${metric.name} failed`)
        }
      },
      // The hub takes what this throws, for every sensor.
      measure: (metric, args, identity, key) => {
        const measured = sensor.measure(metric, args, identity, key)
        if (isSteps<Measurement>(measured)) return this.#checkedSteps(metric, measured)
        return measured instanceof Promise
          ? measured.then((later) => this.#checked(metric, later))
          : this.#checked(metric, measured)
      },
      forget: (key) => this.#attempt(admitted, () => sensor.forget?.(key), undefined),
      labels: (metric) => this.#attempt(admitted, () => sensor.labels(metric), { name: metric.name }),
      ...(sensor.parts && {
        parts: (metric, parameter) => this.#attempt(admitted, () => sensor.parts!(metric, parameter), []),
      }),
    }
    return admitted
  }

  #listening(sensor: ListeningSensor): ListeningSensor {
    const { expected } = sensor
    const all = (series: Iterable<Series>): Series[] => [...series].map((one) => this.#admitSeries(admitted, one))
    const last = (series: Series): Measurement | undefined => {
      const measured = sensor.last(this.#own.get(series) ?? series)
      if (measured !== undefined) this.#encoded(series.name, measured)
      return measured
    }
    const admitted: ListeningSensor = {
      ...this.#family(sensor, () => admitted),
      polled: false,
      series: (name) => this.#attempt(admitted, () => all(sensor.series(name)), []),
      ...(expected && { expected: (name) => this.#attempt(admitted, () => all(expected.call(sensor, name)), []) }),
      last: (series) => this.#attempt(admitted, () => last(series), undefined),
    }
    return admitted
  }

  #events(sensor: EventSensor): EventSensor {
    const admitted: EventSensor = {
      ...this.#family(sensor, () => admitted),
      polled: 'event',
      subscribe: (metric, identity, listener, args, place) => {
        const checked = (event: Measurement): void => {
          this.#attempt(admitted, () => listener(this.#checked(metric, event)), undefined)
        }
        const nothing = (): void => {}
        const end = this.#attempt(admitted, () => sensor.subscribe(metric, identity, checked, args, place), nothing)
        return () => this.#attempt(admitted, end, undefined)
      },
    }
    return admitted
  }

  #admitSeries(sensor: ListeningSensor, own: Series): Series {
    const known = this.#series.get(own)
    if (known !== undefined) return known.series
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
