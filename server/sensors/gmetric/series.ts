/**
 * One gmetric series as the hub knows it. Its labels never change, since frames are made from them once: a host that
 * gets another name gets new series. It is found by more than its label: a spoofed host by its name and by its address.
 */
import { METRIC_PREFIX } from '../../../protocol/gmetric/text.ts'
import type { BasicType } from '../../../protocol/monitor/constants.ts'
import type { LabelName, Labels, Series } from '../../metrics/metric.ts'
import type { Series as Received } from './hosts.ts'

export class GmetricSeries implements Series {
  readonly name: string
  readonly labels: Labels
  readonly received: Received
  /** When the last value came, microseconds since 1970; 0: there was none. */
  time = 0
  /** What the catalogue has counted of it. */
  type: BasicType | undefined = undefined
  unit: string | undefined = undefined
  description: string | undefined = undefined

  constructor(received: Received) {
    this.received = received
    this.name = METRIC_PREFIX + received.metric
    this.labels = { name: this.name, host: shownHost(received) }
  }

  /** Whether its host is now shown under another name than when it was made. */
  get isRenamed(): boolean {
    return this.labels.host !== shownHost(this.received)
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
