/**
 * The client library: smon over TCP -> a pattern on one durable channel -> a consumer by the library in one Node process,
 * from the first value sent to the last one committed and stored. The server is a process of its own.
 */
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import type { Taking } from './client-consumer.ts'
import { cinnabar } from './durable-cinnabar.ts'
import { runOnce } from './durable-run.ts'

const VALUES = 2_000_000
const TAKINGS: readonly Taking[] = ['handler', 'async', 'loop']

export async function benchClient(argv: string[]): Promise<object> {
  const { values: given } = parseArgs({
    args: argv,
    options: { values: { type: 'string', default: String(VALUES) }, dir: { type: 'string', default: tmpdir() } },
  })
  const values = Number(given.values)
  const figures: Record<string, number> = {}
  for (const taking of TAKINGS) {
    const own = cinnabar(values, { through: true, shuffle: 0, writeAll: false })
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
    const { valuesPerSecond, endsCpuPerMillion } = await runOnce(contender, given.dir)
    figures[`${taking} values/s`] = valuesPerSecond
    figures[`${taking} CPU s/million`] = endsCpuPerMillion[1]
  }
  return { values, ...figures }
}
