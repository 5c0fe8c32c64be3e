/** `producer.sensors`: what each source took in and refused. Counters of a tenant's feed are the tenant's. */
import { mayRead } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { Fences } from '../../metrics/fences.ts'
import { RecordList } from '../../metrics/measure.ts'
import type { SensorStatus } from '../../metrics/metric.ts'
import type { StatusEntry } from '../source.ts'
import type { ProducerView } from './sensor.ts'

const { STRING, UINT64, ARRAY, REC } = BasicType

export function sensorsView(sensors: () => readonly StatusEntry[], fences = new Fences()): ProducerView {
  return {
    metric: {
      name: 'producer.sensors',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The sensors with their counters.',
      parameters: [],
    },
    show(identity) {
      const records = new RecordList()
      for (const sensor of sensors()) {
        const status = mayRead(identity, sensor.owner) ? sensor.status?.() : undefined
        if (status && !records.add(describe(fenced(sensor, status, fences)))) break
      }
      return records.value()
    },
  }
}

function fenced(sensor: StatusEntry, status: SensorStatus, fences: Fences): SensorStatus {
  if (!fences.knows(sensor)) return status
  const counters = { ...status.counters, keptOut: fences.discarded(sensor) }
  return { ...status, state: fences.has(sensor) ? 'fenced' : status.state, counters }
}

function describe({ name, state, detail, counters }: SensorStatus): Field[] {
  const counts = Object.entries(counters).map(
    ([counter, value]): Field => ({ name: counter, type: UINT64, value: BigInt(value) }),
  )
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'state', type: STRING, value: state },
    { name: 'detail', type: STRING, value: detail },
    { name: 'counters', type: REC, value: counts },
  ]
}
