/**
 * The producers that a selection reaches [MON 9.13]. Without the argument `producer` it is this one alone; with it, this one only
 * if the argument matches its name.
 */
import { type Identity, mayRead } from '../../auth/permissions.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import type { ProducerName } from '../../protocol/monitor/capabilities.ts'
import type { RemoteSensor, Sensor } from './metric.ts'
import { compilePattern, isPattern } from './pattern.ts'

/** The argument, and the label. */
export const PRODUCER = 'producer'

export class Reach {
  /** The text of the argument; undefined if it was left out, or belongs to the metric itself. */
  readonly text: string | undefined
  readonly #own: string
  readonly #matches: (producer: string) => boolean

  /** `own`: the name of this producer. */
  constructor(text: string | undefined, own: string) {
    this.text = text
    this.#own = own
    this.#matches = text === undefined ? () => false : compilePattern(text)
  }

  /** What arguments reach. `sensors` are those of this producer that may have the name: their metrics may declare `producer` themselves. */
  static of(list: ArgumentList, name: string, sensors: readonly Sensor[], own: string): Reach {
    const given = list.find((argument) => argument.name === PRODUCER)?.value
    if (typeof given !== 'string') return new Reach(undefined, own)
    const isDeclared = !isPattern(name) && sensors.some((sensor) => declares(sensor, name))
    return new Reach(isDeclared ? undefined : given, own)
  }

  /** Whether the metrics of this producer are reached. */
  get isOwn(): boolean {
    return this.text === undefined || this.#matches(this.#own)
  }

  /** Whether several producers may be meant, so that each value says which one it is of. */
  get isOpen(): boolean {
    return this.text !== undefined && isPattern(this.text)
  }

  /** The label of values of this producer; undefined if they have none. */
  get ownLabel(): string | undefined {
    return this.isOpen ? this.#own : undefined
  }

  includes(sensor: Sensor): boolean {
    if (sensor.polled !== 'remote') return this.isOwn
    return this.isOpen || (this.text !== undefined && !this.isOwn)
  }

  /** The producers of a sensor that are reached. */
  *producers(sensor: RemoteSensor): Generator<string> {
    for (const { name } of sensor.producers()) if (this.#matches(name)) yield name
  }
}

function declares(sensor: Sensor, name: string): boolean {
  if (sensor.polled === 'remote' || !name.startsWith(sensor.family)) return false
  return sensor.metric(name)?.parameters.some((parameter) => parameter.name === PRODUCER) === true
}

/** The producers that an identity may see. */
export function producersBelow(sensors: readonly Sensor[], identity: Identity): ProducerName[] {
  return sensors.flatMap((sensor) => {
    return sensor.polled === 'remote' && mayRead(identity, sensor.owner) ? [...sensor.producers()] : []
  })
}
