/** Requests of OTLP as columns: here in steps for short ones, and in a thread, by the name `#otlp-decoder`, for others. */
import { ProtocolError } from '../../../protocol/errors.ts'
import { metricsFromJson } from '../../../protocol/otlp/json.ts'
import type { ReadAttributes } from '../../../protocol/otlp/metrics.ts'
import { decodeMetrics } from '../../../protocol/otlp/protobuf.ts'
import { type Columns, ColumnWriter } from '../../kit/columns.ts'
import type { Decoder } from '../../kit/decoding.ts'
import type { Steps } from '../../kit/running.ts'
import { SeriesMemory } from '../../kit/series-memory.ts'
import { OTLP_FAMILY, writeSeries } from './values.ts'

/** JSON is parsed as a whole, which takes much memory, and must not take long where others wait for it. */
export const MAX_JSON_BYTES = 1 << 20
const MAX_JSON_IN_STEPS = 16 << 10
/** Fields, packed numbers and weights of points: each takes some hundred bytes at most. */
const MAX_ELEMENTS = 1_000_000

export interface OtlpOptions {
  readonly isJson: boolean
  /** The time of points that have none. */
  readonly now: number
}

/** Throws ProtocolError. */
export function* decodeOtlp(
  bytes: Uint8Array,
  { isJson, now }: OtlpOptions,
  memory = new SeriesMemory<ReadAttributes>(),
): Steps<Columns> {
  if (isJson && bytes.length > MAX_JSON_BYTES) {
    throw new ProtocolError(
      'TOO_LONG',
      `a request in JSON has at most ${MAX_JSON_BYTES} bytes: send application/x-protobuf`,
    )
  }
  const limits = { elements: MAX_ELEMENTS }
  const columns = new ColumnWriter(OTLP_FAMILY, memory.numbering())
  const resources = yield* isJson ? metricsFromJson(textOf(bytes), limits) : decodeMetrics(bytes, limits, memory.labels)
  yield* writeSeries(columns, resources, now, memory)
  return columns.columns(memory.forgotten())
}

export const otlpDecoder: Decoder<OtlpOptions> = {
  module: '#otlp-decoder',
  name: decodeOtlp.name,
  decode: decodeOtlp,
  mostInSteps: ({ isJson }) => (isJson ? MAX_JSON_IN_STEPS : Number.POSITIVE_INFINITY),
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Throws ProtocolError BAD_UTF8. */
function textOf(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new ProtocolError('BAD_UTF8', 'the request is not UTF-8')
  }
}
