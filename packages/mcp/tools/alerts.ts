/** `alerts`: what is pending and fires, of which nobody is told, and which rules fail. */
import { z } from 'zod'
import { ifReadable, isoTime, type JsonObject, listOf } from '../answer.ts'
import { defineTool, json, READING } from '../tool.ts'

/** A tenant has at most so many alerts. */
const MAX_ALERTS = 10_000
const MAX_SILENCES = 100
const MAX_RULES = 20_000

const texts = z.record(z.string(), z.string())

export const alertsTool = defineTool({
  name: 'alerts',
  title: 'Alerts',
  description:
    'Lists the alerts that fire or are pending, with their labels and annotations, since when they hold and who was told, the silences in force, and the rules that fail.',
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
    labels: texts,
    annotations: texts,
    value: json.describe('Of its expression, when it held last'),
    silence: z.string().optional().describe('The silence because of which nobody is told'),
    told: z.string().optional().describe('The notifiers that have told people'),
  }),
  facts: {
    total: z.number().describe('Alerts in this state, also those beyond `limit`'),
    silences: z.array(json).optional().describe('Of which alerts nobody is told, until when, and why'),
    rules: z.number().optional().describe('How many rules are evaluated'),
    failing: z.array(json).optional().describe('The rules whose last evaluation has failed, and why'),
  },
  async run({ state, limit }, { consumer, signal }) {
    const list = (metric: string, most: number, next?: (last: JsonObject) => { after: number }) =>
      ifReadable(listOf(consumer, metric, {}, { limit: most, signal, ...(next && { next }) }))
    const [active, silences, rules] = await Promise.all([
      list('producer.alerts.active', MAX_ALERTS, ({ alert }) => ({ after: Number(alert) })),
      list('producer.silences', MAX_SILENCES),
      list('producer.rules', MAX_RULES, ({ rule }) => ({ after: Number(rule) })),
    ])
    const rows = (active?.records ?? [])
      .filter((alert) => state === 'all' || alert['state'] === state)
      .map(rowOf)
      // Those that fire come first.
      .sort((one, other) => compare(one.state, other.state) || compare(one.alert, other.alert))
    const facts = {
      total: rows.length,
      ...(silences && {
        silences: silences.records.map(({ begins, ends, ...silence }) => {
          return { ...silence, begins: isoTime(Number(begins)), ends: isoTime(Number(ends)) }
        }),
      }),
      ...(rules && { rules: rules.records.length, failing: rules.records.filter(isFailing).map(problemOf) }),
    }
    return { facts, rows: rows.slice(0, limit) }
  },
})

function rowOf({ labels, annotations, state, since, value, silence, told }: JsonObject) {
  const { alertname = '', ...others } = Object(labels) as Record<string, string>
  const time = isoTime(Number(since))
  return {
    ...{ alert: alertname, state: String(state), labels: others, annotations, value },
    ...(time !== undefined && { since: time }),
    ...(silence !== '' && { silence }),
    ...(told !== '' && { told }),
  }
}

function isFailing({ health }: JsonObject): boolean {
  return health === 'err'
}

function problemOf({ file, group, name, problem }: JsonObject): JsonObject {
  return { file, group, name, problem }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}
