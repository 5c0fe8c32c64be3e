/**
 * Preloaded into a Node server by hand, to see what its main thread allocates:
 * `BENCH_NODE_OPTIONS="--import ./test/bench/processes/allocations.mjs" npm run bench -- NAME`. When the server ends by
 * SIGTERM, it appends a line of JSON to the file that ALLOCATIONS names: the bytes that were allocated in the heap of V8, and
 * the collections of garbage with their times, from the start of the server to its end.
 */
import { appendFileSync } from 'node:fs'
import { GCProfiler, getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
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
    const report = { allocatedMiB: allocatedBytes / 2 ** 20, kinds }
    appendFileSync(process.env['ALLOCATIONS'] ?? 'allocations.json', `${JSON.stringify(report)}\n`)
  })
}
