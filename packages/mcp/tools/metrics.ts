/** `metrics_search` and `metrics_read`: which metrics and series there are, and what they are now. */
import { z } from 'zod'
import { isoTime, listOf, plainToJson } from '../answer.ts'
import { argumentsInput, defineTool, json, READING, textInput, toArguments } from '../tool.ts'

const PATTERN = "* matches any characters, dots too: 'host.cpu.*'"
/** How long a measurement may take. */
const DEADLINE_MS = 10_000

const labels = z.record(z.string(), z.string())

export const metricsSearchTool = defineTool({
  name: 'metrics_search',
  title: 'Search metrics',
  description:
    'Lists the metrics that may be read with this token, by name, with unit, type and description; with `series` true their series, with labels and the time of the last value.',
  annotations: READING,
  input: {
    pattern: textInput().default('*').describe(`Which names; ${PATTERN}`),
    series: z.boolean().default(false).describe('List series in place of metrics'),
    limit: z.number().int().min(1).max(1_000).default(100).describe('The most that are listed'),
    after: textInput(4_096).optional().describe('Continue where an answer before ended: its `next`'),
  },
  list: 'metrics',
  row: z.object({
    name: z.string(),
    kind: z.string().optional().describe('`continuous`: can be measured; `event`: happens'),
    type: z.string().optional(),
    unit: z.string().optional(),
    description: z.string().optional(),
    parameters: z.array(json).optional().describe('Arguments that the metric takes'),
    labels: labels.optional(),
    last: z.string().optional().describe('The time of the last value'),
  }),
  facts: {},
  async run({ pattern, series, limit, after }, { consumer, signal }) {
    const args = { match: pattern, limit, ...(after !== undefined && { after }) }
    if (series) {
      const found = await listOf(consumer, 'producer.series', args, { limit, signal })
      const rows = found.records.map(({ name, time, ...others }) => {
        const last = isoTime(Number(time))
        return { name, labels: others, ...(last !== undefined && { last }) }
      })
      return { facts: {}, rows, next: found.after }
    }
    const next = ({ name }: Readonly<Record<string, unknown>>) => ({ after: String(name) })
    const { records, isMore } = await listOf(consumer, 'producer.metrics', args, { limit, next, signal })
    const rows = records.map(({ name, kind, type, unit, description, parameters }) => {
      const isPlain = !Array.isArray(parameters) || parameters.length === 0
      return { name, kind, type, unit, description, ...(!isPlain && { parameters }) }
    })
    return { facts: {}, rows, next: isMore ? String(records.at(-1)?.['name']) : undefined }
  },
})

export const metricsReadTool = defineTool({
  name: 'metrics_read',
  title: 'Read metrics',
  description:
    'Measures a metric now, or gives the last value of one that is sent to the server; a pattern gives all series that match. For values over time use `query`.',
  annotations: READING,
  input: {
    metric: textInput().min(1).describe(`The name of a metric, or a pattern; ${PATTERN}`),
    arguments: argumentsInput.describe(
      'Arguments of the metric, or labels that select series, such as host; * matches any characters',
    ),
    limit: z.number().int().min(1).max(1_000).default(100).describe('The most values'),
  },
  list: 'values',
  row: z.object({
    metric: z.string(),
    labels: labels.optional(),
    value: json.describe('null: there is no value now'),
    time: z.string().optional(),
  }),
  facts: {
    more: z.boolean().optional().describe('true: there are more values than `limit`, or than the server sends at once'),
  },
  async run({ metric, arguments: given, limit }, { consumer, signal }) {
    const args = { deadline_ms: DEADLINE_MS, ...toArguments(given) }
    const sample = await consumer.query(metric, args, { signal })
    const all = sample.elements
    const rows = all.slice(0, limit).map((element) => {
      const time = isoTime(element.time)
      const hasLabels = Object.keys(element.labels).length > 0
      return {
        metric: element.metric,
        ...(hasLabels && { labels: element.labels }),
        value: plainToJson(element.plain),
        ...(time !== undefined && { time }),
      }
    })
    return { facts: { ...((sample.isCut || all.length > limit) && { more: true }) }, rows }
  },
})
