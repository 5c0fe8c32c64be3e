/**
 * The producers that a selection reaches [MON 9.13]. Without the argument `producer` it is this one alone; with it, this one only
 * if the argument matches its name.
 */
import { type Identity, maySee } from '../../../auth/permissions.ts'
import { MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import { isElsewhere, isLocal } from './kinds.ts'
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
    if (!isElsewhere(sensor)) return this.isOwn
    return this.isOpen || (this.text !== undefined && !this.isOwn)
  }

  /** The producers, or the nodes, of a sensor that are reached. */
  *producers(sensor: RemoteSensor): Generator<string> {
    for (const { name } of sensor.producers()) if (!isElsewhere(sensor) || this.#matches(name)) yield name
  }
}

function declares(sensor: Sensor, name: string): boolean {
  if (!isLocal(sensor) || !name.startsWith(sensor.family)) return false
  return sensor.metric(name)?.parameters.some((parameter) => parameter.name === PRODUCER) === true
}

/** Bytes of PRODUCER_CAPS for the producers below: half of a frame. */
const MAX_BELOW_BYTES = MAX_FRAME_BYTES / 2
/** What an entry has besides its id and name. */
const ENTRY_BYTES = 24

/**
 * The producers that an identity may see, as many as PRODUCER_CAPS may name. If these are not all, those that are consumed here have
 * turns with what they consume, so that one with very many leaves room to the others.
 */
export function producersBelow(sensors: readonly Sensor[], identity: Identity): ProducerName[] {
  const all = sensors.flatMap((sensor) => {
    return isElsewhere(sensor) && maySee(identity, sensor.owner) ? [...sensor.producers()] : []
  })
  if (all.reduce((sum, one) => sum + bytesOf(one), 0) <= MAX_BELOW_BYTES) return all
  const named = new Set<ProducerName>()
  let used = 0
  for (let round = byUpstream(all), index = 0; round.length > 0; index++) {
    round = round.filter((group) => {
      const one = group[index]
      if (one === undefined) return false
      used += bytesOf(one)
      if (used <= MAX_BELOW_BYTES) named.add(one)
      return used <= MAX_BELOW_BYTES
    })
  }
  return all.filter((one) => named.has(one))
}

function byUpstream(all: readonly ProducerName[]): (readonly ProducerName[])[] {
  const groups = new Map<string, ProducerName[]>()
  for (const one of all) {
    const [first = ''] = one.name.split('/', 1)
    const group = groups.get(first)
    if (group === undefined) groups.set(first, [one])
    else group.push(one)
  }
  return [...groups.values()]
}

/** In PRODUCER_CAPS. */
function bytesOf({ id, name }: ProducerName): number {
  return ENTRY_BYTES + Buffer.byteLength(id) + Buffer.byteLength(name)
}
