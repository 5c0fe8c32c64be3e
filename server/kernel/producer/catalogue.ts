/** `producer.metrics` and `producer.controls`: the catalogue, ascending by name. */

import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { typeName } from '../../../protocol/monitor/json.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Control, ControlParameter, RemoteControl } from '../controls/control.ts'
import { integers } from '../metrics/arguments.ts'
import { RecordList } from '../metrics/measure.ts'
import { type Arguments, byName, type Metric, type Sensor } from '../metrics/metric.ts'
import { compilePattern, literalPrefix } from '../metrics/pattern.ts'
import { type JudgingRights, ReadRights } from '../metrics/read-rights.ts'
import type { ProducerView } from './sensor.ts'

const { STRING, UINT32, DOUBLE, BOOLEAN, ARRAY, REC } = BasicType

export function metricsView(sensors: () => readonly Sensor[], rights: JudgingRights): ProducerView {
  return {
    metric: {
      name: 'producer.metrics',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'All metrics that you may read, ordered by name.',
      parameters: [
        { name: 'match', type: STRING, description: 'Only names that match this pattern.' },
        { name: 'after', type: STRING, description: 'Only names after this one.' },
        { name: 'limit', type: UINT32, description: 'The largest number of metrics to return.' },
      ],
    },
    check(args) {
      matcherOf(args)
    },
    *show(identity, args) {
      const matches = matcherOf(args)
      const prefix = literalPrefix(patternOf(args))
      const after = (args.get('after') as string | undefined) ?? ''
      const limit = (args.get('limit') as number | undefined) ?? Number.POSITIVE_INFINITY
      const readRights = new ReadRights(identity, rights)
      const list = new RecordList()
      let [last, count] = [after, 0]
      // Sensors of others are passed over before their names are looked at, so that time tells nothing of them.
      const mine = sensors().filter((sensor) => readRights.maySee(sensor))
      for (const [metric, sensor] of metricsInOrder(mine, prefix, after)) {
        yield
        if (metric.name <= last || !matches(metric.name)) continue
        if (!readRights.isListed(sensor, metric.name)) continue
        last = metric.name
        if (++count > limit) list.more()
        if (!list.add(describeMetric(metric))) break
      }
      return list.value()
    },
  }
}

/** The metrics of several sensors, ascending by name. */
export function* metricsInOrder(
  sensors: readonly Sensor[],
  prefix: string,
  after: string,
): Generator<[Metric, Sensor]> {
  const [first] = sensors
  if (first === undefined) return
  if (sensors.length === 1) {
    for (const metric of first.metrics(prefix, after)) yield [metric, first]
    return
  }
  const half = sensors.length >> 1
  const [left, right] = [sensors.slice(0, half), sensors.slice(half)].map((part) => metricsInOrder(part, prefix, after))
  yield* merged(left as Generator<[Metric, Sensor]>, right as Generator<[Metric, Sensor]>)
}

function* merged(left: Generator<[Metric, Sensor]>, right: Generator<[Metric, Sensor]>): Generator<[Metric, Sensor]> {
  let [one, other] = [left.next(), right.next()]
  while (!(one.done && other.done)) {
    if (other.done || (!one.done && byName(one.value[0], other.value[0]) <= 0)) {
      yield one.value
      one = left.next()
    } else {
      yield other.value
      other = right.next()
    }
  }
}

function patternOf(args: Arguments): string {
  return (args.get('match') as string | undefined) ?? '*'
}

/** Matches what `match` selects, or every name if it is left out. Throws StatusError INVALID_ARGUMENT. */
function matcherOf(args: Arguments): (name: string) => boolean {
  return compilePattern(patternOf(args))
}

const MONOTONIC: Field = { name: 'monotonic', type: BOOLEAN, value: true }

function describeMetric({ name, kind, type, unit, description, parameters, isCounter, details }: Metric): Field[] {
  const said = details?.() ?? []
  // Every source knows which of its metrics only grow, each in words of its own: this one is the same for all.
  const isSaid = isCounter !== true || said.some((field) => field.name === MONOTONIC.name)
  const more = isSaid ? said : [...said, MONOTONIC]
  const items = parameters.map((parameter) => [
    { name: 'name', type: STRING, value: parameter.name },
    { name: 'type', type: STRING, value: typeName(parameter.type) },
    { name: 'optional', type: BOOLEAN, value: true },
    { name: 'description', type: STRING, value: parameter.description },
  ])
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'kind', type: STRING, value: kind },
    { name: 'type', type: STRING, value: type === undefined ? '' : typeName(type) },
    { name: 'unit', type: STRING, value: unit },
    { name: 'description', type: STRING, value: description },
    { name: 'parameters', type: ARRAY, value: { element: REC, items } },
    ...(more.length > 0 ? [{ name: 'details', type: REC, value: more }] : []),
  ]
}

