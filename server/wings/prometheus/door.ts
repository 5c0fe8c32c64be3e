/** `POST /api/v1/write`: Prometheus remote write, versions 1.0 and 2.0. */
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Columns } from '../../kit/columns.ts'
import type { DoorAnswer, DoorRequest, HttpDoor } from '../../kit/door.ts'
import { shownName } from '../../kit/metrics.ts'
import type { Poll } from '../../kit/poll.ts'
import { BEHIND, type Publication, type Published, retryAfter } from '../../kit/publication.ts'
import { writeDecoder } from './decoder.ts'
import type { DescribedFamilies } from './families.ts'
import { PROMETHEUS_FAMILY } from './metric-types.ts'

/** A body under Snappy: senders limit requests to some thousand samples. */
const MAX_BYTES = 4 << 20
const MAX_INFLATED = 8 << 20

const PROTOBUF = 'application/x-protobuf'
const VERSION_1 = 'prometheus.WriteRequest'
const VERSION_2 = 'io.prometheus.write.v2.Request'

export interface WriteDoorOptions {
  readonly publication: Publication
  readonly metadata: DescribedFamilies
  readonly poll: Pick<Poll, 'work'>
}

export class WriteDoor implements HttpDoor {
  readonly path = '/api/v1/write'
  readonly maxBytes = MAX_BYTES
  readonly #options: WriteDoorOptions

  constructor(options: WriteDoorOptions) {
    this.#options = options
  }

  unsupported(headers: DoorRequest['headers']): DoorAnswer | undefined {
    if (messageOf(headers['content-type']) === undefined)
      return this.refusal(415, `the content type is ${PROTOBUF}, with ${VERSION_1} or ${VERSION_2}`)
    const encoding = String(headers['content-encoding'] ?? 'snappy').toLowerCase()
    if (encoding === 'snappy') return undefined
    return this.refusal(415, `the content encoding ${shownName(encoding)} is not taken: snappy is`)
  }

  async take({ asker, headers, body, isOver }: DoorRequest): Promise<DoorAnswer> {
    const isVersion2 = messageOf(headers['content-type']) === VERSION_2
    const { publication, metadata, poll } = this.#options
    const { tenant } = asker.identity
    const given = { tenant, bytes: body, encoding: 'snappy', most: MAX_INFLATED, isOver } as const
    try {
      const taken = await publication.decode(given, writeDecoder, { isVersion2 }, async (columns) => {
        const describe = (name: string) => metadata.of(tenant, name.slice(PROMETHEUS_FAMILY.length))
        const published = await publication.publish(asker, columns, { whole: true, describe })
        // Only now: who may not publish the series of a request describes nothing with it either.
        if (published.outcome === 'taken') {
          await poll.work({ tenant }, metadata.learn(tenant, columns.families, publication.describing(asker)))
        }
        return answerOf(published, columns.times.length, histogramsLeft(columns))
      })
      return taken ?? answerOf({ outcome: 'not-now', why: BEHIND }, 0, '')
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return answer(error.code === 'TOO_LONG' ? 413 : 400, `${error.message} (at byte ${error.offset})`, written(0))
    }
  }

  refusal(status: number, detail: string): DoorAnswer {
    return answer(status, detail)
  }
}

function answer(status: number, detail: string, headers: Readonly<Record<string, string>> = {}): DoorAnswer {
  const body = detail === '' ? '' : `${detail}\n`
  return { status, headers: { ...headers, 'content-type': 'text/plain; charset=utf-8' }, body }
}

/** The message that a content type names, in whatever case its parameter is called, in quotes or not; version 1.0 named none. */
function messageOf(header: string | string[] | undefined): string | undefined {
  const [type = '', ...parameters] = String(header ?? '')
    .split(';')
    .map((part) => part.trim())
  if (type.toLowerCase() !== PROTOBUF) return undefined
  const named = parameters.map((parameter) => /^proto\s*=\s*("?)(.*)\1$/i.exec(parameter)?.[2])
  const proto = named.find((name) => name !== undefined) ?? VERSION_1
  return proto === VERSION_1 || proto === VERSION_2 ? proto : undefined
}

/** What is said of native histograms, which are not taken; empty if there are none. */
function histogramsLeft({ left, leftOf }: Columns): string {
  if (left === 0) return ''
  return `${left} native histograms were not taken, the first of ${leftOf}: send classic ones`
}

function answerOf(published: Published, samples: number, histograms: string): DoorAnswer {
  switch (published.outcome) {
    case 'denied':
      return answer(403, published.detail, written(0))
    case 'not-now': {
      const { why } = published
      return answer(why.reason === 'quota' ? 429 : 503, why.detail, { ...written(0), ...retryAfter(why) })
    }
    case 'taken': {
      const { taken, rejected, detail } = published
      const rejections = rejected === 0 ? '' : `${rejected} of ${samples} samples were not taken: ${detail}`
      const problem = [rejections, histograms].filter((text) => text !== '').join('; ')
      return answer(problem === '' ? 204 : 400, problem, written(taken))
    }
  }
}

/** The headers of version 2.0 ("Required Written Response Headers"). */
function written(samples: number): Readonly<Record<string, string>> {
  return {
    'x-prometheus-remote-write-samples-written': String(samples),
    'x-prometheus-remote-write-histograms-written': '0',
    'x-prometheus-remote-write-exemplars-written': '0',
  }
}
