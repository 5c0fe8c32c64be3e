/** `producer.metrics`: the catalogue. Ascending by name; `after` goes on where the last answer ended. */
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
      description: 'The metrics there are, by name.',
      parameters: [
        { name: 'match', type: STRING, description: 'Only names that match this pattern.' },
        { name: 'after', type: STRING, description: 'Only names behind this one.' },
        { name: 'limit', type: UINT32, description: 'At most so many.' },
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
      return recordsOf([...found.keys()].sort(), (name) => describe(found.get(name) as Metric), limit)
    },
  }
}

/** What `match` says; all, if it is left out. Throws StatusError INVALID_ARGUMENT. */
export function matcherOf(args: Arguments): (name: string) => boolean {
  return compilePattern((args.get('match') as string | undefined) ?? '*')
}

/** RECs of names in order, at most `limit`, with {more = true} if any were left out. */
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

function describe({ name, kind, type, unit, description, parameters, details }: Metric): Field[] {
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
