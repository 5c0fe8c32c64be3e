/** The thread of the history: `HistoryThread` starts it by the name `#history-worker`. */
import { parentPort, workerData } from 'node:worker_threads'
import { History } from '../../../storage/history/history.ts'
import type { ThreadOptions, ToThread } from './messages.ts'
import { HistoryRecorder } from './recorder.ts'
import { threadServices } from './thread-services.ts'

const options = workerData as ThreadOptions
const port = parentPort

if (port !== null) {
  const services = threadServices(port)
  const history = History.open({ ...options, clock: services.wallMs })
  // It may have been that of a node of a cluster.
  history.log.moveTo(undefined)
  const recorder = new HistoryRecorder(history, services)
  port.on('message', (message: ToThread) => recorder.handle(message))
}
