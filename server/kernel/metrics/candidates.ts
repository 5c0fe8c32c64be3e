/** Which metrics of which sensors a name or pattern may select, for one identity. */
import type { Reader } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import type { Steps } from '../core/fair-work.ts'
import { deadline, interval } from './arguments.ts'
import { byKind, isElsewhere, type SensorsByKind } from './kinds.ts'
import type { Kind, Metric, Sensor } from './metric.ts'
import { compilePattern, isPattern, literalPrefix, mayBegin } from './pattern.ts'
import { Reach } from './reach.ts'
import { type JudgingRights, ReadRights } from './read-rights.ts'

/** Names that are compared with a pattern in one step. */
export const NAMES_PER_STEP = 64

/** The arguments that every pattern takes. */
const everyPattern: readonly string[] = [...labelNames.slice(1), interval.name, deadline.name]

/** The metrics that a name or pattern may select for one identity, as they are at the moment. */
export class Candidates {
  /** What their identity may read. */
  readonly rights: ReadRights
  /** Sensors whose family may hold matching metrics. Rights are judged whenever they are used. */
  readonly sensors: readonly Sensor[]
  readonly ofKind: SensorsByKind
  readonly matchesName: (name: string) => boolean
  /** What all matching names begin with. */
  readonly prefix: string
  readonly #name: string
  readonly #withLists: boolean

  /** `withLists`: whether a pattern selects lists, too. */
  constructor(sensors: readonly Sensor[], rights: ReadRights, name: string, withLists = false) {
    this.rights = rights
    this.sensors = sensors.filter(({ family, ofNodes = [family] }) => ofNodes.some((one) => mayBegin(name, one)))
    this.ofKind = byKind(this.sensors)
    this.matchesName = compilePattern(name)
    this.prefix = literalPrefix(name)
    this.#name = name
    this.#withLists = withLists
  }

  /**
   * Passes on the metrics of a sensor until `take` returns false. A sensor of others is passed over before any name is looked
   * at, so that time tells nothing of them; and a metric that no arguments would make readable is treated as absent [MON 9].
   * `judged`: whether rules are asked.
   */
  *of(sensor: Sensor, take: (metric: Metric) => boolean, judged = true): Steps<boolean> {
    if (!this.rights.maySee(sensor)) return true
    let seen = 0
    for (const metric of sensor.metrics(this.prefix)) {
      if (++seen % NAMES_PER_STEP === 0) yield
      if (!this.#isSelected(metric) || !this.matchesName(metric.name)) continue
      if ((!judged || this.rights.mayReadSome(sensor, metric.name)) && !take(metric)) return false
      yield
    }
    if (seen > 0) yield
    return true
  }

  /** Lists, such as producer.metrics, nest too deep for the REC of a pattern. */
  #isSelected({ type, exposition }: Metric): boolean {
    return this.#withLists ? exposition !== 'none' : type !== BasicType.ARRAY
  }

  /** The metric of a sensor that has the name, which is no pattern. `judged`: whether rules are asked. */
  named(sensor: Sensor, judged = true): Metric | undefined {
    if (!this.rights.maySee(sensor)) return undefined
    const metric = this.#name.startsWith(sensor.family) ? sensor.metric(this.#name) : undefined
    return metric === undefined || (judged && !this.rights.mayReadSome(sensor, metric.name)) ? undefined : metric
  }

  /** The metrics of a sensor that name or pattern selects. */
  *selected(sensor: Sensor): Steps<Metric[]> {
    if (!isPattern(this.#name)) {
      const metric = this.named(sensor)
      return metric === undefined ? [] : [metric]
    }
    const metrics: Metric[] = []
    yield* this.of(sensor, (metric) => {
      metrics.push(metric)
      return true
    })
    return metrics
  }

  allNamed(judged = true): Metric[] {
    const found: Metric[] = []
    for (const sensor of this.sensors) {
      const metric = this.named(sensor, judged)
      if (metric !== undefined) found.push(metric)
    }
    return found
  }

  /** Whether a name that is no pattern has these metrics, described as they were when `allNamed` gave them. */
  areStill(metrics: readonly Metric[]): boolean {
    let count = 0
    for (const sensor of this.sensors) {
      const metric = this.named(sensor)
      if (metric !== undefined && metric !== metrics[count++]) return false
    }
    return count === metrics.length
  }

  *all(take: (metric: Metric) => boolean, judged = true): Steps<void> {
    for (const sensor of this.sensors) if (!(yield* this.of(sensor, take, judged))) return
  }

  /** Whether a sensor that may be read has open labels: then any argument selects. */
  get haveOpenLabels(): boolean {
    return this.sensors.some((sensor) => sensor.hasOpenLabels === true && this.rights.maySee(sensor))
  }

  /** The node of a cluster of which all metrics are that may be selected; undefined if some are not, or without a cluster. */
  get node(): string | undefined {
    const { polled } = this.ofKind
    const [node, ...others] = new Set(polled.map((sensor) => sensor.node))
    return polled.length < this.sensors.length || others.length > 0 ? undefined : node
  }

  /** Whether other producers are asked. */
  get areRemote(): boolean {
    return this.ofKind.remote.some((sensor) => isElsewhere(sensor) && this.rights.maySee(sensor))
  }

  /** Enough metrics to know which of these arguments are declared, and whether all that match are events. */
  *survey(list: ArgumentList, judged: boolean): Steps<Metric[]> {
    if (!isPattern(this.#name)) return this.allNamed(judged)
    const found: Metric[] = []
    const [kinds, known] = [new Set<Kind>(), new Set<string>(everyPattern)]
    const { haveOpenLabels } = this
    yield* this.all((metric) => {
      const isNew = !kinds.has(metric.kind) || metric.parameters.some(({ name }) => !known.has(name))
      if (isNew) found.push(metric)
      kinds.add(metric.kind)
      for (const { name } of metric.parameters) known.add(name)
      return !(kinds.has('continuous') && (haveOpenLabels || list.every(({ name }) => known.has(name))))
    }, judged)
    return found
  }
}

/** What a name or pattern that selects these metrics is. */
export function kindOfAll(metrics: readonly Metric[]): Kind {
  return metrics.length > 0 && metrics.every(({ kind }) => kind === 'event') ? 'event' : 'continuous'
}

export interface SelectionDefaults {
  readonly intervalMs: number
  /** The name of this producer; no argument `producer` selects it if it is left out. */
  readonly producer?: string
  readonly rights: JudgingRights
  /**
   * True for instances from the store: rules are not asked, so that what they forbid by now is ended properly [MON 15]. A metric of
   * another tenant alone is absent all the same.
   */
  readonly restored?: boolean
  /** True if patterns select lists too: where the answer is no REC of the protocol. */
  readonly withLists?: boolean
}

/** What a name or pattern may select from, and which producers its arguments reach. */
export function candidatesOf(
  sensors: readonly Sensor[],
  identity: Reader,
  name: string,
  list: ArgumentList,
  { rights, producer = '', withLists }: SelectionDefaults,
): { readonly candidates: Candidates; readonly reach: Reach } {
  const reach = Reach.of(list, name, sensors, producer)
  const reached = sensors.filter((sensor) => reach.includes(sensor))
  return { candidates: new Candidates(reached, new ReadRights(identity, rights), name, withLists), reach }
}
