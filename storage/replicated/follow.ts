/** A node that does not lead: it applies what the log has, as it comes. */
import type { MessagePort } from 'node:worker_threads'
import { type PostMessage, StorageService } from '../sqlite/service.ts'
import { StorageError } from '../store.ts'
import { Applier } from './applier.ts'
import { removeCopies } from './copy.ts'
import { Log } from './log.ts'
import { BOUNDS_MS, type FromRole, type RoleOptions, type ToRole } from './role.ts'

/** Follows until a message says that it ends. Rejects with StorageError. */
export async function follow(
  port: MessagePort,
  { store, log: where }: RoleOptions,
  post: PostMessage<FromRole>,
): Promise<void> {
  const stopping = new AbortController()
  let applier: Applier | undefined
  port.on('message', (message: ToRole) => {
    if (message.type !== 'close') return
    stopping.abort()
    // A record that waits for room is applied another time.
    applier?.failed(new StorageError('FULL', `following ended while the disk of ${store.directory} was full`))
  })
  const service = new StorageService(
    { ...store, replicated: true },
    {
      durable: () => applier?.stored(),
      full: () => post({ type: 'obstacle', obstacle: `the disk of ${store.directory} is full` }),
      room: () => post({ type: 'obstacle', obstacle: undefined }),
      failed: (error) => applier?.failed(error),
    },
  )
  try {
    service.writer.start()
    removeCopies(store.directory)
    const log = await Log.connect(where)
    try {
      const { log: number, last } = await log.bounds(BOUNDS_MS)
      if (number === 0) throw new StorageError('FOREIGN', 'the cluster has no log yet')
      const { place } = service.tables.log
      if (number < place.log)
        throw new StorageError('UNREACHABLE', `the newest log is ${number}, and the database is in log ${place.log}`)
      log.open(number)
      applier = new Applier(service, number)
      await applier.check(log, BOUNDS_MS)
      post({ type: 'place', place: applier.place, last })
      for await (const entry of log.read(applier.sequence, stopping.signal)) {
        await applier.apply(entry)
        post({ type: 'place', place: applier.place, last: entry.last })
      }
    } finally {
      await log.close()
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error
  } finally {
    service.close()
  }
}
