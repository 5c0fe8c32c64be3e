/** The upstreams of one tenant, or its links to the nodes of a cluster, as the hub sees them. */
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import { type Metric, type Owner, SortedNames } from '../../kit/metrics.ts'
import type { RemoteFollower, RemoteReading, RemoteRequest, RemoteSensor, RemoteTap } from '../../kit/producers.ts'
import { isPattern } from '../../kit/producers.ts'
import { unknownMetric } from './catalogue.ts'
import type { Upstream } from './upstream.ts'

const NONE: ReadonlyMap<string, Metric> = new Map()

/** A metric of one upstream, and how many have one of its name. */
interface Listed {
  of: Upstream
  metric: Metric
  count: number
}

/** What the nodes of a cluster bring. */
export interface OfNodes {
  /** The prefixes of the families, with the dot. */
  readonly families: readonly string[]
  /** A metric of these families as this node describes it; undefined if it is none. */
  readonly metric: (name: string) => Metric | undefined
}

export class UpstreamSensor implements RemoteSensor {
  readonly polled = 'remote'
  readonly family = ''
  readonly owner: Owner
  readonly ofNodes?: readonly string[]
  readonly #unknown: (name: string) => Metric | undefined
  readonly #upstreams = new Map<string, Upstream>()
  metricsChanges = 0
  /** The metrics of all: a large catalogue that changes costs what has changed in it, and nothing of the others. */
  readonly #metrics = new SortedNames<Listed>()

  /** `nodes`: set if it is for links to nodes. */
  constructor(tenant: string, nodes?: OfNodes) {
    this.owner = { tenant }
    this.#unknown = nodes?.metric ?? unknownMetric
    if (nodes !== undefined) this.ofNodes = nodes.families
  }

  add(upstream: Upstream): void {
    this.#upstreams.set(upstream.table.name, upstream)
    this.#replace(upstream, NONE, upstream.metrics)
  }

  delete(upstream: Upstream): void {
    this.#upstreams.delete(upstream.table.name)
    this.#replace(upstream, upstream.metrics, NONE)
  }

  /** An upstream has other metrics than `before`; those that are as before are the same objects. */
  changed(upstream: Upstream, before: ReadonlyMap<string, Metric>): void {
    if (this.#upstreams.get(upstream.table.name) === upstream) this.#replace(upstream, before, upstream.metrics)
  }

  *producers(): Generator<ProducerName> {
    for (const upstream of this.#upstreams.values()) yield* upstream.producers()
  }

  *metrics(prefix = '', after = ''): Generator<Metric> {
    for (const { metric } of this.#metrics.values(prefix, after)) yield metric
  }

  metric(name: string): Metric | undefined {
    let mayAsk = false
    for (const upstream of this.#upstreams.values()) {
      const metric = upstream.metrics.get(name)
      if (metric !== undefined) return metric
      mayAsk ||= upstream.mayAsk(name)
    }
    return mayAsk ? this.#unknown(name) : undefined
  }

  follow(request: RemoteRequest, follower: RemoteFollower): RemoteTap {
    return this.#of(request)?.follow(request, follower) ?? { series: [], end() {} }
  }

  async ask(request: RemoteRequest, deadlineMs: number, userId: number): Promise<readonly RemoteReading[]> {
    return (await this.#of(request)?.ask(request, deadlineMs, userId)) ?? []
  }

  /** Undefined if there is none that may be asked. Of a pattern, each name is judged when its values come. */
  #of({ producer, name }: RemoteRequest): Upstream | undefined {
    const upstream = this.#upstreams.get(producer.split('/', 1)[0] ?? '')
    return upstream !== undefined && (isPattern(name) || upstream.mayAsk(name)) ? upstream : undefined
  }

  #replace(upstream: Upstream, before: ReadonlyMap<string, Metric>, now: ReadonlyMap<string, Metric>): void {
    this.metricsChanges++
    for (const name of before.keys()) if (!now.has(name)) this.#leaves(upstream, name)
    for (const [name, metric] of now) if (before.get(name) !== metric) this.#has(upstream, metric, before.has(name))
  }

  #has(upstream: Upstream, metric: Metric, hadBefore: boolean): void {
    const listed = this.#metrics.get(metric.name)
    if (listed === undefined) this.#metrics.set(metric.name, { of: upstream, metric, count: 1 })
    else {
      if (!hadBefore) listed.count++
      if (listed.of === upstream) listed.metric = metric
    }
  }

  #leaves(upstream: Upstream, name: string): void {
    const listed = this.#metrics.get(name)
    if (listed === undefined) return
    if (--listed.count === 0) this.#metrics.delete(name)
    else if (listed.of === upstream) this.#listAnother(name, listed)
  }

  #listAnother(name: string, listed: Listed): void {
    for (const upstream of this.#upstreams.values()) {
      const metric = upstream.metrics.get(name)
      if (metric === undefined) continue
      listed.of = upstream
      listed.metric = metric
      return
    }
  }
}
