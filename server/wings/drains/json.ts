/**
 * Drains to receivers of JSON: values and losses have the form that consumers get [MON 13], with name, labels and unit in place of a
 * metric id. A request names the range of transactions that it has, so that it is known again when it is sent twice (docs/drains.md).
 */
import { randomUUID } from 'node:crypto'
import { gapReasonName } from '../../../protocol/monitor/constants.ts'
import { typeName } from '../../../protocol/monitor/json.ts'
import { valueToJson } from '../../../protocol/monitor/json-value.ts'
import { KEY_HEADER } from '../../kit/io/signing.ts'
import type { Metric } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import type { DrainRequest, DrainWire, EncodedBatch, OutgoingValue } from './outgoing.ts'

const TYPE = 'metrics.values'
/** Of one request, unless a single value has more: many servers refuse longer ones. */
const MAX_BODY_BYTES = 1 << 20
/** What stands around the values, with room to spare. */
const MAX_HEAD_BYTES = 1 << 10
const VALUES_PER_STEP = 64

/** What a request says of itself besides its values. */
export interface JsonStream {
  /** The server. */
  readonly producer: string
  readonly tenant: string
  readonly drain: string
  /** The channel: no other one of any server has the same, and in it each transaction id is given once, in ascending order. */
  readonly stream: string
}

export function jsonWire(stream: JsonStream, metricOf: (name: string) => Metric | undefined): DrainWire {
  const requestOf = (key: string, range: object, texts: readonly string[]): DrainRequest => {
    const head = JSON.stringify({ type: TYPE, ...stream, ...range })
    const body = Buffer.from(`${head.slice(0, -1)},"values":[${texts.join(',')}]}`)
    return { body, headers: { 'content-type': 'application/json', [KEY_HEADER]: key } }
  }
  return {
    *encode(values): Steps<EncodedBatch> {
      const texts: string[] = []
      let bytes = MAX_HEAD_BYTES
      for (const [at, value] of values.entries()) {
        const text = JSON.stringify(value.loss === undefined ? valueObject(value, metricOf) : lossObject(value.loss))
        bytes += Buffer.byteLength(text) + 1
        if (at > 0 && bytes > MAX_BODY_BYTES) break
        texts.push(text)
        if (at % VALUES_PER_STEP === 0) yield
      }
      const taken = texts.length
      const unsent = { unsupported: 0, superseded: 0 }
      const [first, last] = [values[0]?.transaction, values[taken - 1]?.transaction]
      if (first === undefined || last === undefined) return { request: undefined, taken, unsent }
      return { request: requestOf(`${stream.stream}-${first}-${last}`, { first, last }, texts), taken, unsent }
    },

    // Its key is never used again: a receiver must not take it for one that it has answered before.
    empty: () => requestOf(`${stream.stream}-${randomUUID()}`, {}, []),

    // Whoever has written the receiver: 4xx may be its word for a signature that is wrong.
    judgesValues: false,

    partialRefusal: () => ({ rejected: 0, message: '' }),
  }
}

function valueObject(
  { transaction, time, name, labels, value }: OutgoingValue,
  metricOf: (name: string) => Metric | undefined,
) {
  const { unit = '' } = metricOf(name) ?? {}
  return {
    type: 'value',
    transaction,
    time,
    name,
    labels: Object.fromEntries(labels),
    ...(unit !== '' && { unit }),
    valueType: typeName(value.type),
    value: valueToJson(value),
  }
}

function lossObject({ transaction, name, count, from, to, reason }: NonNullable<OutgoingValue['loss']>) {
  const named = name === '' ? {} : { name }
  return { type: 'gap', transaction, ...named, count, from, to, reason: gapReasonName(reason) ?? reason }
}
