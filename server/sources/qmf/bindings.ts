/** The two queues of a console, one for answers and one for what is broadcast, and what is bound to them. */
import type { Schema } from '../../../protocol/qmf/types.ts'
import type { AmqpLink } from './console-options.ts'
import { BROKER_PACKAGE } from './own-objects.ts'

export const EXCHANGE = 'qpid.management'
export const REPLY_EXCHANGE = 'amq.direct'
/** Bound whatever is wanted: new classes, life, and new agents, whose objects nobody could want before. */
const ALWAYS = ['schema.#', 'console.heartbeat.#', `console.obj.*.*.${BROKER_PACKAGE}.agent`]
/** When we do not keep up the broker is to drop the oldest, not to refuse itself the rest. */
const RING = new Map([['qpid.policy_type', 'ring']])
/** Of a binding key. What has a longer one cannot be broadcast either. */
const MOST_KEY_BYTES = 255

export class Bindings {
  readonly replies: string
  readonly topics: string
  /** By binding key: the name of the class, undefined of an event. */
  readonly #wanted = new Map<string, string | undefined>()
  #link: AmqpLink | undefined

  constructor(session: string) {
    this.replies = `reply-${session}`
    this.topics = `topic-${session}`
  }

  open(link: AmqpLink): void {
    this.#link = link
    link.declareQueue(this.replies)
    link.declareQueue(this.topics, RING)
    link.bind(this.replies, REPLY_EXCHANGE, this.replies)
    const keys = [...this.#wanted.keys()].filter(isKey)
    for (const key of new Set([...ALWAYS, ...keys])) link.bind(this.topics, EXCHANGE, key)
    link.subscribe(this.replies, 'rdest')
    link.subscribe(this.topics, 'tdest')
  }

  /** False if nothing changes by it. */
  want({ kind, key: { packageName, className } }: Schema, isWanted: boolean): boolean {
    const key = `console.${kind === 'table' ? 'obj' : 'event'}.*.*.${packageName}.${className}`
    if (this.#wanted.has(key) === isWanted) return false
    if (isWanted) this.#wanted.set(key, kind === 'table' ? className : undefined)
    else this.#wanted.delete(key)
    if (ALWAYS.includes(key) || !isKey(key)) return true
    if (isWanted) this.#link?.bind(this.topics, EXCHANGE, key)
    else this.#link?.unbind(this.topics, EXCHANGE, key)
    return true
  }

  /** In any package. */
  isWanted(className: string): boolean {
    return [...this.#wanted.values()].includes(className)
  }
}

function isKey(key: string): boolean {
  return Buffer.byteLength(key) <= MOST_KEY_BYTES
}
