/**
 * What a COLLECT or QUERY asks for: a name or pattern with arguments, judged for one identity [MON 9]. A selection is
 * resolved again whenever it is used, because metrics and series come and go.
 */
import type { Reader } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType, labelNames } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { StatusError } from '../core/errors.ts'
import { finish, type Steps } from '../core/fair-work.ts'
import {
  asLabel,
  convertArguments,
  deadline,
  deadlineMsOf,
  declaredFor,
  interval,
  intervalMsOf,
  keyOfArguments,
  ofAll,
  onDemand,
  storable,
} from './arguments.ts'
import { Candidates, candidatesOf, kindOfAll, NAMES_PER_STEP, type SelectionDefaults } from './candidates.ts'
import { isElsewhere } from './kinds.ts'
import { AllLabelsBut, labelText } from './labels.ts'
import { EventTarget, PolledTarget } from './local-targets.ts'
import {
  type Arguments,
  type EventSensor,
  type Kind,
  type Labels,
  type ListeningSensor,
  type Metric,
  type OpenLabels,
  type PolledSensor,
  partLabels,
  type Sensor,
  type Series,
} from './metric.ts'
import { compilePattern, isPattern, mayContinue } from './pattern.ts'
import { PRODUCER, Reach } from './reach.ts'
import { ReadRights } from './read-rights.ts'
import { RemoteSelection } from './remote-selection.ts'
import type { Target } from './target.ts'

/** Something that was selected: a target, or a series, which has no arguments. */
export interface Selected {
  readonly sensor: Sensor
  readonly metric: Pick<Metric, 'name'>
  readonly labels: Labels
  readonly args?: Arguments
}

interface SelectionParts {
  readonly candidates: Candidates
  readonly reach: Reach
  readonly name: string
  /** The arguments as they were given. */
  readonly list: ArgumentList
  readonly defaults: SelectionDefaults
  /** What is known now of the metrics that it may select. */
  readonly metrics: readonly Metric[]
}

export class Selection {
  readonly name: string
  readonly identity: Reader
  /** The converted arguments, as the store keeps them. */
  readonly args: ArgumentList
  readonly intervalMs: number
  readonly deadlineMs: number
  /** Whether it wants values that a source sends only when it is asked for them. */
  readonly isDemanding: boolean
  /** True if nothing that it selects is measured on request: its values come when their source sends them. */
  readonly isPushed: boolean
  /** What it selects of other producers. */
  readonly remote: RemoteSelection
  /** Undefined if nothing was known about the metric when the selection was made. */
  readonly #kind: Kind | undefined
  readonly #rights: ReadRights
  /** Which sensors and metrics it selects from. */
  readonly candidates: Candidates
  readonly #reach: Reach
  readonly #values: Arguments
  /** Matchers of the selecting arguments that are text. */
  readonly #matchers = new Map<string, (text: string) => boolean>()
  /** The labels that are sent of a series with open labels. */
  readonly #openOfAny: OpenLabels
  #metric: Metric | undefined
  #hasLabels: boolean
  /** What the metric that was measured last is measured with. */
  #lastTarget: PolledTarget | undefined

  /** Makes a selection. Throws StatusError NO_SUCH_METRIC or INVALID_ARGUMENT. */
  static *of(
    sensors: readonly Sensor[],
    identity: Reader,
    name: string,
    list: ArgumentList,
    defaults: SelectionDefaults,
  ): Steps<Selection> {
    if (!isPattern(name)) return Selection.exact(sensors, identity, name, list, defaults)
    const { candidates, reach } = candidatesOf(sensors, identity, name, list, defaults)
    const metrics = yield* candidates.survey(list, defaults.restored !== true)
    return new Selection({ candidates, reach, name, list, defaults, metrics })
  }

  /** The same at once, for a name that is no pattern. */
  static exact(
    sensors: readonly Sensor[],
    identity: Reader,
    name: string,
    list: ArgumentList,
    defaults: SelectionDefaults,
  ): Selection {
    const { candidates, reach } = candidatesOf(sensors, identity, name, list, defaults)
    const metrics = candidates.allNamed(defaults.restored !== true)
    if (metrics.length === 0) {
      const of = reach.text === undefined ? '' : ` of producer ${reach.text}`
      throw new StatusError('NO_SUCH_METRIC', `no metric ${name}${of}: \`producer.metrics\` lists what there is`)
    }
    return new Selection({ candidates, reach, name, list, defaults, metrics })
  }

