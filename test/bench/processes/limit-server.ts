/**
 * The least that any server in this language has to do with the bytes of a benchmark, as a process: plain sockets and SQLite
 * on a thread, in place of the server that was measured.
 */

import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:net'
import { Delivery } from '../limit/delivery.ts'
import { Drain } from '../limit/drain.ts'
import type { LimitJob } from '../limit/job.ts'
import { Query } from '../limit/query.ts'

const job = JSON.parse(process.argv[2] ?? '') as LimitJob

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

const workloads = { delivery: Delivery, drain: Drain, query: Query } as const
const workload = new workloads[job.workload](job)
if (workload instanceof Drain) await workload.filled()
if (workload instanceof Delivery)
  await listen(
    createServer((socket) => workload.feed(socket)),
    job.feedPort,
  )
const port = await listen(
  createServer((socket) => workload.consumer(socket)),
  job.port,
)
console.log(`tcp://127.0.0.1:${port} stands for all channels`)
