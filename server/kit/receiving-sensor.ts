/**
 * What the sensors have in common whose sources send by themselves, as smon, Mono agents and gmetric do: the tenant and its
 * quota, the senders that are allowed, the live series, and the state of the listeners. A sensor has no socket: listeners
 * hand in what they receive.
 */
import type { Owner } from '../../auth/permissions.ts'
import type { Network } from '../kernel/core/address.ts'
import type { Catalogue, CataloguedSeries, MetricMetadata } from '../kernel/metrics/catalogue.ts'
import type { Hub } from '../kernel/metrics/hub.ts'
import type { ListeningSensor, Measurement, Metric, SensorStatus, Series } from '../kernel/metrics/metric.ts'
import { AllowedSenders, type TenantFeed } from './by-tenant.ts'
import { type Meter, UNMETERED } from './poll.ts'

export interface ReceivingOptions<S extends CataloguedSeries> extends TenantFeed {
  /** Its name in `producer.sensors`; another tenant than that of the section is added to it. */
  readonly kind: string
  readonly family: string
  readonly tenant: string
  readonly allow: readonly Network[]
  readonly catalogue: Catalogue<S>
  readonly hub: Pick<Hub, 'born' | 'died'>
}

/** The part of a status that a source adds: notes for its detail, and its counters. */
export interface SourceReport {
  readonly notes: readonly string[]
  readonly counters: Readonly<Record<string, number>>
}

export abstract class ReceivingSensor<S extends CataloguedSeries> implements ListeningSensor {
  readonly polled = false
  readonly family: string
  readonly owner: Owner
  /** Streams are read only while it accepts values, so nothing of them is lost. */
  readonly meter: Meter
  readonly senders: AllowedSenders
  protected readonly catalogue: Catalogue<S>
  /** The addresses and files that it receives from, for people. */
  protected readonly listening: string[] = []
  /** The number of live series. */
  protected seriesCount = 0
  readonly #name: string
  readonly #hub: Pick<Hub, 'born' | 'died'>
  #kernelDrops: () => number | undefined = () => undefined
  #failure = ''

  constructor(options: ReceivingOptions<S>) {
    const { kind, named, family, tenant, meter = UNMETERED, allow, catalogue, hub } = options
    this.#name = feedName(kind, named)
    this.family = family
    this.owner = { tenant }
    this.meter = meter
    this.senders = new AllowedSenders(allow)
    this.catalogue = catalogue
    this.#hub = hub
  }

  abstract last(series: Series): Measurement | undefined

  protected abstract report(): SourceReport

  metrics(prefix?: string, after?: string): Iterable<Metric> {
    return this.catalogue.metrics(prefix, after)
  }

  metric(name: string): Metric | undefined {
    return this.catalogue.metric(name)
  }

  get metricsChanges(): number {
    return this.catalogue.changes
  }

  series(name?: string, prefix?: string, isWanted?: (name: string) => boolean): Iterable<S> {
    return this.catalogue.series(name, prefix, isWanted)
  }

  /** A listener was opened. `kernelDrops` returns how many datagrams the kernel dropped, undefined if it does not report that. */
  listens(detail: string, kernelDrops?: () => number | undefined): void {
    this.listening.push(detail)
    if (kernelDrops) this.#kernelDrops = kernelDrops
  }

  /** A listener has failed. */
  failed(detail: string): void {
    this.#failure = detail
  }

  status(): SensorStatus {
    const { notes, counters } = this.report()
    const kernelDrops = this.#kernelDrops()
    return {
      name: this.#name,
      state: this.#failure !== '' ? 'failed' : this.listening.length > 0 ? 'listening' : 'off',
      detail: [this.#failure, ...this.listening, ...notes].filter((part) => part !== '').join('; '),
      counters: { ...counters, ...(kernelDrops !== undefined && { kernelDrops }) },
    }
  }

  /** A series begins, with what is known about its metric. */
  born(series: S, metadata?: MetricMetadata): void {
    this.seriesCount++
    this.catalogue.add(series)
    if (metadata !== undefined) this.catalogue.update(series, metadata)
    this.#hub.born(this, series)
  }

  /** A series ends: subscribers get VOID. */
  died(series: S): void {
    this.seriesCount--
    this.catalogue.remove(series)
    this.#hub.died(series)
  }
}

/** The name of a sensor in `producer.sensors`: its kind alone for the tenant of the section itself. */
export function feedName(kind: string, tenant: string | undefined): string {
  return tenant === undefined ? kind : `${kind}/${tenant}`
}
