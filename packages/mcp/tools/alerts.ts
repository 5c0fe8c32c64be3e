/** `alerts`: what is pending and fires, as the server's own series say it, and of which nobody is told. */
import { z } from 'zod'
import type { ExpressionSeries } from '../../../client/index.ts'
import { ifReadable, isoTime, listOf } from '../answer.ts'
import { defineTool, json, READING } from '../tool.ts'

/** A tenant has at most so many alerts. */
const MAX_ALERTS = 10_000
const MAX_SILENCES = 100

export const alertsTool = defineTool({
  name: 'alerts',
  title: 'Alerts',
  description:
    'Lists the alerts that fire or are pending, with their labels and since when they hold, the silences in force, and how the rules are evaluated.',
  annotations: READING,
  input: {
    state: z.enum(['firing', 'pending', 'all']).default('all').describe('Which alerts'),
    limit: z.number().int().min(1).max(1_000).default(100).describe('The most alerts'),
  },
  list: 'alerts',
  row: z.object({
    alert: z.string(),
    state: z.string(),
    since: z.string().optional().describe('Since when it holds'),
    labels: z.record(z.string(), z.string()),
  }),
  facts: {
    total: z.number().describe('Alerts in this state, also those beyond `limit`'),
    silences: z.array(json).optional().describe('Of which alerts nobody is told, until when, and why'),
    rules: z.array(json).optional().describe('How many rules are evaluated, and how many fail'),
  },
  async run({ state, limit }, { consumer, signal }) {
    const chosen = state === 'all' ? 'ALERTS' : `ALERTS{alertstate="${state}"}`
    const ask = (expression: string) => consumer.evaluate(expression, { limit: MAX_ALERTS, signal })
    const list = (metric: string) => ifReadable(listOf(consumer, metric, {}, { limit: MAX_SILENCES, signal }))
    const [current, begun, silences, rules] = await Promise.all([
      ask(chosen),
      ask('ALERTS_FOR_STATE'),
      list('producer.silences'),
      list('producer.alerts'),
    ])
    const since = new Map(begun.series.map((one) => [identityOf(one), one.values[0] ?? 0]))
    const rows = current.series
      .map((one) => {
        const { alertname: alert = '', alertstate = '', ...labels } = one.labels
        const time = isoTime((since.get(identityOf(one)) ?? 0) * 1e6)
        return { alert, state: alertstate, ...(time !== undefined && { since: time }), labels }
      })
      .sort((one, other) =>
        one.state === other.state ? compare(one.alert, other.alert) : compare(one.state, other.state),
      )
    const facts = {
      total: rows.length,
      ...(silences && {
        silences: silences.records.map(({ begins, ends, ...silence }) => {
          return { ...silence, begins: isoTime(Number(begins)), ends: isoTime(Number(ends)) }
        }),
      }),
      ...(rules && { rules: rules.records }),
    }
    return { facts, rows: rows.slice(0, limit) }
  },
})

/** The labels of an alert without its state. */
function identityOf({ labels }: ExpressionSeries): string {
  const own = Object.entries(labels).filter(([name]) => name !== 'alertstate')
  return JSON.stringify(own.sort(([one], [other]) => compare(one, other)))
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}
