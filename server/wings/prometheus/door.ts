/** `POST /api/v1/write`: Prometheus remote write, versions 1.0 and 2.0. */
import { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import {
  decodeWriteRequest,
  decodeWriteRequest2,
  decompress,
  type WriteRequest,
  type WrittenSeries,
} from '../../../protocol/prometheus/remote-write.ts'
import type { DoorAnswer, DoorRequest, HttpDoor } from '../../kit/door.ts'
import type { MetricMetadata } from '../../kit/metrics.ts'
import type { Poll } from '../../kit/poll.ts'
import { type Publication, type Published, type PublishedSeries, retryAfter } from '../../kit/publication.ts'
import type { Steps } from '../../kit/running.ts'
import { type FamilyMetadata, metadataOf } from './families.ts'

export const PROMETHEUS_FAMILY = 'prometheus.'

/** A body under Snappy: senders limit requests to some thousand samples. */
const MAX_BYTES = 4 << 20
const LIMITS = { bytes: 8 << 20, elements: 1_000_000 }
const SAMPLES_PER_STEP = 512

const PROTOBUF = 'application/x-protobuf'
const VERSION_1 = 'prometheus.WriteRequest'
const VERSION_2 = 'io.prometheus.write.v2.Request'

export interface WriteDoorOptions {
  readonly publication: Publication
  readonly metadata: FamilyMetadata
  readonly poll: Pick<Poll, 'work'>
}

export class WriteDoor implements HttpDoor {
  readonly path = '/api/v1/write'
  readonly maxBytes = MAX_BYTES
  readonly #options: WriteDoorOptions
  readonly #metadata: FamilyMetadata

  constructor(options: WriteDoorOptions) {
    this.#options = options
    this.#metadata = options.metadata
  }

  unsupported(headers: DoorRequest['headers']): DoorAnswer | undefined {
    if (messageOf(headers['content-type']) === undefined)
      return this.refusal(415, `the content type is ${PROTOBUF}, with ${VERSION_1} or ${VERSION_2}`)
    const encoding = String(headers['content-encoding'] ?? 'snappy').toLowerCase()
    return encoding === 'snappy' ? undefined : this.refusal(415, 'the body is compressed by snappy')
  }

  async take({ asker, headers, body }: DoorRequest): Promise<DoorAnswer> {
    const message = messageOf(headers['content-type'])
    const { publication, poll } = this.#options
    try {
      const bytes = decompress(body, LIMITS)
      const { tenant } = asker.identity
      const metadata = this.#metadata
      const steps = function* () {
        const decode = message === VERSION_2 ? decodeWriteRequest2 : decodeWriteRequest
        const request = yield* decode(bytes, LIMITS)
        const given = yield* seriesOf(request, (name) => metadata.of(tenant, name))
        return { ...given, families: request.families }
      }
      const { series, samples, histograms, families } = await poll.work({ tenant }, steps())
      const published = await publication.publish(asker, series, true)
      // Only now: who may not publish the series of a request describes nothing with it either.
      if (published.outcome === 'taken') metadata.learn(tenant, families, publication.describing(asker))
      return answerOf(published, samples, histograms)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return this.refusal(error.code === 'TOO_LONG' ? 413 : 400, `${error.message} (at byte ${error.offset})`)
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

/** The message that a content type names; version 1.0 named none. */
function messageOf(header: string | string[] | undefined): string | undefined {
  const [type = '', ...parameters] = String(header ?? '')
    .split(';')
    .map((part) => part.trim())
  if (type.toLowerCase() !== PROTOBUF) return undefined
  const proto = parameters.find((parameter) => parameter.startsWith('proto='))?.slice('proto='.length) ?? VERSION_1
  return proto === VERSION_1 || proto === VERSION_2 ? proto : undefined
}

function answerOf(published: Published, samples: number, histograms: number): DoorAnswer {
  switch (published.outcome) {
    case 'denied':
      return answer(403, published.detail, written(0))
    case 'not-now': {
      const { why } = published
      return answer(why.reason === 'quota' ? 429 : 503, why.detail, { ...written(0), ...retryAfter(why) })
    }
    case 'taken': {
      const { taken, rejected, detail } = published
      if (rejected > 0)
        return answer(400, `${rejected} of ${samples} samples were not taken: ${detail}`, written(taken))
      if (histograms > 0) return answer(400, `${histograms} native histograms were not taken`, written(taken))
      return answer(204, '', written(taken))
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

interface Given {
  readonly series: PublishedSeries[]
  readonly samples: number
  readonly histograms: number
}

function* seriesOf(
  { series: written }: WriteRequest,
  known: (name: string) => Omit<MetricMetadata, 'type'> | undefined,
): Steps<Given> {
  const series: PublishedSeries[] = []
  let [samples, histograms, sinceStep] = [0, 0, 0]
  for (const each of written) {
    histograms += each.histograms
    samples += each.samples.length
    if (each.samples.length > 0)
      series.push(
        published(each, each.metadata === undefined ? known(each.name) : metadataOf(each.name, each.metadata)),
      )
    sinceStep += 1 + each.samples.length
    if (sinceStep < SAMPLES_PER_STEP) continue
    sinceStep = 0
    yield
  }
  return { series, samples, histograms }
}

function published(
  { name, labels, samples }: WrittenSeries,
  metadata: Omit<MetricMetadata, 'type'> | undefined,
): PublishedSeries {
  return {
    name: PROMETHEUS_FAMILY + name,
    labels,
    metadata: { unit: undefined, description: undefined, ...metadata, type: BasicType.DOUBLE },
    values: samples.map(({ value, time }) => ({
      value: value === undefined ? VOID : { type: BasicType.DOUBLE, value },
      time: Math.max(0, time),
    })),
  }
}
