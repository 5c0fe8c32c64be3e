/** The consumer of the uppermost server: takes and commits what comes, over all lives of that server. */
import { setTimeout } from 'node:timers/promises'
import { SERIES } from '../../rig/promised-feed.ts'
import { command, str, type } from '../../support/bytes.ts'
import type { Received } from '../../support/raw-peer.ts'
import { decoded } from '../../support/records.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import type { Came } from './balance.ts'
import { CONSUMER } from './servers.ts'

const RETRY_MS = 50

type Arrival = Extract<Received, { kind: 'value' | 'gap' }>

export class Arrivals {
  isOver = false
  /** Values that came under more than one transaction id, and those that came before an older one of their series. */
  repeated = 0
  disordered = 0
  /** Values under different transaction ids. */
  values = 0
  /** By the reason of their GAPs: how many there were, and how many values they reported. */
  readonly gaps = new Map<number, { gaps: number; values: number }>()
  readonly #numbers = new Set<number>()
  /** The last number of each series. */
  readonly #last = new Map<number, number>()
  #transaction = 0

  has(number: number): boolean {
    return this.#numbers.has(number)
  }

  /** What came, for the judge, where these were answered with a yes. */
  cameOf(promised: ReadonlySet<number>): Came {
    const unanswered = [...this.#numbers].filter((number) => !promised.has(number)).length
    return { values: this.values, unanswered, gaps: this.gaps }
  }

  /** Takes what comes until it is over. To be started once. */
  async run(server: ServerProcess): Promise<void> {
    while (!this.isOver) {
      try {
        await this.#connection(server)
      } catch {
        await setTimeout(RETRY_MS)
      }
    }
  }

  async #connection(server: ServerProcess): Promise<void> {
    const seat = await server.seat()
    const channel = await seat.defChannel(['name', type.string, str(CONSUMER)])
    seat.send((seq) => command.setChannel(seq, channel))
    for (;;) {
      const message = await seat.peer.next()
      if (message.kind === 'closed') return
      if (message.kind !== 'value' && message.kind !== 'gap') continue
      this.take(message)
      if (message.transaction > 0) seat.send((seq) => command.commit(seq, message.transaction))
    }
  }

  /** A value that was sent again has the transaction id that it had. */
  take(message: Arrival): void {
    if (message.transaction <= this.#transaction) return
    this.#transaction = message.transaction
    if (message.kind === 'gap') {
      const { gaps, values } = this.gaps.get(message.reason) ?? { gaps: 0, values: 0 }
      this.gaps.set(message.reason, { gaps: gaps + 1, values: values + message.count })
      return
    }
    this.values++
    const { value } = decoded(message) as { value: number }
    if (this.#numbers.has(value)) this.repeated++
    this.#numbers.add(value)
    const series = value % SERIES
    if (value < (this.#last.get(series) ?? -1)) this.disordered++
    this.#last.set(series, value)
  }
}
