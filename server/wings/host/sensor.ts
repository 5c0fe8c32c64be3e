/** `host.*`: this machine, measured on request [MON 9]. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import {
  type Arguments,
  byName,
  type LabelName,
  type Labels,
  type Measurement,
  type Metric,
  type Owner,
  type Parameter,
  type PolledSensor,
  type SensorStatus,
} from '../../kit/metrics.ts'
import { type Clock, StatusError } from '../../kit/running.ts'
import { availableDefinitions, type HostDefinition } from './definitions.ts'
import { type HostArgs, type HostReader, type HostValue, UnknownHostObject } from './reader.ts'

const hostParameter: Parameter = {
  name: 'host',
  type: BasicType.STRING,
  description: 'The host; if left out, that of this producer.',
  selects: 'own',
}
const narrowing: Readonly<Record<NonNullable<HostDefinition['parameter']>, Parameter>> = {
  cpu: part('cpu', 'The number of a CPU, from 0; if left out, all CPUs together.'),
  mount: part('mount', 'A mount point; if left out, /.'),
  device: part('device', 'A block device; if left out, all whole disks together.'),
  interface: part('interface', 'A network interface; if left out, all except lo.'),
}

function part(name: LabelName, description: string): Parameter {
  return { name, type: BasicType.STRING, description, selects: 'part', isNumber: name === 'cpu' }
}

/** The clock of the sensor: readings at the same monotonic time share the files they read. */
export type HostClock = Pick<Clock, 'monotonicMs' | 'microseconds'>

export class HostSensor implements PolledSensor {
  readonly polled = true
  readonly family = 'host.'
  readonly owner: Owner = 'producer'
  readonly personal = false
  readonly node: string | undefined
  readonly #host: string
  readonly #reader: HostReader
  readonly #clock: HostClock
  readonly #metrics = new Map<string, Metric>()
  /** The parts of each metric, as they were read last. */
  readonly #parts = new Map<string, readonly string[]>()
  #readings = 0
  #failures = 0
  #lastFailure = ''

  /** `node`: the name of this node of a cluster, which is the host then. */
  constructor(host: string, reader: HostReader, clock: HostClock, platform: NodeJS.Platform, node?: string) {
    this.#host = node ?? host
    this.node = node
    this.#reader = reader
    this.#clock = clock
    for (const { name, type, unit, description, parameter, isCounter = false } of availableDefinitions(
      platform,
    ).toSorted(byName)) {
      const parameters = parameter === undefined ? [hostParameter] : [hostParameter, narrowing[parameter]]
      this.#metrics.set(name, { name, kind: 'continuous', type, unit, description, parameters, isCounter })
    }
  }

  metrics(): Iterable<Metric> {
    return this.#metrics.values()
  }

  metric(name: string): Metric | undefined {
    return this.#metrics.get(name)
  }

  labels(metric: Metric): Labels {
    return { name: metric.name, host: this.#host }
  }

  parts({ name }: Metric): readonly string[] {
    try {
      const parts = this.#reader.parts(name, this.#clock.monotonicMs())
      this.#parts.set(name, parts)
      return parts
    } catch (error) {
      this.#failed(name, error)
      // That a file cannot be read for a moment does not mean that everything is gone.
      return this.#parts.get(name) ?? []
    }
  }

  check(metric: Metric, args: Arguments): void {
    try {
      this.#reader.check(metric.name, argsOf(args), this.#clock.monotonicMs())
    } catch (error) {
      if (error instanceof UnknownHostObject) throw new StatusError('INVALID_ARGUMENT', error.message)
      throw error
    }
  }

  measure(metric: Metric, args: Arguments, _identity: unknown, key?: string): Measurement {
    return { value: measuredValue(metric, this.#read(metric, args, key)), time: this.#clock.microseconds() }
  }

  /** Returns undefined if a disk was unplugged after COLLECT, or a file cannot be read now: the binding continues. */
  #read(metric: Metric, args: Arguments, key?: string): HostValue {
    this.#readings++
    try {
      return this.#reader.read(metric.name, argsOf(args), this.#clock.monotonicMs(), key)
    } catch (error) {
      this.#failed(metric.name, error)
      return undefined
    }
  }

  #failed(name: string, error: unknown): void {
    this.#failures++
    this.#lastFailure = `${name}: ${error instanceof Error ? error.message : String(error)}`
  }

  /** For `producer.sensors`. */
  status(): SensorStatus {
    const detail = this.#lastFailure === '' ? '' : `last failure: ${this.#lastFailure}`
    return {
      name: 'host',
      state: 'measuring',
      detail,
      counters: { readings: this.#readings, failures: this.#failures },
    }
  }

  forget(key: string): void {
    this.#reader.forget(key)
  }
}

function argsOf(args: Arguments): HostArgs {
  return Object.fromEntries(args) as HostArgs
}

function measuredValue({ type }: Metric, read: HostValue): Value {
  return read === undefined ? VOID : ({ type, value: read } as Value)
}
