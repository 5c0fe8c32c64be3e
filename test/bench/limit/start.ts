/** Starts a limit server in place of the server that was measured, for each of the ways in which benchmarks start theirs. */
import { mkdirSync } from 'node:fs'
import { compiled } from '../../support/compiled.ts'
import { freePort } from '../../support/free-port.ts'
import { definitions, SERIES } from '../durable-stream.ts'
import { MeasuredServer } from '../measured.ts'
import type { Contender } from '../peers/contender.ts'
import type { Commits } from '../processes/end.ts'
import { ServerUnderTest } from '../processes/server-under-test.ts'
import type { Figures } from '../ratios.ts'
import type { LimitJob } from './job.ts'

/** The log has every byte, and then the database. */
const WRITTEN_TWICE = 2

/** What it does not have to know of a workload. */
type Workload = Pick<LimitJob, 'workload' | 'frameBytes'> & Partial<LimitJob>

/** As MeasuredServer starts the server; `start` it. */
export function limitServer(workload: Workload): MeasuredServer {
  const [program, storage] = programs()
  return new MeasuredServer('', undefined, (directory) => [
    program,
    JSON.stringify(jobOf(workload, directory, storage)),
  ])
}

/** As `durable` starts the server. */
export function limitContender(values: number, commits: Commits, measured: Figures): Contender {
  return {
    name: 'limit',
    settings: 'plain sockets, SQLite, synchronous full; OK when durable; as many bytes stored',
    values,
    async start(directory) {
      mkdirSync(directory, { recursive: true })
      const [port, feedPort] = [await freePort(), await freePort()]
      const [program, storage] = programs()
      const workload: Workload = {
        workload: 'delivery',
        ...storedIn(measured, values),
        definitions: { bytes: definitions().length, values: SERIES },
        port,
        feedPort,
      }
      const server = await ServerUnderTest.start({
        args: [program, JSON.stringify(jobOf(workload, directory, storage))],
        port,
      })
      return {
        server,
        publisher: { end: 'smon-publisher', port: feedPort, values },
        consumer: { end: 'cinnabar-consumer', port, values, commits },
      }
    },
  }
}

/** What a measured run has sent and stored: `frameBytes` and `writtenMiB` of its figures. */
export function storedIn(measured: Figures, values: number): Pick<LimitJob, 'frameBytes' | 'storedShare'> {
  const frameBytes = Math.round(Number(measured['frameBytes']) / 4) * 4
  if (!(frameBytes > 0)) throw new Error('the measured run does not tell how long its frames are')
  const bytes = Number(measured['writtenMiB']) * 2 ** 20
  return { frameBytes, storedShare: bytes / (WRITTEN_TWICE * values * frameBytes) }
}

function programs(): readonly [string, string] {
  return [compiled('test/bench/processes/limit-server.ts'), compiled('test/bench/processes/limit-storage.ts')]
}

function jobOf(workload: Workload, directory: string, storage: string): LimitJob {
  return {
    port: 0,
    feedPort: 0,
    storedShare: 0,
    definitions: { bytes: 0, values: 0 },
    values: 0,
    ...workload,
    directory,
    storage,
  }
}
