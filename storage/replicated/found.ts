/** Makes the next log of a cluster, which begins with the database of this node. */
import type { MessagePort } from 'node:worker_threads'
import { type PostMessage, StorageService } from '../sqlite/service.ts'
import { StorageError } from '../store.ts'
import { Log } from './log.ts'
import { NO_RECORD_HASH } from './place.ts'
import { encodeEpoch } from './record.ts'
import { BOUNDS_MS, type FromRole, type RoleOptions } from './role.ts'

/** How long the nats-servers may take to take the first record: longer than they need to elect a leader. */
const APPEND_MS = 20_000

/**
 * Posts the place of the database, with which the log begins. Rejects with StorageError; DEPOSED if another node was faster. The
 * newest of the logs before is kept, as what a person may want to look at; those before that are removed.
 */
export async function found(_: MessagePort, options: RoleOptions, post: PostMessage<FromRole>): Promise<void> {
  const { store, log: where, wall, newest: judged } = options
  const service = new StorageService(
    { ...store, replicated: true },
    { durable() {}, full() {}, room() {}, failed() {} },
  )
  try {
    const { place } = service.tables.log
    const log = await Log.connect(where)
    try {
      const { log: newest } = await log.bounds(BOUNDS_MS)
      if (newest > judged) throw new StorageError('DEPOSED', `another node has founded log ${newest} of the cluster`)
      const number = Math.max(newest, place.log) + 1
      const epoch = place.epoch + 1
      const { origin } = service.opened.generation
      const base = place.log === 0 && place.sequence === 0 ? undefined : place
      const bytes = encodeEpoch({
        kind: 'epoch',
        previous: NO_RECORD_HASH,
        epoch,
        node: where.node,
        wall,
        origin,
        base,
      })
      // If that fails, making the next one says whether there is room.
      await log.removeBefore(newest).catch(() => {})
      await log.create(number)
      log.open(number)
      await log.append({ kind: 'epoch', epoch, bytes }, 0, AbortSignal.timeout(APPEND_MS))
      post({ type: 'place', place, last: 1 })
    } finally {
      await log.close()
    }
  } finally {
    service.close()
  }
}
