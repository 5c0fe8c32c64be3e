/** What a selection asks of other producers, and which of the series that come back its identity may read [MON 9.13]. */
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { deadline } from './arguments.ts'
import type { Candidates } from './candidates.ts'
import { isElsewhere } from './kinds.ts'
import { AllLabelsBut, labelsFrom, labelText } from './labels.ts'
import type { Arguments, Labels, Measurement, Metric, OpenLabels, RemoteSensor, RemoteShape } from './metric.ts'
import { isPattern } from './pattern.ts'
import { PRODUCER, type Reach } from './reach.ts'
import { readableRecords } from './remembered-below.ts'
import { RemoteTarget } from './remote-target.ts'
import { valueProblem } from './value-problem.ts'

/** What is around a value in a list: an ARRAY and a REC. */
const RECORD_DEPTH = 2
const BARE: OpenLabels = new Set()
const ALL_LABELS: OpenLabels = new AllLabelsBut()
const BUT_PRODUCER: OpenLabels = new AllLabelsBut([PRODUCER])

export interface RemoteSelectionOptions {
  readonly name: string
  readonly candidates: Candidates
  readonly reach: Reach
  /** As they were converted. */
  readonly args: ArgumentList
  /** The same by their names. */
  readonly values: Arguments
  readonly deadlineMs: number
}

/** The last value of a series of this producer, which one of its nodes has. */
export interface NodeReading {
  readonly metric: Metric
  readonly labels: Labels
  readonly measured: Measurement
}

/** A measurement with its labels, and those of them that are sent. */
export interface RemoteMeasurement {
  readonly labels: Labels
  readonly open: OpenLabels
  /** Whether it came without labels. */
  readonly isBare: boolean
  /** Whether it is of a series of this producer, which a node has: another node may have the same series. */
  readonly isOwn: boolean
  readonly measured: Measurement
}

export class RemoteSelection {
  readonly #options: RemoteSelectionOptions
  /** Without what is judged or waited for here. */
  readonly #requested: ArgumentList

  constructor(options: RemoteSelectionOptions) {
    this.#options = options
    this.#requested = options.args.filter(({ name }) => name !== PRODUCER && name !== deadline.name)
  }

  /** Whether other producers may be asked. Nodes of this one are always the same. */
  get isReached(): boolean {
    return this.#options.candidates.areRemote
  }

  /** Whether other producers may have something that the identity may read, now or later: each series is judged by itself. */
  get isAllowed(): boolean {
    const { name, candidates } = this.#options
    return candidates.ofKind.remote.some((sensor) => candidates.rights.mayReadSome(sensor, name))
  }

  /** One for each producer. */
  targets(): RemoteTarget[] {
    const { name, candidates, reach } = this.#options
    const targets: RemoteTarget[] = []
    for (const sensor of candidates.ofKind.remote) {
      if (!candidates.rights.maySee(sensor)) continue
      const metric = isPattern(name) ? anyMetric(name) : candidates.named(sensor)
      if (metric === undefined) continue
      for (const producer of reach.producers(sensor)) {
        targets.push(new RemoteTarget(sensor, metric, { producer, name, args: this.#requested }, this))
      }
    }
    return targets
  }

  /** What the producers answer, each as soon as all its values are there or the time is over. */
  ask(): Promise<readonly RemoteMeasurement[]>[] {
    const { candidates, deadlineMs } = this.#options
    const { userId } = candidates.rights.identity
    return this.targets().map(async ({ sensor, request }) => {
      const readings = await sensor.ask(request, deadlineMs, userId)
      return readings.flatMap(({ series, measured: all }) => {
        const open = this.openFor(sensor, series)
        if (open === undefined || !this.#fits(series, all)) return []
        const measured = { ...all, value: this.#readable(sensor, series, all.value) }
        return [{ labels: series.labels, open, measured, isBare: series.isBare, isOwn: !isElsewhere(sensor) }]
      })
    })
  }

  /**
   * What each node of this producer has, one metric after the other: the answer to a pattern has room for one frame. Labels that
   * an argument fixes, which are not sent, are among those of each reading.
   */
  askNodes(isOver: () => boolean): Promise<readonly NodeReading[]>[] {
    const { candidates, deadlineMs } = this.#options
    const { userId } = candidates.rights.identity
    const targets = this.targets().filter(({ sensor }) => !isElsewhere(sensor))
    const fixed = this.#options.args.flatMap(({ name, value }): [string, string][] => {
      return typeof value === 'string' && name !== PRODUCER && !isPattern(value) ? [[name, value]] : []
    })
    return targets.map(async ({ sensor, request }) => {
      const readings: NodeReading[] = []
      for (const metric of this.#metricsOf(sensor)) {
        if (isOver()) break
        for (const { series, measured } of await sensor.ask({ ...request, name: metric.name }, deadlineMs, userId)) {
          if (this.openFor(sensor, series) === undefined) continue
          const sent = Object.entries(series.labels).filter(
            (label): label is [string, string] => label[1] !== undefined,
          )
          readings.push({ metric, labels: labelsFrom([...fixed, ...sent]), measured })
        }
      }
      return readings
    })
  }

  #metricsOf(sensor: RemoteSensor): readonly Metric[] {
    const { name, candidates } = this.#options
    if (!isPattern(name)) return [candidates.named(sensor) ?? []].flat()
    return [...sensor.metrics(candidates.prefix)].filter((metric) => candidates.matchesName(metric.name))
  }

  /** What the identity may read of a value that is about other metrics of a producer, which may name those below it. */
  #readable(sensor: RemoteSensor, { name, labels }: RemoteShape, value: Value): Value {
    const { rights } = this.#options.candidates
    const path = labelText(labels, PRODUCER)
    return readableRecords(name, value, (metric, label) => {
      const below = label(PRODUCER)
      const producer = path !== undefined && below !== undefined ? `${path}/${below}` : (path ?? below)
      return rights.mayReadRemembered(sensor.owner, metric, (name) => (name === PRODUCER ? producer : label(name)))
    })
  }

  /** Whether a value that came without labels is not nested too deep in a REC of a list. */
  #fits({ isBare }: RemoteShape, { value }: Measurement): boolean {
    return !isBare || !this.#options.reach.isOpen || valueProblem(value, RECORD_DEPTH) === undefined
  }

  /** The labels that are sent with the values of a series; undefined if it is not selected, or may not be read. */
  openFor(sensor: RemoteSensor, { name, labels, isBare }: RemoteShape): OpenLabels | undefined {
    const { candidates, reach, values } = this.#options
    const { rights } = candidates
    if (!rights.maySee(sensor) || !candidates.matchesName(name)) return undefined
    if (!rights.mayRead(sensor, name, labels, values)) return undefined
    if (reach.isOpen) return ALL_LABELS
    if (isBare) return BARE
    return isElsewhere(sensor) ? BUT_PRODUCER : ALL_LABELS
  }
}

/** Stands for all metrics that a pattern selects. */
function anyMetric(name: string): Metric {
  return { name, kind: 'continuous', type: undefined, unit: '', description: '', parameters: [] }
}
