/** Channels as `producer.channels` shows them: one by its id or name, or all that the user may see. */
import { BasicType, type Consumer, type Field } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { toLedger } from './ledger.ts'
import { type AnswerRecord, fieldNumber, queryAll } from './records.ts'

export interface ChannelAnswer {
  readonly records: readonly AnswerRecord[]
  /** The time of the answer by the producer's clock, microseconds since 1970. */
  readonly now: number
}

/** Rejects with Failure if the named channel does not exist. */
export async function queryChannels(consumer: Consumer, channel: number | string | undefined): Promise<ChannelAnswer> {
  const answer = await findChannels(consumer, channel)
  if (channel === undefined || answer.records.length > 0) return answer
  throw missingChannel(channel)
}

/** The same, and no records if there is none. */
export async function findChannels(consumer: Consumer, channel: number | string | undefined): Promise<ChannelAnswer> {
  let now = 0
  const timed: Pick<Consumer, 'query'> = {
    async query(...parameters) {
      const answer = await consumer.query(...parameters)
      now = answer.time
      return answer
    },
  }
  const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'channel') })
  const args = channel === undefined ? {} : { channel: String(channel) }
  return { records: await queryAll(timed, 'producer.channels', args, next), now }
}

/** Adds the bindings that a ledger leaves out because the channel has very many. */
export async function withAllBindings(consumer: Consumer, records: readonly AnswerRecord[]): Promise<AnswerRecord[]> {
  const complete: AnswerRecord[] = []
  for (const record of records) {
    const { channel, bindings, bound } = toLedger(record)
    if (bound <= bindings.length) {
      complete.push(record)
      continue
    }
    const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'metric') })
    const items = await queryAll(consumer, 'producer.bindings', { channel: String(channel) }, next)
    const all: Field = { name: 'bindings', type: BasicType.ARRAY, value: { element: BasicType.REC, items } }
    complete.push(record.map((field) => (field.name === 'bindings' ? all : field)))
  }
  return complete
}

/** The failure of commands that name a channel which does not exist. */
export function missingChannel(channel: number | string, options?: ErrorOptions): Failure {
  const advice = '`cinnabar channels` lists your channels; a channel that nobody uses is deleted after some days'
  return new Failure(ExitCode.FAILED, `you have no channel ${channel}: ${advice}`, options)
}
