/** What is to be known of the upstreams of a tenant as metrics: which are connected, and what was lost there (`upstream.*`). */
import { BasicType, gapReasonName } from '../../../protocol/monitor/constants.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { Kit } from '../../kit/kit.ts'
import type { LabelledFamily, LabelledSensor } from '../../kit/labelled-sensor.ts'
import type { LabelledSeries } from '../../kit/labelled-series.ts'
import { isAhead } from '../../kit/metrics.ts'
import type { Peer } from '../../kit/peer.ts'

/** Notices of losses of one upstream in a second; those beyond are counted in the next one. */
const NOTICES_PER_SECOND = 10
const SECOND_MS = 1_000
/** Producers below one upstream whose losses are counted apart. */
const MAX_PRODUCERS = 1_000

const about = {
  'upstream.up': {
    type: BasicType.BOOLEAN,
    unit: '',
    description: 'Whether the server is connected, and is consumed.',
  },
  'upstream.lost': {
    type: BasicType.UINT64,
    unit: 'values',
    description: 'Values that the server has reported as lost since this one began.',
    isCounter: true,
  },
  'upstream.gaps': {
    type: BasicType.UINT64,
    unit: '',
    description: 'Reports of losses; some do not know how many values it were.',
    isCounter: true,
  },
} as const
type Name = keyof typeof about

export interface UpstreamReportOptions extends Pick<Kit, 'clock' | 'log'>, Pick<Peer, 'notice'> {
  /** The name of the upstream, or of the node. */
  readonly name: string
  /** What it is, and what its entry in `producer.sensors` begins with. */
  readonly kind: 'upstream' | 'link'
  readonly tenant: string
  /** Where the metrics are; a node of this producer has none. */
  readonly family: LabelledFamily | undefined
}

export class UpstreamReport {
  readonly kind: UpstreamReportOptions['kind']
  /** Why there is no connection, or none that can be used; undefined before the first attempt has ended. */
  problem: string | undefined
  /** Values that were reported as lost. */
  lostValues = 0
  readonly #options: UpstreamReportOptions
  readonly #sensor: LabelledSensor | undefined
  /** For people. */
  readonly #who: string
  readonly #series = new Map<string, LabelledSeries>()
  readonly #counts = new Map<string, number>()
  /** Those whose losses are counted apart, by their paths. */
  readonly #producers = new Set<string>()
  #secondMs = Number.NEGATIVE_INFINITY
  #noticed = 0
  #unnoticed = 0

  constructor(options: UpstreamReportOptions) {
    const { kind, name, family, tenant } = options
    this.#options = options
    this.kind = kind
    this.#who = kind === 'upstream' ? `upstream ${name}` : `node ${name}`
    this.#sensor = family?.of(tenant)
    this.#up(false)
  }

  /** There is a connection that can be used (empty), or why not. */
  changed(problem: string): void {
    const { kind, name, log, notice, tenant } = this.#options
    const before = this.problem
    this.problem = problem
    const isUp = problem === ''
    this.#up(isUp)
    if ((before === '') === isUp || (before === undefined && isUp)) return
    if (before !== undefined && before !== '' && !isUp) return
    const state = isUp ? 'connected' : 'not connected'
    log[isUp ? 'info' : 'warn']({ [kind]: name, problem }, `${kind} ${state}`)
    const detail = `${this.#who} is ${state}${isUp ? '' : `: ${problem}`}`
    notice({ severity: isUp ? 'info' : 'warning', subject: kind, detail }, { tenant })
  }

  #up(isUp: boolean): void {
    this.#take('upstream.up', [['producer', this.#options.name]], { type: BasicType.BOOLEAN, value: isUp })
  }

  /** The upstream reports a loss. `producer`: the path of the one whose values they were. */
  lost({ count, reason, transaction }: Pick<Gap, 'count' | 'reason' | 'transaction'>, producer: string): void {
    const name = gapReasonName(reason) ?? 'unknown'
    this.lostValues = sum(this.lostValues, count)
    const labels = [
      ['producer', this.#counted(producer)],
      ['reason', name],
    ] as const
    this.#count('upstream.lost', labels, count)
    this.#count('upstream.gaps', labels, 1)
    this.#notice(this.#sentence(name, count, producer, transaction))
  }

  /** Whose losses they are counted as: an upstream may have any number of producers below it, one after the other. */
  #counted(producer: string): string {
    if (this.#producers.size < MAX_PRODUCERS) this.#producers.add(producer)
    return this.#producers.has(producer) ? producer : this.#options.name
  }

  #sentence(reason: string, count: number, producer: string, transaction: number): string {
    if (reason === 'replaced')
      return `${this.#who} is not the one from before, or was restored: its values until now may be lost`
    const what = count === 0 ? 'values, nobody knows how many,' : count === 1 ? '1 value' : `${count} values`
    const of = transaction === 0 ? '' : ` (transaction ${transaction})`
    return `${this.#who} has lost ${what} of ${producer}: ${reason}${of}`
  }

  /** It is an upstream no more: its series end. */
  end(): void {
    for (const series of this.#series.values()) this.#sensor?.end(series)
    this.#series.clear()
  }

  #count(name: Name, labels: readonly (readonly [string, string])[], more: number): void {
    const key = `${name} ${labels.join()}`
    const count = sum(this.#counts.get(key) ?? 0, more)
    this.#counts.set(key, count)
    this.#take(name, labels, { type: BasicType.UINT64, value: BigInt(count) })
  }

  #take(name: Name, labels: readonly (readonly [string, string])[], value: Value): void {
    const key = `${name} ${labels.join()}`
    const series = this.#series.get(key) ?? this.#begin(key, name, labels)
    if (series === undefined) return
    // The same value with the same time would be taken for a repetition.
    const [now, last] = [this.#options.clock.microseconds(), series.last?.time ?? 0]
    this.#sensor?.take(series, value, isAhead(last, now) ? now : Math.max(now, last + 1))
  }

  /** Undefined if the tenant may not have more series. */
  #begin(key: string, name: Name, labels: readonly (readonly [string, string])[]): LabelledSeries | undefined {
    if (this.#sensor === undefined) return undefined
    const made = this.#sensor.of(name, labels)
    if ('refused' in made) return undefined
    // It changes seldom: who asks for it now has to hear what it is.
    made.first = () => made.last
    this.#sensor.describe(made, { isCounter: undefined, ...about[name] })
    this.#series.set(key, made)
    return made
  }

  #notice(detail: string): void {
    const { kind, clock, notice, tenant } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#secondMs >= SECOND_MS) {
      this.#secondMs = nowMs
      this.#noticed = 0
    }
    if (this.#noticed++ >= NOTICES_PER_SECOND) {
      this.#unnoticed++
      return
    }
    const more = this.#unnoticed === 0 ? '' : `; ${this.#unnoticed} reports before it have no notice of their own`
    this.#unnoticed = 0
    notice({ severity: 'warning', subject: kind, detail: `${detail}${more}` }, { tenant })
  }
}

/** An upstream may say any number: what it counts is exact up to 2^53, and stays there. */
function sum(count: number, more: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, count + more)
}
