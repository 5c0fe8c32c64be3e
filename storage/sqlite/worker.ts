/** The thread of the SQLite store. */
import { parentPort, workerData } from 'node:worker_threads'
import { type ServiceOptions, serveStore } from './service.ts'

if (parentPort !== null) serveStore(parentPort, workerData as ServiceOptions)
