/** Values on their way to a destination: frames of a channel become these, and each protocol makes its requests of them. */
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { readMessage } from '../../../protocol/monitor/message.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import { besideLabel } from '../../../protocol/prometheus/labels.ts'
import { prometheusLabel } from '../../../protocol/prometheus/names.ts'
import { type Label, type UnwrappedValue, unwrapped } from '../../kit/delivered-values.ts'
import type { DeliveredChannel } from '../../kit/push.ts'
import type { Steps } from '../../kit/running.ts'

/** The metric that losses are for systems that know only metrics. */
export const LOST_METRIC = 'cinnabar_lost_values_total'

/** A value as it stands in the channel. */
export interface OutgoingValue {
  readonly transaction: number
  /** Empty if there is nothing to be sent. */
  readonly name: string
  readonly labels: readonly Label[]
  readonly value: Value
  /** Microseconds since 1970. */
  readonly time: number
  /** The loss that this is the count of; undefined if it was measured. */
  readonly loss?: OutgoingLoss
}

/** A GAP: values that the channel has lost. */
export interface OutgoingLoss {
  readonly transaction: number
  /** The name or pattern that is bound; empty if there were several, or if it is bound no more. */
  readonly name: string
  /** 0: it is not known how many. */
  readonly count: number
  /** Microseconds since 1970, 0 if it is not known. */
  readonly from: number
  readonly to: number
  readonly reason: number
}

export interface DrainRequest {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

/** A request of some values, and what of them it does not have. */
export interface EncodedBatch {
  /** undefined if there is nothing to be sent. */
  readonly request: DrainRequest | undefined
  /** How many of the values this is of, from the first on; the others need another request. */
  readonly taken: number
  readonly unsent: { readonly unsupported: number; readonly superseded: number }
  /** To be called when the destination has taken the request: what it says of metrics need not be said again soon. */
  readonly accepted?: () => void
}

/** How a protocol makes a request of values, and what its answers say. */
export interface DrainWire {
  /** Takes all of the values, or at least the first. */
  encode(values: readonly OutgoingValue[]): Steps<EncodedBatch>
  /** A request without values. */
  empty(): DrainRequest
  /** Whether an answer that refuses a request speaks of its values; otherwise a request without values is tried first. */
  readonly judgesValues: boolean
  /** Values that an answer of 2xx says were refused, and why. */
  partialRefusal(body: Uint8Array): { readonly rejected: number; readonly message: string }
}

/** Of a value whose metric is not known any more nothing is sent. */
const NOTHING: UnwrappedValue = { name: '', labels: [], value: VOID }

/** Reads the frames of a channel, one in each step. `ownLabels`: those that this server's own metrics have besides. */
export function* readFrames(
  bytes: Uint8Array,
  channel: Pick<DeliveredChannel, 'bindings'>,
  ownLabels: (name: string) => readonly Label[],
  take: (outgoing: OutgoingValue | OutgoingLoss) => void,
): Steps<void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const reader = new XdrReader()
  for (let at = 0; at < bytes.length; ) {
    const start = at + 4
    at = start + view.getUint32(at)
    const message = readMessage(reader.reset(bytes, start, at, view))
    if (message.kind === 'gap') {
      take({ ...message, name: channel.bindings.get(message.metric)?.instance.selection.name ?? '' })
    } else if (message.kind === 'value') {
      const { transaction, metric, value, time } = message
      // Without a binding it is a result, or the binding was stopped meanwhile.
      const instance = channel.bindings.get(metric)?.instance
      const outgoing = instance === undefined ? NOTHING : unwrapped(instance.selection, value)
      const own = ownLabels(outgoing.name).filter(([name]) => !outgoing.labels.some(([given]) => given === name))
      const labels = own.length === 0 ? outgoing.labels : [...outgoing.labels, ...own]
      take({ transaction, time, ...outgoing, labels })
    }
    yield
  }
}

/** The value with a label of this server: one of the same name that it has already is renamed, as Prometheus does when it scrapes. */
export function labelled(value: OutgoingValue, own: Label): OutgoingValue {
  const [name] = own
  const given = value.labels.map(([label, text]): Label => {
    const beside = besideLabel(prometheusLabel(label), name)
    return beside === prometheusLabel(label) ? [label, text] : [beside, text]
  })
  return { ...value, labels: [...given, own] }
}
