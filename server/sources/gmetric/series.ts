/**
 * One gmetric series as the hub knows it. Its labels never change, since frames are made from them once: a host that
 * gets another name gets new series. It is found by more than its label: a spoofed host by its name and by its address.
 */
import type { Metadata } from '../../../protocol/gmetric/packet.ts'
import { METRIC_PREFIX } from '../../../protocol/gmetric/text.ts'
import { SLOPES } from '../../../protocol/gmetric/xml.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { type CataloguedSeries, type MetricMetadata, NO_METADATA } from '../../metrics/catalogue.ts'
import type { LabelName, Labels, Parameter, Subscription } from '../../metrics/metric.ts'
import type { GmetricHost, HostMetric as Received } from './host.ts'

const { STRING, UINT32, ARRAY } = BasicType

export const HOST_PARAMETERS: readonly Parameter[] = [
  {
    name: 'host',
    type: STRING,
    description: 'The host: its address or, where packets are spoofed, also the name they give it.',
    selects: 'any',
  },
]

export class GmetricSeries implements CataloguedSeries {
  readonly name: string
  readonly labels: Labels
  readonly received: Received
  /** When the last value came, microseconds since 1970; 0: there was none. */
  time = 0
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA

  constructor(received: Received) {
    this.received = received
    this.name = METRIC_PREFIX + received.metric
    this.labels = { name: this.name, host: shownHost(received.host) }
  }

  /** Whether its host is now shown under another name than when it was made. */
  get isRenamed(): boolean {
    return this.labels.host !== shownHost(this.received.host)
  }

  /** What its host says of the metric now. */
  reportedMetadata(): MetricMetadata {
    const { latest, metadata } = this.received
    return {
      type: latest?.value.type,
      unit: metadata?.units || undefined,
      description: metadata && describe(metadata),
    }
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'host' && isHost(this.received.host, matcher)
  }
}

/** What the catalogue shows of it beyond type, unit and description, in Ganglia's words; nothing while nothing is known. */
export function detailsOf({ received: { metadata } }: GmetricSeries): readonly Field[] {
  if (metadata === undefined) return []
  const { slope, tmax, dmax, extra } = metadata
  const groups = extra.flatMap(({ key, data }) => (key === 'GROUP' && data !== '' ? [data] : []))
  return [
    { name: 'title', type: STRING, value: said(metadata, 'TITLE') ?? '' },
    { name: 'groups', type: ARRAY, value: { element: STRING, items: groups } },
    { name: 'slope', type: STRING, value: SLOPES[slope] ?? 'unspecified' },
    { name: 'tmax', type: UINT32, value: tmax },
    { name: 'dmax', type: UINT32, value: dmax },
  ]
}

/** Not `host.label`: what an unspoofed sender calls itself may be anything, also the name of another. */
export function shownHost({ name, address }: GmetricHost): string {
  return name || address
}

export function isHost({ address, name }: GmetricHost, matcher: (text: string) => boolean): boolean {
  return matcher(address) || (name !== '' && matcher(name))
}

function describe(metadata: Metadata): string | undefined {
  return said(metadata, 'DESC') || said(metadata, 'TITLE') || undefined
}

function said({ extra }: Metadata, key: string): string | undefined {
  return extra.find((element) => element.key === key)?.data
}
