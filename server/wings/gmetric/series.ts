/**
 * A gmetric series for the hub. Its labels never change, because frames are made from them once: a host that gets another
 * name gets new series. A spoofed host is found by its name and by its address, although its label is only the name.
 */
import { METRIC_PREFIX, type Metadata } from '../../../protocol/gmetric/packet.ts'
import { SLOPES } from '../../../protocol/gmetric/xml.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import {
  type CataloguedSeries,
  type LabelName,
  type Labels,
  type MetricMetadata,
  NO_METADATA,
  type Parameter,
  type Subscription,
} from '../../kit/metrics.ts'
import type { GmetricHost, HostMetric as Received } from './host.ts'

const { STRING, UINT32, ARRAY } = BasicType

export const HOST_PARAMETERS: readonly Parameter[] = [
  {
    name: 'host',
    type: STRING,
    description: 'The host: its address or, if its packets are spoofed, also the name in them.',
    selects: 'any',
  },
]

export class GmetricSeries implements CataloguedSeries {
  readonly name: string
  readonly labels: Labels
  readonly received: Received
  /** When the last value came, in microseconds since 1970; 0 if there was none. */
  time = 0
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA

  constructor(received: Received) {
    this.received = received
    this.name = METRIC_PREFIX + received.metric
    this.labels = { name: this.name, host: shownHost(received.host) }
  }

  /** Whether the name of its host has changed since it was made. */
  get isRenamed(): boolean {
    return this.labels.host !== shownHost(this.received.host)
  }

  /** The metadata that the host reports for the metric now. */
  reportedMetadata(): MetricMetadata {
    const { latest, metadata } = this.received
    return {
      type: latest?.value.type,
      unit: metadata?.units || undefined,
      description: metadata && describe(metadata),
      isCounter: metadata && isCounter(metadata),
    }
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'host' && isHost(this.received.host, matcher)
  }
}

/** The details in the catalogue, in Ganglia's terms; none until metadata is known. */
export function detailsOf({ received: { metadata } }: GmetricSeries): readonly Field[] {
  if (metadata === undefined) return []
  const { slope, tmax, dmax, extra } = metadata
  const groups = extra.flatMap(({ key, data }) => (key === 'GROUP' && data !== '' ? [data] : []))
  return [
    { name: 'title', type: STRING, value: extraOf(metadata, 'TITLE') ?? '' },
    { name: 'groups', type: ARRAY, value: { element: STRING, items: groups } },
    { name: 'slope', type: STRING, value: SLOPES[slope] ?? 'unspecified' },
    { name: 'tmax', type: UINT32, value: tmax },
    { name: 'dmax', type: UINT32, value: dmax },
  ]
}

/** The label of a host. It is not `host.label`: an unspoofed sender may call itself anything, even the name of another host. */
export function shownHost({ name, address }: GmetricHost): string {
  return name || address
}

export function isHost({ address, name }: GmetricHost, matcher: (text: string) => boolean): boolean {
  return matcher(address) || (name !== '' && matcher(name))
}

/** A metric of slope `positive` only grows; one that says nothing of its slope may do so too. */
function isCounter({ slope }: Metadata): boolean | undefined {
  const word = SLOPES[slope] ?? 'unspecified'
  return word === 'unspecified' ? undefined : word === 'positive'
}

function describe(metadata: Metadata): string | undefined {
  return extraOf(metadata, 'DESC') || extraOf(metadata, 'TITLE') || undefined
}

function extraOf({ extra }: Metadata, key: string): string | undefined {
  return extra.find((element) => element.key === key)?.data
}
