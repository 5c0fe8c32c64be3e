/** `POST /v1/metrics`: OTLP/HTTP in protocol buffers or JSON (OTLP specification 1.x, "OTLP/HTTP"). */
import { ProtocolError } from '../../../protocol/errors.ts'
import { answerAsJson, statusAsJson } from '../../../protocol/otlp/json.ts'
import { encodeAnswer, encodeStatus } from '../../../protocol/otlp/protobuf.ts'
import type { DoorAnswer, DoorRequest, HttpDoor } from '../../kit/door.ts'
import { hasZstd } from '../../kit/inflate.ts'
import { shownName } from '../../kit/metrics.ts'
import { BEHIND, type Publication, type Published, retryAfter } from '../../kit/publication.ts'
import type { Clock } from '../../kit/running.ts'
import { MAX_JSON_BYTES, otlpDecoder } from './decoder.ts'

const PROTOBUF = 'application/x-protobuf'
const JSON_TYPE = 'application/json'
const MAX_BYTES = 16 << 20

/** Codes of gRPC, which google.rpc.Status has. */
const codes: Readonly<Record<number, number>> = { 400: 3, 401: 16, 403: 7, 413: 3, 415: 3, 429: 8, 503: 14 }
const UNKNOWN = 2

export interface OtlpDoorOptions {
  readonly publication: Publication
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
    if (type !== PROTOBUF && type !== JSON_TYPE) {
      return this.refusal(415, `the content type is ${PROTOBUF} or ${JSON_TYPE}`, type)
    }
    const named = headers['content-encoding']
    if (encodingOf(named) !== undefined) return undefined
    const taken = hasZstd ? 'gzip and zstd are' : 'gzip is'
    return this.refusal(415, `the content encoding ${shownName(String(named))} is not taken: ${taken}, or none`, type)
  }

  async take({ asker, headers, body, isOver }: DoorRequest): Promise<DoorAnswer> {
    const type = mediaType(headers['content-type'])
    const { publication, clock } = this.#options
    const isJson = type === JSON_TYPE
    const { tenant } = asker.identity
    const encoding = encodingOf(headers['content-encoding']) ?? 'identity'
    const given = { tenant, bytes: body, encoding, most: isJson ? MAX_JSON_BYTES : MAX_BYTES, isOver }
    try {
      const options = { isJson, now: clock.microseconds() }
      const published = await publication.decode(given, otlpDecoder, options, (columns) =>
        publication.publish(asker, columns, { whole: false }),
      )
      return this.#answer(published ?? { outcome: 'not-now', why: BEHIND }, type)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      // What is wrong in JSON is named by its metric and key.
      const detail = isJson ? error.message : `${error.message} (at byte ${error.offset})`
      return this.refusal(error.code === 'TOO_LONG' ? 413 : 400, detail, type)
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

/** Undefined if it is none that is taken. `x-gzip` is another name of gzip (RFC 9110, 8.4.1.3). */
function encodingOf(header: string | string[] | undefined): 'identity' | 'gzip' | 'zstd' | undefined {
  const name = String(header ?? '')
    .trim()
    .toLowerCase()
  if (name === '' || name === 'identity') return 'identity'
  if (name === 'zstd') return hasZstd ? name : undefined
  return name === 'gzip' || name === 'x-gzip' ? 'gzip' : undefined
}

function mediaType(header: string | string[] | undefined): string {
  return String(header ?? '')
    .replace(/;.*$/s, '')
    .trim()
    .toLowerCase()
}
