/** The thread of the history: `HistoryThread` starts it by the name `#history-worker`. */
import { parentPort, workerData } from 'node:worker_threads'
import { History } from '../../../storage/history/history.ts'
import type { FromThread, ThreadOptions, ToThread } from './messages.ts'
import { HistoryRecorder } from './recorder.ts'

const options = workerData as ThreadOptions
const wallMs = (): number => Date.now()
const port = parentPort

if (port !== null) {
  const recorder = new HistoryRecorder(History.open({ ...options, clock: wallMs }), {
    post: (message: FromThread, buffers = []) => port.postMessage(message, buffers as ArrayBuffer[]),
    answer: (answer, buffers) => port.postMessage(answer, buffers as ArrayBuffer[]),
    wallMs,
    monotonicMs: () => performance.now(),
    later: (act) => setImmediate(act),
    ended: () => port.close(),
  })
  port.on('message', (message: ToThread) => recorder.handle(message))
}
