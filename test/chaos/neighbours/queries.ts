/** The heaviest queries that a tenant may ask: each over all its series, at as many times as there may be, from many places at once. */
import { once } from 'node:events'
import { type IncomingMessage, request as post } from 'node:http'
import type { Reach } from './wire.ts'

const ASKERS = 40
const ALL_SERIES = '{__name__=~"(gmetric|host)_.*[a-z0-9]+.*"}'
const EXPRESSIONS = [
  `sum by (host) (rate(${ALL_SERIES}[5m]))`,
  `max_over_time(sum(rate(${ALL_SERIES}[1m]))[30m:1s])`,
  `quantile by (host) (0.9, ${ALL_SERIES})`,
  `count_values("v", ${ALL_SERIES})`,
  `label_replace(${ALL_SERIES}, "to", "$1$1$1", "__name__", "(.*)")`,
  `${ALL_SERIES} * on (__name__, host, cluster) ${ALL_SERIES}`,
  `topk(1000, sort_desc(stddev_over_time(${ALL_SERIES}[1h])))`,
]
const LISTS = ['series', 'labels', 'label/__name__/values'] as const
/** Points after the first one. */
const MOST_POINTS = 11_000
const [HOUR_S, MS] = [3_600, 1_000]

/** The hostile tenant, as far as this deed needs it. */
interface Asking {
  readonly job: { readonly reach: Reach; readonly tokens: readonly string[] }
  begin(): void
  repeat(places: number, act: (n: number) => Promise<void>): Promise<void>
}

export async function queries(
  attacker: Asking,
): Promise<{ asked: number; done: number; refused: number; bytes: number }> {
  const { reach, tokens } = attacker.job
  const { host, http } = reach
  const tally = { asked: 0, done: 0, refused: 0, bytes: 0 }
  const headers = {
    authorization: `Bearer ${tokens[1]}`,
    'content-type': 'application/x-www-form-urlencoded',
  }
  await attacker.repeat(ASKERS, async (n) => {
    attacker.begin()
    const { path, form } = asked(n)
    const request = post({ host, port: http, path: `/api/v1/${path}`, method: 'POST', headers })
    request.end(form.toString())
    tally.asked++
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    for await (const chunk of response) tally.bytes += (chunk as Buffer).length
    tally[response.statusCode === 200 ? 'done' : 'refused']++
  })
  return tally
}

function asked(n: number): { readonly path: string; readonly form: URLSearchParams } {
  const end = Date.now() / MS
  const range = { start: String(end - HOUR_S), end: String(end) }
  const at = n % (LISTS.length + EXPRESSIONS.length)
  // These first: they are answered even where the others take longer than the time of the deed.
  const list = LISTS[at]
  if (list !== undefined) return { path: list, form: new URLSearchParams({ 'match[]': ALL_SERIES, ...range }) }
  // Whole milliseconds are taken.
  const step = String(Math.ceil((HOUR_S * MS) / MOST_POINTS) / MS)
  return {
    path: 'query_range',
    form: new URLSearchParams({ query: EXPRESSIONS[at - LISTS.length] as string, ...range, step }),
  }
}
