// What agents use knows the client library only, and that by its entry.
import '../../client/consumer.ts'
import type { Queue } from '../../server/kernel/channels/queue.ts'

export type KnownToAgents = Queue
