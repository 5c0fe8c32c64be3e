/**
 * One gmetric series as the hub knows it. Its labels never change, since frames are made from them once: a host that
 * gets another name gets new series. It is found by more than its label: a spoofed host by its name and by its address.
 */

import type { Metadata } from '../../../protocol/gmetric/packet.ts'
import { METRIC_PREFIX } from '../../../protocol/gmetric/text.ts'
import { type Listed, NOTHING_SAID, type Said } from '../../metrics/catalogue.ts'
import type { LabelName, Labels, Tap } from '../../metrics/metric.ts'
import type { Series as Received } from './hosts.ts'

export class GmetricSeries implements Listed {
  readonly name: string
  readonly labels: Labels
  readonly received: Received
  /** When the last value came, microseconds since 1970; 0: there was none. */
  time = 0
  readonly taps: Tap[] = []
  said: Said = NOTHING_SAID

  constructor(received: Received) {
    this.received = received
    this.name = METRIC_PREFIX + received.metric
    this.labels = { name: this.name, host: shownHost(received) }
  }

  /** Whether its host is now shown under another name than when it was made. */
  get isRenamed(): boolean {
    return this.labels.host !== shownHost(this.received)
  }

  /** What its host says of the metric now. */
  says(): Said {
    const { latest, metadata } = this.received
    return {
      type: latest?.value.type,
      unit: metadata?.units || undefined,
      description: metadata && describe(metadata),
    }
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    if (label !== 'host') return false
    const { address, name } = this.received.host
    return matcher(address) || (name !== '' && matcher(name))
  }
}

/** Not `host.label`: what an unspoofed sender calls itself may be anything, also the name of another. */
function shownHost({ host }: Received): string {
  return host.name || host.address
}

function describe({ extra }: Metadata): string | undefined {
  const said = (key: string) => extra.find((element) => element.key === key)?.data
  return said('DESC') || said('TITLE') || undefined
}
