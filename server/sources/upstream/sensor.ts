/** The upstreams of one tenant, as the hub sees them. */
import type { Owner } from '../../../auth/permissions.ts'
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import type { RemoteFollower, RemoteReading, RemoteRequest, RemoteSensor, RemoteTap } from '../../metrics/metric.ts'
import { byName, type Metric } from '../../metrics/metric.ts'
import { isPattern } from '../../metrics/pattern.ts'
import { unknownMetric } from './catalogue.ts'
import type { Upstream } from './upstream.ts'

export class UpstreamSensor implements RemoteSensor {
  readonly polled = 'remote'
  readonly family = ''
  readonly owner: Owner
  readonly #upstreams = new Map<string, Upstream>()
  metricsChanges = 0
  /** The metrics of all, ascending by name; undefined when some have changed. */
  #metrics: readonly Metric[] | undefined

  constructor(tenant: string) {
    this.owner = { tenant }
  }

  add(upstream: Upstream): void {
    this.#upstreams.set(upstream.table.name, upstream)
    this.changed()
  }

  delete({ table }: Upstream): void {
    this.#upstreams.delete(table.name)
    this.changed()
  }

  /** The metrics of an upstream have changed. */
  changed(): void {
    this.#metrics = undefined
    this.metricsChanges++
  }

  *producers(): Generator<ProducerName> {
    for (const upstream of this.#upstreams.values()) yield* upstream.producers()
  }

  *metrics(prefix = '', after = ''): Generator<Metric> {
    this.#metrics ??= this.#merged()
    for (const metric of this.#metrics) if (metric.name > after && metric.name.startsWith(prefix)) yield metric
  }

  metric(name: string): Metric | undefined {
    let mayAsk = false
    for (const upstream of this.#upstreams.values()) {
      const metric = upstream.metrics.get(name)
      if (metric !== undefined) return metric
      mayAsk ||= upstream.mayAsk(name)
    }
    return mayAsk ? unknownMetric(name) : undefined
  }

  follow(request: RemoteRequest, follower: RemoteFollower): RemoteTap {
    return this.#of(request)?.follow(request, follower) ?? { series: [], end() {} }
  }

  async ask(request: RemoteRequest, deadlineMs: number): Promise<readonly RemoteReading[]> {
    return (await this.#of(request)?.ask(request, deadlineMs)) ?? []
  }

  /** Undefined if there is none that may be asked. Of a pattern, each name is judged when its values come. */
  #of({ producer, name }: RemoteRequest): Upstream | undefined {
    const upstream = this.#upstreams.get(producer.split('/', 1)[0] ?? '')
    return upstream !== undefined && (isPattern(name) || upstream.mayAsk(name)) ? upstream : undefined
  }

  #merged(): Metric[] {
    const metrics = new Map<string, Metric>()
    for (const upstream of this.#upstreams.values()) {
      for (const [name, metric] of upstream.metrics) if (!metrics.has(name)) metrics.set(name, metric)
    }
    return [...metrics.values()].sort(byName)
  }
}
