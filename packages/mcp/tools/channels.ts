/** `channels`: the ledger of each queue, and which consumers are slow and why. */
import { z } from 'zod'
import { isoTime, type JsonObject, listOf } from '../answer.ts'
import { defineTool, json, READING, textInput } from '../tool.ts'

/** A healthy channel has less lag than this between two commits. */
const SLOW_MS = 1_000
/** The most channels that are looked at. */
const MAX_CHANNELS = 10_000

export const channelsTool = defineTool({
  name: 'channels',
  title: 'Channels and slow consumers',
  description:
    'Lists the channels of the user of this token (those of all users for an admin), those with the most lag first: what was accepted, committed, is in flight, queued and dropped, and why values wait.',
  annotations: READING,
  input: {
    channel: textInput(255).optional().describe('Only this one, by its id or name'),
    slow: z.boolean().default(false).describe('Only channels with values that have waited for at least a second'),
    limit: z.number().int().min(1).max(1_000).default(50).describe('The most channels'),
  },
  list: 'channels',
  row: z.object({
    channel: z.number(),
    name: z.string(),
    identity: z.string(),
    url: z.string(),
    state: z.string(),
    durable: z.boolean(),
    accepted: json,
    committed: json,
    in_flight: json,
    queued: json,
    queued_bytes: json,
    dropped: json.describe('Values that were lost, by reason'),
    oldest: z.string().optional().describe('The time of the oldest value that is not committed'),
    lag_ms: z.number().describe('How old that is'),
    slow: z.boolean(),
    why: z.string().describe('Why values wait, or that none do'),
    bindings: z.array(json).describe('The first metrics that are bound to it'),
    bound: z.number().describe('How many are'),
  }),
  facts: { total: z.number().describe('Channels that were found, also those beyond `limit`') },
  async run({ channel, slow, limit }, { consumer, signal }) {
    const next = (last: JsonObject) => ({ after: Number(last['channel']) })
    const args = channel === undefined ? {} : { channel }
    const found = await listOf(consumer, 'producer.channels', args, { limit: MAX_CHANNELS, next, signal })
    const rows = found.records
      .filter((record) => record['channel'] !== consumer.channel)
      .map((record) => rowOf(record, found.time))
      .filter((row) => !slow || row.slow)
      .sort((one, other) => other.lag_ms - one.lag_ms)
    return { facts: { total: rows.length }, rows: rows.slice(0, limit) }
  },
})

const MAX_BINDINGS = 10
const LEDGER = ['channel', 'name', 'identity', 'url', 'state', 'durable'] as const
const COUNTS = ['accepted', 'committed', 'in_flight', 'queued', 'queued_bytes', 'dropped'] as const

/** `now` is the time of the answer, by the clock of the server. */
function rowOf(record: JsonObject, now: number) {
  const oldest = Number(record['oldest'])
  const lagMs = oldest === 0 ? 0 : Math.max(0, Math.round((now - oldest) / 1_000))
  const time = isoTime(oldest)
  const bindings = (record['bindings'] ?? []) as readonly JsonObject[]
  return {
    ...Object.fromEntries([...LEDGER, ...COUNTS].map((name) => [name, record[name]])),
    ...(time !== undefined && { oldest: time }),
    lag_ms: lagMs,
    slow: lagMs >= SLOW_MS,
    why: reasonToWait(record, bindings, lagMs),
    bindings: bindings.slice(0, MAX_BINDINGS).map(({ name, mode }) => ({ name, mode })),
    bound: Math.max(Number(record['bound'] ?? 0), bindings.length),
  }
}

/** The words of `cinnabar channels`. */
export function reasonToWait(record: JsonObject, bindings: readonly JsonObject[], lagMs: number): string {
  const { state, url, durable } = record
  const [inFlight, queued] = [Number(record['in_flight']), Number(record['queued'])]
  if (state === 'orphan') return 'nobody came back: polled metrics pause'
  if (inFlight + queued === 0) return 'nothing is waiting'
  if (state === 'waiting') return url === '' ? 'nobody is connected' : 'its URL is not connected'
  if (state === 'window-full') return 'sent, not committed'
  if (lagMs < SLOW_MS) return 'keeps up'
  if (queued === 0) return 'sent, not committed'
  const buffered = bindings.filter(({ mode }) => mode === 'buffer').length
  if (inFlight === 0 && buffered > 0 && buffered === bindings.length) return 'waits for GET'
  if (buffered > 0) return 'slow, or waits for GET'
  return inFlight === 0 && durable === true ? 'reads nothing' : 'reads slowly'
}
