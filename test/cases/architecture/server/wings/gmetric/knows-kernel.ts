// A wing has the kit and its own protocol, not the kernel or the protocol of another wing.
import { maxTokens } from '../../../protocol/smon/limits.ts'
import type { Queue } from '../../kernel/channels/queue.ts'
import type { Kit } from '../../kit/kit.ts'

export type Known = Queue | Kit
export const tokens = maxTokens
