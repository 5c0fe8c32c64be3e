/**
 * `npm run bench -- <name> [options]`: the project's own measurements. Each prints a small table for people and one JSON
 * line for programs. Figures depend on the machine: so the limit is measured beside it where there is one (limit.ts), unless
 * BENCH_WITHOUT_LIMIT is in the environment, and `--against COMMIT` compares two trees.
 */
import { type Comparison, compare, comparisonIn } from './against.ts'
import { benchAlerts } from './alerts.ts'
import { benchBacklog } from './backlog.ts'
import { benchChannels } from './channels.ts'
import { benchClient } from './client.ts'
import { benchCodec } from './codec.ts'
import { benchConsole } from './console.ts'
import { benchConsoleFleet } from './console-fleet.ts'
import { benchDoors } from './doors.ts'
import { benchDurable } from './durable.ts'
import { benchFanOut } from './fan-out.ts'
import { benchFrozen } from './frozen.ts'
import { benchGmetric } from './gmetric.ts'
import { benchHistory } from './history.ts'
import { benchIdle } from './idle.ts'
import { benchLatency } from './latency.ts'
import { benchBesideLimit, benchLimit, besideIn, limitAgainst } from './limit.ts'
import { benchMemory } from './memory.ts'
import { benchMonoAgent } from './mono-agent.ts'
import { benchPromql } from './promql.ts'
import { benchQuery } from './query.ts'
import { benchQueue } from './queue.ts'
import { shownFigures } from './ratios.ts'
import { benchScale } from './scale.ts'
import { benchSeries } from './series.ts'
import { benchDrain, benchOtlp, benchRemoteWrite, benchScrape } from './stacks.ts'
import { benchUpstream } from './upstream.ts'

const benches: Readonly<Record<string, (args: string[]) => Promise<object>>> = {
  alerts: benchAlerts,
  backlog: benchBacklog,
  channels: benchChannels,
  client: benchClient,
  codec: benchCodec,
  console: benchConsole,
  'console-fleet': benchConsoleFleet,
  doors: benchDoors,
  durable: benchDurable,
  drain: benchDrain,
  'fan-out': benchFanOut,
  frozen: benchFrozen,
  gmetric: benchGmetric,
  history: benchHistory,
  idle: benchIdle,
  latency: benchLatency,
  limit: benchLimit,
  memory: benchMemory,
  'mono-agent': benchMonoAgent,
  otlp: benchOtlp,
  promql: benchPromql,
  query: benchQuery,
  queue: benchQueue,
  'remote-write': benchRemoteWrite,
  scale: benchScale,
  scrape: benchScrape,
  series: benchSeries,
  upstream: benchUpstream,
}

const [name = '', ...args] = process.argv.slice(2)
const bench = benches[name]
if (bench === undefined) {
  console.error(
    `usage: npm run bench -- <name> [--against <commit>] [--pairs <n>] [options]\nnames: ${Object.keys(benches).join(', ')}`,
  )
  process.exit(2)
}
const comparison = comparisonIn(args)
const beside = besideIn(name, args)
const isAlone = beside === undefined || process.env['BENCH_WITHOUT_LIMIT'] !== undefined
const alone = (): Promise<object> => bench(beside?.options ?? args)
const against = (commit: Comparison): Promise<object> =>
  name === 'limit' ? limitAgainst(commit) : compare(name, commit)
const figures = await (comparison ? against(comparison) : isAlone ? alone() : benchBesideLimit(name, beside))
for (const line of shownFigures({ ...figures })) console.log(line)
console.log(JSON.stringify({ bench: name, options: args.join(' '), ...figures }))