  /** A selection from the store, of which there is nothing now: it selects nothing until the next start. */
  static absent(identity: Reader, name: string, list: ArgumentList, defaults: SelectionDefaults): Selection {
    const parameters = list.map((argument) => ({ name: argument.name, type: argument.type, description: '' }))
    // An event declares all its arguments itself, and may call one `interval_ms`: each keeps the type that it has in the store.
    const kind = isPattern(name) ? 'continuous' : 'event'
    const stored: Metric = { name, kind, type: undefined, unit: '', description: '', parameters }
    const candidates = new Candidates([], new ReadRights(identity, defaults.rights), name)
    const reach = new Reach(undefined, '')
    return new Selection({ candidates, reach, name, list, defaults, metrics: [stored] })
  }

  private constructor({ candidates, reach, name, list, defaults, metrics }: SelectionParts) {
    this.name = name
    this.identity = candidates.rights.identity
    this.candidates = candidates
    const { polled, remote } = candidates.ofKind
    this.isPushed = polled.length === 0 && !remote.some(isElsewhere)
    this.#reach = reach
    this.#rights = candidates.rights
    const first = metrics[0]
    const declared = declaredFor(name, metrics)
    const { haveOpenLabels, areRemote } = candidates
    const takesLabels = haveOpenLabels || areRemote || metrics.some((metric) => metric.takesLabels)
    const values = convertArguments(list, declared, name, takesLabels ? asLabel : undefined)
    const { node } = candidates
    if (node !== undefined && !values.has('host')) values.set('host', node)
    this.#values = values
    this.args = storable(this.#values, declared)
    this.intervalMs = intervalMsOf(this.#values, defaults.intervalMs)
    this.deadlineMs = deadlineMsOf(this.#values)
    this.isDemanding = this.#values.get(onDemand.name) !== false
    const isKnown = first !== undefined && (isPattern(name) || first.type !== undefined)
    this.#kind = isKnown ? kindOfAll(metrics) : undefined
    this.#openOfAny = new AllLabelsBut(isPattern(name) ? this.#exactTexts() : ['name', ...this.#exactTexts()])
    for (const label of haveOpenLabels ? this.#values.keys() : labelNames) {
      const value = this.#values.get(label)
      if (typeof value === 'string' && !this.#isReach(label)) this.#matchers.set(label, compilePattern(value))
    }
    this.#metric = isPattern(name) ? undefined : first
    this.#hasLabels =
      isPattern(name) || haveOpenLabels || reach.isOpen || (first !== undefined && this.#openOf(first).size > 0)
    const { args, deadlineMs } = this
    this.remote = new RemoteSelection({ name, candidates, reach, args, values, deadlineMs })
    if (isPattern(name) || first === undefined) return
    // In the RECs of a pattern a list would be nested too deep.
    if (reach.isOpen && metrics.some(({ type }) => type === BasicType.ARRAY))
      throw new StatusError('INVALID_ARGUMENT', `${name} is a list: name one producer, and no pattern`)
    this.#checkOwn(first)
  }

  /**
   * Whether values carry labels and an answer is an ARRAY. If that was unknown, it looks for a catalogue that has come since, and
   * goes by what that says from then on.
   */
  carriesLabels(): boolean {
    const [metric] = this.hasUnknownLabels ? this.candidates.allNamed(false) : []
    if (metric !== undefined && metric.isUnknown !== true) {
      this.#metric = metric
      this.#hasLabels = this.#openOf(metric).size > 0
    }
    return this.#hasLabels
  }

  /** Whether an answer is an ARRAY, which may be as large as a frame. Looks for a catalogue as `carriesLabels` does. */
  answersList(): boolean {
    return this.carriesLabels() || this.#metric?.type === BasicType.ARRAY
  }

  /** True if only the values show whether they carry labels: they are of another producer, and no catalogue had the name. */
  get hasUnknownLabels(): boolean {
    return this.#metric?.isUnknown === true && !this.#hasLabels
  }

  /** True if it has the name of a metric that was not there when it was restored. */
  get isAbsent(): boolean {
    return !isPattern(this.name) && this.candidates.sensors.length === 0
  }

  /** True if it selects parts of sources, which come and go, by a pattern. */
  get selectsParts(): boolean {
    return partLabels.some((label) => isPattern(String(this.#values.get(label) ?? '')))
  }

  /** Its kind, if it was known when the selection was made. */
  get knownKind(): Kind | undefined {
    return this.#kind
  }

  /** Its kind as it is now: that of an open family may become known later. */
  *kind(): Steps<Kind> {
    if (this.#kind !== undefined) return this.#kind
    return kindOfAll(yield* this.candidates.survey([], true))
  }

  /** Throws StatusError PERMISSION_DENIED, or INVALID_ARGUMENT if its arguments name something, such as a disk, that is not there. */
  *check(): Steps<void> {
    const targets = yield* this.polled()
    if (targets.length === 0) this.checkAllowed()
    for (const { sensor, metric, args, part } of targets) {
      // A part was there when it was listed, and may be gone by now: that refuses nothing.
      if (part === undefined) sensor.check(metric, args)
      yield
    }
  }

  /** The same of one that is pushed, at once. */
  checkAllowed(): void {
    if (this.isAllowed) return
    throw new StatusError('PERMISSION_DENIED', `no rule allows reading ${this.name} with these arguments`)
  }

  /** Whether the identity may see a metric of its name now, whatever rules say. Sources come and go, and so do their metrics. */
  get isThere(): boolean {
    return this.candidates.allNamed(false).length > 0
  }

  /**
   * Whether the identity may select anything. A pattern always may: its matches are judged one by one. A metric that is not there
   * is judged by its name: that it is absent withdraws no right.
   */
  get isAllowed(): boolean {
    if (isPattern(this.name) || this.#isAllowedNow) return true
    return !this.isThere && this.#rights.mayReadAbsent(this.name, this.#values)
  }

  get #isAllowedNow(): boolean {
    if (this.carriesLabels()) return this.candidates.allNamed().length > 0
    if (this.listening().some((sensor) => this.candidates.named(sensor) !== undefined)) return true
    return finish(this.polled()).length > 0 || finish(this.events()).length > 0 || this.remote.isAllowed
  }

  /** A key that two selections of one identity share if they measure the same. */
  get key(): string {
    const values = new Map(this.#values)
    for (const { name } of [interval, deadline]) values.delete(name)
    return JSON.stringify([this.name, keyOfArguments(values), this.identity.scope])
  }

  /** What it selects now, without series. */
  *targets(): Steps<Target[]> {
    return [...(yield* this.polled()), ...(yield* this.events()), ...this.remote.targets()]
  }

  /** The matching metrics that are measured on request. */
  *polled(): Steps<PolledTarget[]> {
    const targets: PolledTarget[] = []
    for (const sensor of this.candidates.ofKind.polled) {
      for (const metric of yield* this.candidates.selected(sensor)) {
        const target = this.#targetOf(sensor, metric)
        if (target === undefined) continue
        const part = metric.parameters.find(({ name, selects }) => selects === 'part' && target.open.has(name))
        if (part !== undefined) yield* this.#addParts(target, part.name, targets)
        else if (this.#rights.mayRead(sensor, metric.name, target.labels, target.args)) targets.push(target)
      }
    }
    return targets
  }

  /** Adds a target for each part that a pattern selects: there may be thousands. */
  *#addParts(
    { sensor, metric, args, labels, open }: PolledTarget,
    label: string,
    targets: PolledTarget[],
  ): Steps<void> {
    const matches = this.#matchers.get(label) as (text: string) => boolean
    for (const part of sensor.parts?.(metric, label) ?? []) {
      yield
      if (!matches(part)) continue
      const ofPart = { args: new Map(args).set(label, part), labels: { ...labels, [label]: part } }
      const target = new PolledTarget(sensor, metric, ofPart.args, ofPart.labels, open, part)
      if (this.#rights.mayRead(sensor, metric.name, target.labels, target.args)) targets.push(target)
    }
  }

  /** What a metric is measured with, whether it may be read or not; undefined if it does not match. */
  #targetOf(sensor: PolledSensor, metric: Metric): PolledTarget | undefined {
    const labels = sensor.labels(metric)
    if (!this.#matchesLabels(metric, labels)) return undefined
    const last = this.#lastTarget
    if (last?.sensor === sensor && last.metric === metric)
      return new PolledTarget(sensor, metric, last.args, labels, last.open)
    const args = this.#argumentsFor(metric)
    if (args === undefined) return undefined
    this.#lastTarget = new PolledTarget(sensor, metric, args, labels, this.#openOf(metric, sensor.node))
    return this.#lastTarget
  }

  *events(): Steps<EventTarget[]> {
    const targets: EventTarget[] = []
    for (const sensor of this.candidates.ofKind.events) {
      for (const metric of yield* this.candidates.selected(sensor)) {
        const target = this.#eventTarget(sensor, metric)
        if (target !== undefined) targets.push(target)
      }
    }
    return targets
  }

  #eventTarget(sensor: EventSensor, metric: Metric): EventTarget | undefined {
    const args = this.#argumentsFor(metric)
    const labels = { name: metric.name }
    if (args === undefined || !this.#rights.mayRead(sensor, metric.name, labels, args)) return undefined
    return new EventTarget(sensor, metric, args, labels, this.#openOf(metric))
  }

  /** The labels of a series as they are sent: the argument `producer` may ask for the name of this one, too. */
  shownLabels(labels: Labels): Labels {
    const { ownLabel } = this.#reach
    return ownLabel === undefined || labels.producer !== undefined ? labels : { ...labels, producer: ownLabel }
  }

  #isReach(argument: string): boolean {
    return argument === PRODUCER && this.#reach.text !== undefined
  }

  /** Whether the identity may still read what was selected before, whether it is there or not. */
  mayStillRead({ sensor, metric, labels, args }: Selected): boolean {
    // It stands for the series of another producer, each of which is judged by itself.
    if (isPattern(metric.name)) return this.#rights.maySee(sensor)
    return this.#rights.mayRead(sensor, metric.name, labels, args)
  }

  /** Listening sensors that may have matching series. */
  listening(): ListeningSensor[] {
    return this.candidates.ofKind.listening.filter((sensor) => this.#rights.maySee(sensor))
  }

  /** Lets a sensor request the series that may match. Undefined if there is nothing to wait for. */
  refresh(sensor: ListeningSensor): Promise<unknown> | undefined {
    if (!this.isDemanding || !this.#rights.maySee(sensor)) return undefined
    return sensor.refresh?.((name, labels) => this.#mayMatch(sensor, name, labels))
  }

  /** Whether it may select series of which only this is known; an expression says what follows the family in unknown names. */
  #mayMatch(sensor: Sensor, name: string | RegExp, labels: Labels): boolean {
    const isKnown = typeof name === 'string'
    if (!(isKnown ? this.candidates.matchesName(name) : mayContinue(this.name, sensor.family, name))) return false
    for (const [label, matcher] of this.#matchers) {
      const text = labelText(labels, label)
      if (text !== undefined && !matcher(text)) return false
    }
    const wanted = isKnown ? name : this.exactName
    return wanted === undefined || this.#rights.mayReadSome(sensor, wanted)
  }

  /** The series of a sensor that may match, and undefined now and then instead: a place to yield. */
  *series(sensor: ListeningSensor): Generator<Series | undefined> {
    if (!this.#rights.maySee(sensor) || !this.candidates.sensors.includes(sensor)) return
    // A label that no series has is the empty text for all of them.
    for (const [label, matches] of this.#matchers) if (!matches('') && sensor.hasLabel?.(label) === false) return
    const { prefix, matchesName } = this.candidates
    let [seen, name, matches] = [0, '', false]
    for (const series of sensor.series(this.exactName, prefix, matchesName)) {
      if (series.name !== name) {
        name = series.name
        matches = matchesName(name)
      }
      if (matches) yield series
      else if (++seen % NAMES_PER_STEP === 0) yield undefined
    }
  }

  /** The labels that are sent with the values of a series; undefined if the series does not match. */
  openFor(sensor: ListeningSensor, series: Series): OpenLabels | undefined {
    if (!this.#rights.maySee(sensor) || !this.candidates.sensors.includes(sensor)) return undefined
    if (series.anyName !== undefined)
      return this.#mayMatch(sensor, series.anyName, series.labels) ? this.#openOfAny : undefined
    if (!this.candidates.matchesName(series.name)) return undefined
    if (sensor.hasOpenLabels === true) return this.#openForAny(sensor, series)
    const metric = sensor.metric(series.name)
    if (metric === undefined || !this.#areTakenBy(metric)) return undefined
    for (const parameter of metric.parameters) {
      if (parameter.selects === undefined) continue
      const wanted = this.#values.get(parameter.name)
      const label = parameter.name
      // A source that is left out means any source, but a value without an index is a metric of its own [MON 9 Patterns].
      if (wanted === undefined && label === 'index' && series.labels.index !== '') return undefined
      const matcher = this.#matchers.get(label)
      if (matcher !== undefined && !series.matches(label, matcher)) return undefined
    }
    if (!this.#rights.mayRead(sensor, metric.name, series.labels)) return undefined
    return this.#openOf(metric)
  }

  /** The same where labels are open: each argument selects by a label, and one that a series does not have is the empty text. */
  #openForAny(sensor: ListeningSensor, { name, labels }: Series): OpenLabels | undefined {
    for (const [label, matcher] of this.#matchers) if (!matcher(labelText(labels, label) ?? '')) return undefined
    return this.#rights.mayRead(sensor, name, labels) ? this.#openOfAny : undefined
  }

  /** The arguments whose text is exact. */
  *#exactTexts(): Generator<string> {
    for (const [name, value] of this.#values) if (typeof value === 'string' && !isPattern(value)) yield name
  }

  /** The one name whose series can match; undefined for a pattern. */
  get exactName(): string | undefined {
    return isPattern(this.name) ? undefined : this.name
  }

  /** Whether a metric takes all arguments that were given; a pattern skips those that do not. */
  #areTakenBy({ parameters, takesLabels }: Metric): boolean {
    if (takesLabels === true) return true
    for (const name of this.#values.keys()) {
      if (!this.#isForAll(name) && !parameters.some((parameter) => parameter.name === name)) return false
    }
    return true
  }

  /** Arguments that are no metric's own. */
  #isForAll(name: string): boolean {
    return ofAll.some((argument) => argument.name === name) || this.#isReach(name)
  }

  /** The arguments for a metric; undefined if it does not take one of them. */
  #argumentsFor(metric: Metric): Arguments | undefined {
    if (!this.#areTakenBy(metric)) return undefined
    const args = new Map<string, Value['value']>()
    for (const [name, value] of this.#values) {
      if (this.#isForAll(name)) continue
      const parameter = metric.parameters.find((candidate) => candidate.name === name)
      if (parameter === undefined || parameter.selects === undefined || parameter.selects === 'part')
        args.set(name, value)
    }
    return args
  }

  /** `node`: that of its sensor. What may be of another node after a takeover says of which it is. */
  #openOf(metric: Metric, node?: string): OpenLabels {
    const open = new Set<string>()
    if (isPattern(this.name)) open.add('name')
    if (this.#reach.isOpen) open.add(PRODUCER)
    for (const { name, selects } of metric.parameters) {
      if (selects === undefined) continue
      const wanted = this.#values.get(name)
      if (
        wanted === undefined
          ? (selects === 'any' && name !== 'index') || (selects === 'own' && node !== undefined)
          : typeof wanted === 'string' && isPattern(wanted)
      ) {
        open.add(name)
      }
    }
    return open
  }

  #matchesLabels(metric: Metric, labels: Labels): boolean {
    return metric.parameters.every(({ name, selects }) => {
      const matcher = this.#matchers.get(name)
      // Parts are named by arguments.
      if (selects === undefined || selects === 'part' || matcher === undefined) return true
      return matcher(labelText(labels, name) ?? '')
    })
  }

  /** Rejects an exact name of this producer's own metrics with another source: it can never name anything. */
  #checkOwn(metric: Metric): void {
    if (!this.#reach.isOwn || this.candidates.areRemote) return
    const own = metric.parameters.find(({ selects }) => selects === 'own')
    const isOurs = this.candidates.ofKind.polled.some((sensor) => this.#matchesLabels(metric, sensor.labels(metric)))
    if (own === undefined || isOurs) return
    const wanted = String(this.#values.get(own.name))
    if (isPattern(wanted)) return
    throw new StatusError(
      'INVALID_ARGUMENT',
      `${metric.name} is measured on this producer only, not on ${own.name} ${wanted}`,
    )
  }
}
