/**
 * Preloaded into a Node server by the benchmarks, and by nothing else: measures the delay of its event loop from `reset`
 * on, and answers `read` with the 99th percentile in milliseconds, both over the IPC channel; `collect` collects garbage. Plain JavaScript, because the
 * server under test runs from dist/ without a compiler.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const RESOLUTION_MS = 1

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  process.on('message', (message) => {
    if (message === 'reset') delay.reset()
    if (message === 'collect') {
      globalThis.gc()
      process.send('collected')
    }
    if (message === 'read') process.send(delay.percentile(99) / 1e6)
  })
  process.channel.unref()
}
