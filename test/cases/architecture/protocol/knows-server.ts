// A leaf knows no other folder.
import type { Queue } from '../server/kernel/channels/queue.ts'

export type Known = Queue
