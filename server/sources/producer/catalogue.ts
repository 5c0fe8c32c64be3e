/** `producer.metrics` and `producer.controls`: the catalogue, ascending by name. */

import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { typeName } from '../../../protocol/monitor/json.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Rights } from '../../accounts/rights.ts'
import { RecordList } from '../../metrics/measure.ts'
import type { Arguments, Metric, Sensor } from '../../metrics/metric.ts'
import { compilePattern } from '../../metrics/pattern.ts'
import type { ProducerView } from './sensor.ts'

const { STRING, UINT32, BOOLEAN, ARRAY, REC } = BasicType

export function metricsView(sensors: () => readonly Sensor[], rights: Pick<Rights, 'mayReadSome'>): ProducerView {
  return {
    metric: {
      name: 'producer.metrics',
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
    show(identity, args) {
      const matches = matcherOf(args)
      const after = args.get('after') as string | undefined
      const limit = (args.get('limit') as number | undefined) ?? Number.POSITIVE_INFINITY
      const found = new Map<string, Metric>()
      for (const sensor of sensors()) {
        for (const metric of sensor.metrics()) {
          if (!matches(metric.name) || (after !== undefined && metric.name <= after)) continue
          if (rights.mayReadSome(identity, sensor.owner, metric.name)) found.set(metric.name, metric)
        }
      }
      return recordsOf([...found.keys()].sort(), (name) => describeMetric(found.get(name) as Metric), limit)
    },
  }
}

/** Matches what `match` selects, or every name if it is left out. Throws StatusError INVALID_ARGUMENT. */
export function matcherOf(args: Arguments): (name: string) => boolean {
  return compilePattern((args.get('match') as string | undefined) ?? '*')
}

/** An ARRAY with a REC for each name, at most `limit`, and with {more = true} at the end if any were left out. */
export function recordsOf(names: readonly string[], describe: (name: string) => Field[], limit: number): Value {
  const records = new RecordList()
  for (const [index, name] of names.entries()) {
    if (index >= limit) {
      records.more()
      break
    }
    if (!records.add(describe(name))) break
  }
  return records.value()
}

function describeMetric({ name, kind, type, unit, description, parameters, details }: Metric): Field[] {
  const more = details?.() ?? []
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
export interface ControlShape {
  readonly name: string
  readonly description: string
  readonly parameters: readonly { name: string; type: BasicType; optional?: boolean; description: string }[]
}

export function controlsView(visible: (identity: Identity) => readonly ControlShape[]): ProducerView {
  return {
    metric: {
      name: 'producer.controls',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The controls you may be allowed to run.',
      parameters: [{ name: 'match', type: STRING, description: 'Only names that match this pattern.' }],
    },
    check(args) {
      matcherOf(args)
    },
    show(identity, args) {
      const matches = matcherOf(args)
      const controls = new Map(visible(identity).map((control) => [control.name, control]))
      const names = [...controls.keys()].filter(matches).sort()
      return recordsOf(names, (name) => describeControl(controls.get(name) as ControlShape), Number.POSITIVE_INFINITY)
    },
  }
}

function describeControl({ name, description, parameters }: ControlShape): Field[] {
  const items = parameters.map((parameter) => [
    { name: 'name', type: STRING, value: parameter.name },
    { name: 'type', type: STRING, value: typeName(parameter.type) },
    { name: 'optional', type: BOOLEAN, value: parameter.optional ?? false },
    { name: 'description', type: STRING, value: parameter.description },
  ])
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'description', type: STRING, value: description },
    { name: 'parameters', type: ARRAY, value: { element: REC, items } },
  ]
}
