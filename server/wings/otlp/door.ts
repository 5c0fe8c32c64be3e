/** `POST /v1/metrics`: OTLP/HTTP in protocol buffers or JSON (OTLP specification 1.x, "OTLP/HTTP"). */
import { ProtocolError } from '../../../protocol/errors.ts'
import { answerAsJson, metricsFromJson, statusAsJson } from '../../../protocol/otlp/json.ts'
import { decodeMetrics, encodeAnswer, encodeStatus } from '../../../protocol/otlp/protobuf.ts'
import type { DoorAnswer, DoorRequest, HttpDoor } from '../../kit/door.ts'
import type { Poll } from '../../kit/poll.ts'
import { type Publication, type Published, retryAfter } from '../../kit/publication.ts'
import type { Clock } from '../../kit/running.ts'
import { seriesOf } from './values.ts'

const PROTOBUF = 'application/x-protobuf'
const JSON_TYPE = 'application/json'
const MAX_BYTES = 16 << 20
/** It is parsed as a whole, which must not take long. */
const MAX_JSON_BYTES = 1 << 20
/** Fields and packed numbers of a request: each takes some hundred bytes at most. */
const MAX_ELEMENTS = 1_000_000

/** Codes of gRPC, which google.rpc.Status has. */
const codes: Readonly<Record<number, number>> = { 400: 3, 401: 16, 403: 7, 413: 3, 415: 3, 429: 8, 503: 14 }
const UNKNOWN = 2

export interface OtlpDoorOptions {
  readonly publication: Publication
  readonly poll: Pick<Poll, 'work'>
  readonly clock: Pick<Clock, 'microseconds'>
}

export class OtlpDoor implements HttpDoor {
  readonly path = '/v1/metrics'
  readonly maxBytes = MAX_BYTES
  readonly #options: OtlpDoorOptions

  constructor(options: OtlpDoorOptions) {
    this.#options = options
  }

  unsupported(headers: DoorRequest['headers']): DoorAnswer | undefined {
    const type = mediaType(headers['content-type'])
    if (type === PROTOBUF || type === JSON_TYPE) return undefined
    return this.refusal(415, `the content type is ${PROTOBUF} or ${JSON_TYPE}`, type)
  }

  async take({ asker, headers, body }: DoorRequest): Promise<DoorAnswer> {
    const type = mediaType(headers['content-type'])
    if (type === JSON_TYPE && body.length > MAX_JSON_BYTES) {
      return this.refusal(413, `a request in JSON has at most ${MAX_JSON_BYTES} bytes: send ${PROTOBUF}`, type)
    }
    const { publication, poll, clock } = this.#options
    const limits = { elements: MAX_ELEMENTS }
    const party = { tenant: asker.identity.tenant }
    try {
      const now = clock.microseconds()
      const steps = function* () {
        const decoded = type === JSON_TYPE ? metricsFromJson(textOf(body), limits) : decodeMetrics(body, limits)
        return yield* seriesOf(yield* decoded, now)
      }
      return this.#answer(await publication.publish(asker, await poll.work(party, steps()), false), type)
    } catch (error) {
      if (error instanceof ProtocolError) return this.refusal(400, `${error.message} (at byte ${error.offset})`, type)
      throw error
    }
  }

  #answer(published: Published, type: string): DoorAnswer {
    switch (published.outcome) {
      case 'denied':
        return this.refusal(403, published.detail, type)
      case 'not-now': {
        const { why } = published
        const refused = this.refusal(why.reason === 'quota' ? 429 : 503, why.detail, type)
        return { ...refused, headers: { ...refused.headers, ...retryAfter(why) } }
      }
      case 'taken': {
        const { rejected, detail } = published
        const body = type === JSON_TYPE ? answerAsJson(rejected, detail) : encodeAnswer(rejected, detail)
        return { status: 200, headers: { 'content-type': type }, body }
      }
    }
  }

  refusal(status: number, detail: string, type: string): DoorAnswer {
    const code = codes[status] ?? UNKNOWN
    const isJson = mediaType(type) === JSON_TYPE
    const body = isJson ? statusAsJson(code, detail) : encodeStatus(code, detail)
    return { status, headers: { 'content-type': isJson ? JSON_TYPE : PROTOBUF }, body }
  }
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

function mediaType(header: string | string[] | undefined): string {
  return String(header ?? '')
    .replace(/;.*$/s, '')
    .trim()
    .toLowerCase()
}
