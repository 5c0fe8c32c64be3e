/**
 * The client library: smon over TCP -> a pattern on one durable channel -> a consumer by the library in one Node process,
 * from the first value sent to the last one committed and stored. The server is a process of its own. `--taking each,batches`: only
 * these ways, those of loops that commit by themselves, too.
 */
import { tmpdir } from 'node:os'
import { optionsIn } from '../rig/options.ts'
import type { Taking } from './client-consumer.ts'
import { cinnabar } from './durable-cinnabar.ts'
import { type Figures as Run, runOnce } from './durable-run.ts'
import type { Commits } from './processes/end.ts'
import type { Figures } from './ratios.ts'

const VALUES = 2_000_000
const TAKINGS: readonly Taking[] = ['handler', 'async', 'loop', 'each', 'batches', 'stored']
const USUAL = 'handler,async,loop'
const THROUGH: Commits = { through: true, shuffle: 0, writeAll: false }

export async function benchClient(argv: string[]): Promise<object> {
  const { values, takings, dir } = optionsOf(argv)
  const own = cinnabar(values, THROUGH)
  const figures: Record<string, number> = {}
  for (const taking of takings) {
    const contender = {
      ...own,
      start: async (directory: string) => {
        const started = await own.start(directory)
        return {
          ...started,
          consumer: { end: 'client-consumer', port: started.consumer.port, values, taking } as const,
        }
      },
    }
    Object.assign(figures, named(taking, await runOnce(contender, dir)))
  }
  return { values, ...figures }
}

/**
 * The same server, with the least that any library has to do: frames are walked by their lengths and committed once a read, and
 * a handler gets an object for each.
 */
export async function limitOfClient(argv: string[]): Promise<Figures> {
  const { values, takings, dir } = optionsOf(argv)
  const figures = await runOnce(cinnabar(values, { ...THROUGH, handed: true }), dir)
  return Object.assign({ values }, ...takings.map((taking) => named(taking, figures)))
}

function optionsOf(argv: string[]) {
  const { values, dir, taking: wanted } = optionsIn(argv, { values: VALUES, dir: tmpdir(), taking: USUAL })
  const names = wanted.split(',')
  return { values, dir, takings: TAKINGS.filter((taking) => names.includes(taking)) }
}

function named(taking: Taking, { valuesPerSecond, endsCpuPerMillion }: Run): Record<string, number> {
  return { [`${taking} values/s`]: valuesPerSecond, [`${taking} CPU s/million`]: endsCpuPerMillion[1] }
}
