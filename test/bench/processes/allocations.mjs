/**
 * Preloaded into Node programs by hand, to see what their main threads allocate:
 * `ALLOCATIONS=FILE NODE_OPTIONS="--import $PWD/test/bench/processes/allocations.mjs" npm run bench -- NAME`. Each appends a line of
 * JSON to the file when it ends (the server is ended by SIGTERM): the bytes that were allocated in the heap of V8, and the
 * collections of garbage with their times, from its start to its end.
 */
import { appendFileSync } from 'node:fs'
import { GCProfiler, getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.env['ALLOCATIONS'] !== undefined) {
  const startBytes = getHeapStatistics().used_heap_size
  const profiler = new GCProfiler()
  profiler.start()
  process.on('exit', () => {
    const endBytes = getHeapStatistics().used_heap_size
    const collections = profiler.stop().statistics
    let allocatedBytes = 0
    let lastBytes = startBytes
    const kinds = {}
    for (const { gcType, cost, beforeGC, afterGC } of collections) {
      const { usedHeapSize } = beforeGC.heapStatistics
      allocatedBytes += Math.max(0, usedHeapSize - lastBytes)
      lastBytes = afterGC.heapStatistics.usedHeapSize
      kinds[gcType] ??= { times: 0, ms: 0 }
      const kind = kinds[gcType]
      kind.times++
      kind.ms += cost / 1000
    }
    allocatedBytes += Math.max(0, endBytes - lastBytes)
    const report = { program: process.argv[1], allocatedMiB: allocatedBytes / 2 ** 20, kinds }
    appendFileSync(process.env['ALLOCATIONS'], `${JSON.stringify(report)}\n`)
  })
}
