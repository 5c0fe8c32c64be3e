/**
 * `producer.stats.*`: the numbers of `producer.stats`, each a metric of its own, so that each can be drawn, followed and remembered
 * alone.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import type { Metric } from '../metrics/metric.ts'
import type { ProducerView } from './sensor.ts'

const { DOUBLE, UINT64 } = BasicType

/** The name of the field, its unit, and whether it only grows. */
const NUMBERS: readonly (readonly [field: string, unit: string, isCounter: boolean, description: string])[] = [
  ['uptime', 's', true, 'How long the server has been running.'],
  ['connections', '1', false, 'Connections of your tenant that are logged in; for the role admin, of all.'],
  ['channels', '1', false, 'Channels of your tenant; for the role admin, of all.'],
  ['unstored_bytes', 'B', false, 'Bytes of values that wait to be stored.'],
  ['resident_bytes', 'B', false, 'Memory of the process.'],
  ['busy', 's', true, 'How long the event loop has worked; growth of 1 in a second is all of a processor.'],
  ['faults', '1', true, 'Unexpected errors of the server itself.'],
  ['open_files', '1', false, 'Files and connections that the process has open. Only for the role admin.'],
  ['disk_free_bytes', 'B', false, 'What is free on the disk with the channels. Only for the role admin.'],
  ['accepted_values', '1', true, 'Values that were accepted into channels. Only for the role admin.'],
  ['sent_values', '1', true, 'Values that were sent to consumers. Only for the role admin.'],
  ['audit_records', '1', true, 'The number of the newest record of the audit log. Only for the role admin.'],
]
const DOUBLES: ReadonlySet<string> = new Set(['uptime', 'busy'])

/** `stats`: the view that has them together. */
export function statNumberViews(stats: ProducerView): ProducerView[] {
  return NUMBERS.map(([field, unit, isCounter, description]) => {
    const metric: Metric = {
      name: `${stats.metric.name}.${field}`,
      // GET /metrics has it from the whole.
      exposition: 'none',
      kind: 'continuous',
      type: DOUBLES.has(field) ? DOUBLE : UINT64,
      unit,
      isCounter,
      description,
      parameters: [],
    }
    return {
      metric,
      show(identity, args) {
        const { type, value } = stats.show(identity, args) as Value
        const found = type === BasicType.REC ? value.find(({ name }) => name === field) : undefined
        return found === undefined ? VOID : ({ type: found.type, value: found.value } as Value)
      },
    }
  })
}
