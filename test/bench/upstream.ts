/**
 * One hop of a tree: smon over TCP -> a server -> the server that consumes it -> a consumer that COMMITs every value by itself, each
 * value durable at both servers. Beside it `durable`, the same without the hop, in the same run and in turn: two servers share the
 * processors that one has there. With `--fleet`, many servers below instead: upstream-fleet.ts.
 */
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, rounded } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { freePort } from '../support/free-port.ts'
import { cinnabar, launched } from './durable-cinnabar.ts'
import { ADMIN_PASSWORD } from './durable-consumer.ts'
import { type Figures, runOnce } from './durable-run.ts'
import type { Contender } from './peers/contender.ts'
import { benchFleet } from './upstream-fleet.ts'

const VALUES = 2_000_000
const EVERY_VALUE = { through: false, shuffle: 0, writeAll: false }

export async function benchUpstream(argv: string[]): Promise<object> {
  const { values, runs, dir, fleet, series, rounds } = optionsIn(argv, {
    values: VALUES,
    runs: 3,
    dir: tmpdir(),
    fleet: 0,
    series: 1_000,
    rounds: 5,
  })
  if (fleet > 0) return benchFleet({ upstreams: fleet, series, rounds })
  const alone = cinnabar(values, EVERY_VALUE)
  const hop = oneHop(values)
  const pairs: { readonly alone: Figures; readonly hop: Figures }[] = []
  for (let run = 0; run < runs; run++) {
    const first = run % 2 === 0 ? await runOnce(alone, dir) : undefined
    const through = await runOnce(hop, dir)
    const pair = { alone: first ?? (await runOnce(alone, dir)), hop: through }
    console.log(`alone ${pair.alone.valuesPerSecond} values/s, through a hop ${pair.hop.valuesPerSecond}`)
    pairs.push(pair)
  }
  const ratioOf = (of: (figures: Figures) => number): number =>
    rounded(median(pairs.map((pair) => of(pair.hop) / of(pair.alone))), 3)
  return {
    values,
    alonePerSecond: median(pairs.map((pair) => pair.alone.valuesPerSecond)),
    hopPerSecond: median(pairs.map((pair) => pair.hop.valuesPerSecond)),
    rate: ratioOf((figures) => figures.valuesPerSecond),
    cpu: ratioOf((figures) => figures.cpuPerMillion),
    cpuPerMillion: median(pairs.map((pair) => pair.hop.cpuPerMillion)),
    cpuPerMillionBelow: median(pairs.map((pair) => pair.hop.belowCpuPerMillion ?? 0)),
    cpuPerMillionAlone: median(pairs.map((pair) => pair.alone.cpuPerMillion)),
  }
}

function oneHop(values: number): Contender {
  return {
    name: 'through a hop',
    settings: 'durable at both servers',
    values,
    async start(directory) {
      const below = await cinnabar(values, EVERY_VALUE).start(directory)
      const port = await freePort()
      const secret = join(directory, 'secret')
      writeFileSync(secret, ADMIN_PASSWORD)
      const server = await launched({
        directory: join(directory, 'above'),
        port,
        values,
        more: `[[upstream]]
name = "below"
url = "tcp://127.0.0.1:${below.consumer.port}"
user = "admin"
secret_file = ${JSON.stringify(secret)}
`,
      })
      return {
        server,
        below: below.server,
        publisher: below.publisher,
        consumer: { ...below.consumer, port, below: { port: below.consumer.port, producer: 'below' } },
      }
    },
  }
}
