/** What is bound for the history of a tenant, and what its values are there. */
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { HistoryMetric } from '../../../storage/history/store.ts'
import type { WantedMetric } from '../../kit/delivery.ts'
import { byKind, familiesOf, type NamedFamily, type Owner, ownLabels, type PolledSensor } from '../../kit/metrics.ts'
import type { OwnView } from '../../kit/peer.ts'
import { PRODUCER } from '../../kit/producers.ts'
import type { DeliveredMetric } from '../../kit/push.ts'
import type { HistorySection } from './config.ts'
import { FIRST_TENANT, type RecordedMetric, SERVER } from './messages.ts'

type Sensors = Pick<OwnView, 'sensors'>

/** In values without it they have no index, so that series with one have to be named. */
const INDEXED = 'smon.'

/** An agent has thousands of counters: as a whole, only those are recorded that it sends by itself. */
export const UNASKED = 'mono.*'

/** What is bound for a tenant of these names and patterns; `below`: patterns of the servers below that have the same bound. */
export function wantedOf(
  { metrics, intervalMs }: Pick<HistorySection, 'metrics' | 'intervalMs'>,
  tenant: string,
  { sensors }: Sensors,
  below: readonly string[] = [],
): WantedMetric[] {
  const interval = { name: 'interval_ms', type: BasicType.UINT32, value: intervalMs } as const
  const isElsewhere = (name: string): boolean => {
    const polled = polledOf(name, sensors)
    return tenant !== FIRST_TENANT && polled !== undefined && isShared(polled)
  }
  const bindingsOf = (name: string): WantedMetric[] => {
    const polled = polledOf(name, sensors)
    if (name === UNASKED) return [{ name, args: [{ name: 'on_demand', type: BasicType.BOOLEAN, value: false }] }]
    if (polled === undefined) {
      const isIndexed = name.startsWith(INDEXED) && name.includes('*')
      return [{ name, args: isIndexed ? [textArgument('index', '*')] : [] }]
    }
    const whole: WantedMetric = { name, args: [interval] }
    const parts = name.includes('*') ? partsOf(polled) : []
    return [whole, ...parts.map((part): WantedMetric => ({ name, args: [interval, textArgument(part, '*')] }))]
  }
  const own = metrics.flatMap((name) => (isElsewhere(name) ? [] : bindingsOf(name)))
  const all = below.length === 0 ? [] : metrics.flatMap(bindingsOf)
  const ofBelow = below.flatMap((producer) =>
    all.map(({ name, args }): WantedMetric => ({ name, args: [...args, textArgument(PRODUCER, producer)] })),
  )
  return [...own, ...ofBelow]
}

/**
 * Patterns for the servers that a tenant consumes, and those below them, but not for this one. They are patterns even where one server
 * is meant, so that each value says which one it is of. What two of them match is recorded once: it has the same times.
 */
export function patternsOfBelow(tenant: string, { sensors }: Sensors, own: string): string[] {
  const names = new Set<string>()
  for (const sensor of sensors) {
    if (sensor.polled !== 'remote' || sensor.ofNodes !== undefined || !isOwnedBy(sensor.owner, tenant)) continue
    for (const { name } of sensor.producers()) names.add(name.split('/', 1)[0] ?? '')
  }
  const sorted = [...names].sort()
  // `rack1*` is `rack10` too.
  const first = sorted.filter((name) => !sorted.some((other) => other !== name && name.startsWith(other)))
  if (!first.some((name) => own.startsWith(name))) return first.map((name) => `${name}*`)
  return sorted.flatMap((name) => (own.startsWith(name) ? [`*${name}`, `${name}/*`] : [`${name}*`]))
}

/** What is known of metrics by their names here; those of which nothing is known are left out. */
export function describedMetrics(tenant: string, natives: readonly string[], { sensors }: Sensors): HistoryMetric[] {
  const owned = sensors.filter(({ owner, ofNodes }) => {
    return (
      ofNodes === undefined &&
      (tenant === SERVER ? owner === 'producer' : isOwnedBy(owner, tenant) || owner === 'producer')
    )
  })
  // What is here comes before what servers below have.
  const ordered = [
    ...owned.filter(({ polled }) => polled !== 'remote'),
    ...owned.filter(({ polled }) => polled === 'remote'),
  ]
  return natives.flatMap((native) => {
    for (const sensor of ordered) {
      if (!native.startsWith(sensor.family)) continue
      const metric = sensor.metric(native)
      const families = metric === undefined ? [] : [...familiesOf(metric)].filter(isKnown)
      if (families.length > 0) return [{ native, families }]
    }
    return []
  })
}

function isKnown({ type, help, unit }: NamedFamily): boolean {
  return type !== 'unknown' || help !== '' || unit !== ''
}

function isOwnedBy(owner: Owner, tenant: string): boolean {
  return typeof owner === 'object' && owner.tenant === tenant
}

/** A binding for the thread. */
export function recordedMetric(
  id: number,
  selection: DeliveredMetric['selection'],
  tenant: string,
  { sensors }: Sensors,
): RecordedMetric {
  const { name, args } = selection
  if (args.some((argument) => argument.name === PRODUCER))
    return { id, name, args, carriesLabels: selection.carriesLabels(), tenant, own: [] }
  const polled = polledOf(name, sensors)
  const own = polled === undefined ? [] : [[polled.family, labelsOf(polled)] as const]
  const owner = polled !== undefined && isShared(polled) ? SERVER : tenant
  return { id, name, args, carriesLabels: selection.carriesLabels(), tenant: owner, own }
}

/** The sensor that measures what a name or pattern of the configuration names; undefined if that is pushed. */
function polledOf(name: string, sensors: OwnView['sensors']): PolledSensor | undefined {
  return byKind(sensors).polled.find(({ family }) => name.startsWith(family))
}

/** Whether the values are the same for everybody. */
function isShared({ owner, personal }: PolledSensor): boolean {
  return owner === 'producer' && !personal
}

/** The labels of a sensor, `host` above all, are those of each of its metrics. */
function labelsOf(sensor: PolledSensor): ReturnType<typeof ownLabels> {
  const [first] = sensor.metrics()
  return first === undefined ? [] : ownLabels(sensor.labels(first))
}

/** The parameters that select a part, such as a disk; without them the whole is measured. */
function partsOf(sensor: PolledSensor): string[] {
  const names = new Set<string>()
  for (const { parameters } of sensor.metrics()) {
    for (const { name, selects } of parameters) if (selects === 'part') names.add(name)
  }
  return [...names]
}

function textArgument(name: string, value: string): ArgumentList[number] {
  return { name, type: BasicType.STRING, value }
}
