/**
 * `POST /api/v1/read`: remote read of Prometheus, which evaluates expressions itself then. Each series comes as it is stored, with
 * stale markers; where samples have gone, the last one of each rollup is left. Samples of a series that sends rarely are repeated.
 */
import { LabelMatcher, RegexError, RegexMemory } from '../../../../promql/label-matcher.ts'
import { isLabelName } from '../../../../promql/label-set.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'
import {
  decodeReadRequest,
  type ReadQuery,
  type ReadRequest,
  ReadResponseWriter,
} from '../../../../protocol/prometheus/remote-read.ts'
import { decompress } from '../../../../protocol/prometheus/remote-write.ts'
import { withRepeated } from '../../query/held-samples.ts'
import { HistorySource } from '../../query/history-source.ts'
import { QueryProblem } from '../../query/problems.ts'
import { runQuery } from '../../query/run.ts'
import type { ApiRequest } from './parameters.ts'
import type { EncodedAnswer } from './pieces.ts'

/** Of a request when it is decompressed. */
const MAX_BYTES = 1 << 20
const MAX_ELEMENTS = 32_768
const MAX_QUERIES = 100
/** Of the answer, compressed: it is in memory as a whole, because its length comes first. */
const MAX_ANSWER_BYTES = 64 << 20

export async function remoteRead(request: ApiRequest): Promise<EncodedAnswer> {
  const { history, run, maxSamples, body = new Uint8Array(0) } = request
  if (history.elsewhere !== undefined)
    throw new QueryProblem('unavailable', 'remote read is not passed on to history.engine: read from that server')
  const { queries, takesSamples } = decoded(body)
  if (!takesSamples)
    throw new QueryProblem('bad_data', 'streamed chunks are not sent here: accept responses of the type SAMPLES')
  if (queries.length > MAX_QUERIES)
    throw new QueryProblem('bad_data', `${queries.length} queries in one request, at most ${MAX_QUERIES} are allowed`)
  const regexes = new RegexMemory()
  const selections = queries.map((query) => ({ ...query, matchers: matchersOf(query, regexes) }))
  const source = new HistorySource((selection) => history.select(selection))
  const steps = function* (): Generator<undefined, ReadResponseWriter, void> {
    const writer = new ReadResponseWriter()
    let samples = 0
    for (const { matchers, fromMs, toMs } of selections) {
      for (const held of source.select(matchers, fromMs, toMs, true)) {
        const series = held && { labels: held.labels, ...withRepeated(held, fromMs, toMs) }
        if (series !== undefined && series.times.length > 0) {
          samples += series.times.length
          if (samples > maxSamples)
            throw new QueryProblem('execution', `more than ${maxSamples} samples: read a shorter time or fewer series`)
          const before = writer.heldBytes
          yield* writer.series(series)
          run.memory?.took(writer.heldBytes - before)
          if (writer.heldBytes > MAX_ANSWER_BYTES)
            throw new QueryProblem(
              'execution',
              `an answer of more than ${MAX_ANSWER_BYTES} bytes: read a shorter time or fewer series`,
            )
        }
        yield undefined
      }
      writer.endResult()
    }
    return writer
  }
  const writer = await runQuery(steps(), source, run)
  return { type: 'application/x-protobuf', encoding: 'snappy', pieces: writer.body() }
}

function decoded(body: Uint8Array): ReadRequest {
  try {
    return decodeReadRequest(decompress(body, { bytes: MAX_BYTES }), { elements: MAX_ELEMENTS })
  } catch (error) {
    if (error instanceof ProtocolError)
      throw new QueryProblem('bad_data', `the request cannot be read: ${error.message}`)
    throw error
  }
}

function matchersOf({ matchers }: ReadQuery, regexes: RegexMemory): LabelMatcher[] {
  return matchers.map(({ label, operator, text }) => {
    if (!isLabelName(label)) throw new QueryProblem('bad_data', `invalid label name: ${JSON.stringify(label)}`)
    try {
      return new LabelMatcher(label, operator, text, regexes)
    } catch (error) {
      if (error instanceof RegexError) throw new QueryProblem('bad_data', error.message)
      throw error
    }
  })
}
