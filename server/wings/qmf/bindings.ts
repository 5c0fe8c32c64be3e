/** The two queues of a console, one for answers and one for broadcasts, and their bindings. */
import type { AmqpClient } from '../../../protocol/amqp/client.ts'
import type { QmfWire, QueueBinding } from './wire.ts'

/** If we do not keep up, the broker is to drop the oldest message instead of refusing new ones. */
const RING = new Map([['qpid.policy_type', 'ring']])
/** The limit for a binding key. A class with a longer one cannot be broadcast either. */
const MAX_KEY_BYTES = 255

type BindingLink = Pick<AmqpClient, 'declareQueue' | 'bind' | 'unbind' | 'subscribe'>

export class ConsoleBindings {
  readonly replies: string
  readonly topics: string
  /** By their texts. */
  readonly #always = new Set<string>()
  readonly #wanted = new Map<string, QueueBinding>()
  #link: BindingLink | undefined

  constructor(session: string) {
    this.replies = `reply-${session}`
    this.topics = `topic-${session}`
  }

  open(link: BindingLink, { replyExchanges, alwaysBound }: Pick<QmfWire, 'replyExchanges' | 'alwaysBound'>): void {
    this.#link = link
    link.declareQueue(this.replies)
    link.declareQueue(this.topics, RING)
    for (const exchange of replyExchanges) link.bind(this.replies, exchange, this.replies)
    for (const binding of alwaysBound) this.#always.add(textOf(binding))
    for (const { exchange, key } of alwaysBound) link.bind(this.topics, exchange, key)
    for (const { exchange, key } of this.#bindable(this.#wanted.values())) link.bind(this.topics, exchange, key)
    link.subscribe(this.replies, 'rdest')
    link.subscribe(this.topics, 'tdest')
  }

  /** Binds what is wanted now, or unbinds it. Returns false if it changes nothing. */
  want(bindings: readonly QueueBinding[], isWanted: boolean): boolean {
    const changed = bindings.filter((binding) => this.#wanted.has(textOf(binding)) !== isWanted)
    for (const binding of changed) {
      if (isWanted) this.#wanted.set(textOf(binding), binding)
      else this.#wanted.delete(textOf(binding))
    }
    for (const { exchange, key } of this.#bindable(changed)) {
      if (isWanted) this.#link?.bind(this.topics, exchange, key)
      else this.#link?.unbind(this.topics, exchange, key)
    }
    return changed.length > 0
  }

  #bindable(bindings: Iterable<QueueBinding>): QueueBinding[] {
    return [...bindings].filter((binding) => {
      return !this.#always.has(textOf(binding)) && Buffer.byteLength(binding.key) <= MAX_KEY_BYTES
    })
  }
}

function textOf({ exchange, key }: QueueBinding): string {
  return `${exchange} ${key}`
}
