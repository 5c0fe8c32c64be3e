/** The judge of the log, read with a client of NATS and not with the product's own: in each epoch one node has appended, and no other. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import type { LogOptions } from '../../../storage/replicated/options.ts'
import type { Totals } from '../../rig/rig.ts'

/** The headers of a message of the log. */
export interface LogHeaders {
  readonly kind: string
  readonly epoch: number
  readonly node: string
}

const STREAM = /^CIN_/
/** Requests under way. Messages are read one by one, from the server that leads the stream: a consumer may be on one that has fewer. */
const AHEAD = 64
/** How long a nats-server may take to answer: one that was put back may elect first. */
const ANSWER_MS = 30_000

/** Messages that are shown where the log is wrong. */
const SHOWN = 4

/** Reads the whole log. Throws if it is not as it has to be. */
export async function judgeLog({ servers, tls }: Pick<LogOptions, 'servers' | 'tls'>): Promise<Totals> {
  // Whose certificate it is was checked by the nodes.
  const encryption = tls?.ca === undefined ? {} : { tls: { caFile: tls.ca, checkServerIdentity: () => undefined } }
  const connection = await connect({ servers: [...servers], ...encryption })
  try {
    const manager = await jetstreamManager(connection, { timeout: ANSWER_MS })
    const judge = new EpochJudge()
    const streams: string[] = []
    let where = ''
    const before: string[] = []
    for await (const name of manager.streams.names()) if (STREAM.test(name)) streams.push(name)
    const numberOf = (stream: string): number => Number(stream.slice(stream.lastIndexOf('_') + 1))
    for (const stream of streams.sort((a, b) => numberOf(a) - numberOf(b))) {
      const { state } = await manager.streams.info(stream)
      for (let from = state.first_seq; from <= state.last_seq; from += AHEAD) {
        const count = Math.min(AHEAD, state.last_seq - from + 1)
        const read = Array.from({ length: count }, (_, index) =>
          manager.streams.getMessage(stream, { seq: from + index }),
        )
        for (const [index, message] of (await Promise.all(read)).entries()) {
          const header = (name: string): string => message?.header.get(name) ?? ''
          const taken = { kind: header('Cin-Kind'), epoch: Number(header('Cin-Epoch')), node: header('Cin-Node') }
          judge.take(taken)
          before.push(`${taken.kind || 'nothing'} of ${taken.node || 'nobody'} in epoch ${taken.epoch}`)
          if (judge.faults.length > 0)
            where ||= `message ${from + index} of ${state.last_seq} in ${stream}, the last ${SHOWN} being ${before.slice(-SHOWN).join(', ')}`
        }
      }
    }
    if (judge.faults.length > 0) throw new Error(`the log, from ${where} on: ${judge.faults.slice(0, 5).join('; ')}`)
    return { logs: streams.length, epochs: judge.epochs, messages: judge.messages }
  } finally {
    await connection.close()
  }
}

export class EpochJudge {
  readonly faults: string[] = []
  readonly #leaders = new Map<number, string>()
  #last = 0
  messages = 0

  get epochs(): number {
    return this.#leaders.size
  }

  /** The next message, in the order of the log. */
  take({ kind, epoch, node }: LogHeaders): void {
    this.messages++
    const leader = this.#leaders.get(epoch)
    if (kind === 'epoch') {
      if (leader !== undefined && leader !== node) this.faults.push(`${leader} and ${node} lead in epoch ${epoch}`)
      if (epoch < this.#last) this.faults.push(`epoch ${epoch} of ${node} begins after epoch ${this.#last}`)
      this.#leaders.set(epoch, node)
      this.#last = Math.max(epoch, this.#last)
    } else if (leader !== node)
      this.faults.push(`${node} appends in epoch ${epoch}, in which ${leader ?? 'nobody'} leads`)
    else if (epoch < this.#last)
      this.faults.push(`${node} appends in epoch ${epoch} after epoch ${this.#last} has begun`)
  }
}
