/** The thread that answers queries: `QueryThread` starts it by the name `#query-worker`. */
import { parentPort } from 'node:worker_threads'
import { systemClock } from '../../../kernel/core/clock.ts'
import { FairWork } from '../../../kernel/core/fair-work.ts'
import { QueryJobs } from './jobs.ts'
import type { ToQueries } from './messages.ts'

const port = parentPort

if (port !== null) {
  const clock = systemClock()
  const jobs = new QueryJobs({
    post: (message, buffers = []) => port.postMessage(message, [...buffers]),
    clock,
    work: new FairWork(clock),
  })
  port.on('message', (message: ToQueries) => jobs.handle(message))
}
