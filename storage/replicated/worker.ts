/** The thread of the replicated store: the database and the connection to the log, in one role until it ends. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { serialized } from '../sqlite/service.ts'
import { fetchCopy } from './copy.ts'
import { follow } from './follow.ts'
import { found } from './found.ts'
import { lead } from './lead.ts'
import type { FromRole, RoleOptions } from './role.ts'

const roles = { lead, follow, found, copy: fetchCopy } as const

// The client of NATS never closes a socket whose connection was not made in time, and a thread lives as long as its sockets: a node
// that waited for its end could not lead until the system gave up a machine that is cut off, after two minutes.
if (parentPort !== null) void runRole(parentPort, workerData as RoleOptions).then(() => process.exit())

/** Runs the role to its end; never rejects, but says why it was refused. */
export async function runRole(port: MessagePort, options: RoleOptions): Promise<void> {
  const post = (message: FromRole, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
  try {
    await roles[options.role](port, options, post)
  } catch (error) {
    post({ type: 'refused', error: serialized(error, options.store.directory) })
  }
}
