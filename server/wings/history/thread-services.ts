/** What a recorder needs of its thread. */
import type { MessagePort } from 'node:worker_threads'
import type { FromThread } from './messages.ts'
import type { RecorderServices } from './recorder.ts'

export function threadServices(port: MessagePort): RecorderServices {
  return {
    post: (message: FromThread, buffers = []) => port.postMessage(message, buffers as ArrayBuffer[]),
    answer: (answer, buffers) => port.postMessage(answer, buffers as ArrayBuffer[]),
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    later: (act) => setImmediate(act),
    ended: () => port.close(),
  }
}