/** The part of a control that the catalogue shows. */
export type ControlShape = Pick<Control, 'name' | 'description' | 'parameters'>

/** The roles whose users may have to approve what an identity runs; `producer`: the path of the one that runs it. */
export type Approvers = (identity: Identity, control: string, producer?: string) => readonly string[]

/** `visible`: those that an identity can see, and undefined for others. */
export function controlsView(
  visible: (identity: Identity) => Iterable<ControlShape | undefined>,
  remote: (producers: (path: string) => boolean, identity: Identity) => Iterable<RemoteControl>,
  approvers: Approvers,
): ProducerView {
  return {
    metric: {
      name: 'producer.controls',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The controls you may be allowed to run.',
      parameters: [
        { name: 'match', type: STRING, description: 'Only names that match this pattern.' },
        { name: 'producer', type: STRING, description: 'Those of other producers whose names match this pattern.' },
      ],
    },
    check(args) {
      matcherOf(args)
    },
    *show(identity, args) {
      const matches = matcherOf(args)
      const list = new RecordList()
      const producers = args.get('producer') as string | undefined
      if (producers !== undefined) {
        for (const { producer, control } of remote(compilePattern(producers), identity)) {
          yield
          if (!matches(control.name)) continue
          if (!list.add(describeControl(control, approvers(identity, control.name, producer), producer))) break
        }
        return list.value()
      }
      const controls: ControlShape[] = []
      for (const control of visible(identity)) {
        yield
        if (control !== undefined && matches(control.name)) controls.push(control)
      }
      for (const control of controls.sort(byName)) {
        yield
        if (!list.add(describeControl(control, approvers(identity, control.name)))) break
      }
      return list.value()
    },
  }
}

function describeControl(
  { name, description, parameters }: ControlShape,
  approvers: readonly string[],
  producer?: string,
): Field[] {
  const items = parameters.map((parameter) => [
    { name: 'name', type: STRING, value: parameter.name },
    { name: 'type', type: STRING, value: typeName(parameter.type) },
    { name: 'optional', type: BOOLEAN, value: parameter.optional ?? false },
    { name: 'description', type: STRING, value: parameter.description },
    ...boundsOf(parameter),
  ])
  return [
    { name: 'name', type: STRING, value: name },
    ...(producer === undefined ? [] : [{ name: 'producer', type: STRING, value: producer } as const]),
    { name: 'description', type: STRING, value: description },
    // As texts that a parameter may be.
    ...(approvers.length === 0 ? [] : [{ name: 'approval', type: STRING, value: approvers.join('\n') } as const]),
    { name: 'parameters', type: ARRAY, value: { element: REC, items } },
  ]
}

/** Only what is declared. The texts that a secret may be would reveal much of it. */
function* boundsOf(parameter: ControlParameter): Generator<Field> {
  const { type, min, max, maxLength, pattern, values, secret, masked, default: byDefault } = parameter
  const least = numberOf(type, min, Math.ceil)
  if (least !== undefined) yield { name: 'min', ...least }
  const most = numberOf(type, max, Math.floor)
  if (most !== undefined) yield { name: 'max', ...most }
  if (maxLength !== undefined) yield { name: 'max_length', type: UINT32, value: maxLength }
  if (secret) {
    yield { name: 'secret', type: BOOLEAN, value: true }
    return
  }
  if (masked !== undefined) yield { name: 'masked', type: BOOLEAN, value: true }
  if (pattern !== undefined) yield { name: 'pattern', type: STRING, value: pattern.source }
  // An ARRAY would be nested too deep.
  if (values !== undefined) yield { name: 'values', type: STRING, value: values.join('\n') }
  if (byDefault !== undefined) yield { name: 'default', type, value: byDefault } as Field
}

/** A bound in the type of its parameter; undefined if the type itself is as narrow. */
function numberOf(
  type: BasicType,
  bound: number | bigint | undefined,
  whole: (bound: number) => number,
): Value | undefined {
  if (bound === undefined || Number.isNaN(bound)) return undefined
  if (type === DOUBLE) return { type, value: Number(bound) }
  const range = integers[type]
  if (range === undefined || !Number.isFinite(Number(bound))) return undefined
  const integer = typeof bound === 'bigint' ? bound : BigInt(whole(bound))
  if (integer <= range[0] || integer >= range[1]) return undefined
  const isLong = type === BasicType.INT64 || type === BasicType.UINT64
  return { type, value: isLong ? integer : Number(integer) } as Value
}
