/** `query`: what an expression of PromQL comes to over the history. */
import { z } from 'zod'
import { isoTime, plainToJson } from '../answer.ts'
import { MOMENT, millisecondsOf, momentOf } from '../times.ts'
import { defineTool, json, READING, textInput } from '../tool.ts'

const HOUR_MS = 3_600_000
/** Points of a series, if no step is given, and at most. */
const USUAL_POINTS = 60
const MAX_POINTS = 1_000
const MAX_LOSSES = 100

export const queryTool = defineTool({
  name: 'query',
  title: 'Query the history (PromQL)',
  description:
    'Evaluates an expression of PromQL over the history of the server: at one time (now, or `at`), or over a range (`since`, `until`, `step`). Names of metrics have _ where metrics_search shows a dot or another character: host.load.one is host_load_one.',
  annotations: READING,
  input: {
    expression: textInput(10_000).min(1).describe('Such as sum by (host) (rate(host_net_received_bytes[5m]))'),
    at: textInput(40).optional().describe(`The time of one evaluation: ${MOMENT}`),
    since: textInput(40).optional().describe(`Where a range begins: ${MOMENT}`),
    until: textInput(40).optional().describe(`Where a range ends, now if it is left out: ${MOMENT}`),
    step: textInput(20)
      .optional()
      .describe(`Between two points of a range, such as 1m; by default so that there are ${USUAL_POINTS}`),
    limit: z.number().int().min(1).max(1_000).default(50).describe('The most series'),
  },
  list: 'series',
  row: z.object({
    name: z.string(),
    labels: z.record(z.string(), z.string()),
    points: z.array(z.tuple([z.number(), json])).describe('Pairs: seconds since 1970, and the value'),
  }),
  facts: {
    type: z.string().describe('vector, matrix, scalar or string'),
    text: z.string().optional(),
    warnings: z.array(z.string()).optional(),
    lost: z.array(json).optional().describe('Times in which values of the selected metrics are missing'),
  },
  async run({ expression, at, since, until, step, limit }, { consumer, signal }) {
    const nowMs = Date.now()
    const losses: Readonly<Record<string, unknown>>[] = []
    const isRange = since !== undefined || until !== undefined || step !== undefined
    if (isRange && at !== undefined)
      throw new RangeError('`at` is for one time; `since`, `until` and `step` are for a range')
    const result = await consumer.evaluate(expression, {
      ...(isRange ? rangeOf({ since, until, step }, nowMs) : at !== undefined && { at: momentOf(at, nowMs) }),
      limit,
      signal,
      onLoss: ({ metric, from, to, count, reason }) => {
        if (losses.length < MAX_LOSSES) losses.push({ metric, from: isoTime(from), to: isoTime(to), count, reason })
      },
    })
    const { type, text, series, warnings, infos } = result
    const remarks = [...warnings, ...infos]
    const rows = series.map(({ name, labels, times, values }) => ({
      name,
      labels,
      points: times.map((time, index) => [time / 1e6, plainToJson(values[index] as number)]),
    }))
    const facts = {
      type,
      ...(type === 'string' && { text }),
      ...(remarks.length > 0 && { warnings: remarks }),
      ...(losses.length > 0 && { lost: losses }),
    }
    return { facts, rows }
  },
})

interface Range {
  readonly since: string | undefined
  readonly until: string | undefined
  readonly step: string | undefined
}

/** Throws RangeError. */
function rangeOf({ since, until, step }: Range, nowMs: number) {
  const end = until === undefined ? new Date(nowMs) : momentOf(until, nowMs)
  const begin = since === undefined ? new Date(end.getTime() - HOUR_MS) : momentOf(since, nowMs)
  const lengthMs = end.getTime() - begin.getTime()
  if (lengthMs <= 0) throw new RangeError('`since` has to be before `until`')
  const stepMs =
    step === undefined ? Math.max(1_000, Math.ceil(lengthMs / USUAL_POINTS / 1_000) * 1_000) : millisecondsOf(step)
  if (lengthMs / stepMs > MAX_POINTS)
    throw new RangeError(`a series may have ${MAX_POINTS} points: give a longer \`step\``)
  return { since: begin, until: end, step: stepMs * 1_000 }
}
