/** Which arguments a selection takes, by what it may select, and how they are kept. */
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Declared } from './arguments.ts'
import { type Arguments, labelNames, type Metric } from './metric.ts'
import { isPattern } from './pattern.ts'

export const interval: Declared = { name: 'interval_ms', type: BasicType.UINT32 }
export const deadline: Declared = { name: 'deadline_ms', type: BasicType.UINT32 }

/** What arguments may be given: those of the metrics that match now, those every metric takes, and for a pattern all labels. */
export function declaredFor(name: string, metrics: readonly Metric[]): Declared[] {
  const declared = new Map<string, Declared>()
  if (isPattern(name)) {
    for (const label of labelNames.slice(1)) declared.set(label, { name: label, type: BasicType.STRING })
  }
  for (const metric of metrics) for (const parameter of metric.parameters) declared.set(parameter.name, parameter)
  if (isPattern(name) || metrics.some(({ kind }) => kind === 'continuous')) {
    declared.set(interval.name, interval)
    declared.set(deadline.name, deadline)
  }
  return [...declared.values()]
}

/** With the declared types, as they go into the store. */
export function storable(values: Arguments, declared: readonly Declared[]): ArgumentList {
  return [...values].map(([name, value]) => {
    const type = (declared.find((one) => one.name === name) as Declared).type
    return { name, type, value } as ArgumentList[number]
  })
}
