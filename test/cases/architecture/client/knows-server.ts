// The client knows protocol/ and auth/ only.
import type { Queue } from '../server/kernel/channels/queue.ts'

export type Known = Queue
