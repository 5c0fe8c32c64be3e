/** A consumer of the metric `alert`: takes what comes on its channel over all lives of the servers, and commits it, sometimes late. */
import { setTimeout } from 'node:timers/promises'
import { Link, type Listener, type Message, type User } from '../../rig/world/link.ts'
import { args, command, str, type } from '../../support/bytes.ts'
import type { Random } from '../../support/random.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Reported } from './judge.ts'

const CHANNEL = 'chaos'
const RETRY_MS = 50
/** One value of so many is committed at once, with all before it: so some come again after a kill. */
const COMMITTED = 3
const MICROSECONDS = 1_000

export class AlertConsumer {
  isOver = false
  /** In the order in which they came first. */
  readonly reported: Reported[] = []
  /** Values that came again because they were not committed. */
  again = 0
  readonly #user: User
  readonly #random: Random
  readonly #texts = new Map<number, string>()
  /** Everything up to this one is committed. */
  #committed = 0
  #last = 0
  /** What must not be. */
  problem: string | undefined

  constructor(user: User, random: Random) {
    this.#user = user
    this.#random = random
  }

  /** Binds the metric, of a server below if that is named; to be done before anything is killed. */
  async begin(listener: Listener, producer = ''): Promise<void> {
    const list = producer === '' ? args() : args(['producer', type.string, str(producer)])
    const link = await Link.open(listener, this.#user)
    const channel = await link?.ok((seq) => command.defChannel(seq, '', args(['name', type.string, str(CHANNEL)])))
    await link?.ok((seq) => command.setChannel(seq, channel ?? 0))
    const id = await link?.ok((seq) => command.collect(seq, 'alert', list))
    const bound = await link?.ok((seq) => command.subscribe(seq, id ?? 0, channel ?? 0))
    if (bound === undefined) throw new Error('the consumer could not bind the metric `alert`')
    link?.close()
  }

  /** Takes what comes until it is over. `listener`: where, at the moment. */
  async run(listener: () => Listener): Promise<void> {
    while (!this.isOver) {
      const link = await Link.open(listener(), this.#user).catch(() => undefined)
      if (link !== undefined) await this.#take(link)
      await setTimeout(RETRY_MS)
    }
  }

  async #take(link: Link): Promise<void> {
    link.onMessage = (message) => this.#came(link, message)
    // The one before may still be there: then it is taken over with force of a later try.
    const channel = await link.ask((seq) => command.defChannel(seq, '', args(['name', type.string, str(CHANNEL)])))
    if (channel?.status === 0) await link.ask((seq) => command.setChannel(seq, channel.result))
    const over = setInterval(() => this.isOver && link.close(), RETRY_MS)
    await link.ended
    clearInterval(over)
    link.close()
  }

  #came(link: Link, message: Message): void {
    if (message.kind === 'gap' && message.count > 0) this.problem ??= `a GAP reports ${message.count} lost values`
    if (message.kind !== 'value' || message.transaction === 0) return
    const { transaction } = message
    const { alertname, n, value } = decoded(message)
    const text = JSON.stringify([alertname, n, value])
    const before = this.#texts.get(transaction)
    if (transaction <= this.#committed) this.problem ??= `the value ${transaction} came although it was committed`
    if (before !== undefined) {
      this.again++
      if (before !== text) this.problem ??= `the value ${transaction} came again as another one: ${before} ${text}`
    } else {
      if (transaction < this.#last) this.problem ??= `the value ${transaction} came after ${this.#last}`
      this.#last = transaction
      this.#texts.set(transaction, text)
      this.reported.push(reportedOf(`${alertname} ${n}`, value))
    }
    if (this.#random.below(COMMITTED) === 0 || this.isCommitting)
      link.commit(transaction, true, ({ status }) => {
        if (status === 0) this.#committed = Math.max(this.#committed, transaction)
      })
  }

  /** Everything that comes is committed. */
  isCommitting = false
}

function reportedOf(alert: string, { state, since, fired, ended, group, sequence }: Json): Reported {
  const ms = (microseconds: unknown): number => Number(microseconds) / MICROSECONDS
  const times = { sinceMs: ms(since), firedMs: ms(fired), endedMs: ms(ended) }
  return { alert, state, ...times, group: String(group), sequence: Number(sequence) }
}
