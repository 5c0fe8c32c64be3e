/** Calls of methods that are under way, over the requests of a console. */
import {
  type ClassKey,
  type ObjectId,
  QmfStatus,
  type QmfValue,
  type Schema,
  type SchemaMethod,
} from '../../../protocol/qmf/types.ts'
import { agentOf } from './objects.ts'
import type { Requests } from './requests.ts'
import type { CallResult } from './told.ts'

export interface Call {
  readonly id: ObjectId
  readonly key: ClassKey
  readonly method: string
  /** Those with direction I and IO. */
  readonly arguments: readonly QmfValue[]
  readonly timeoutMs: number
}

export class Calls {
  readonly #requests: Requests
  readonly #most: number
  #count = 0

  constructor(requests: Requests, most: number) {
    this.#requests = requests
    this.#most = most
  }

  /** Sent by the next flush of the requests. Never rejects; what does not fit the method is not sent at all. */
  call({ id, key, method, arguments: values, timeoutMs }: Call): Promise<CallResult> {
    if (this.#count >= this.#most) return Promise.resolve('full')
    return new Promise((resolve) => {
      let reply: CallResult = 'unreadable'
      const refusal = this.#requests.ask({
        to: `agent.${agentOf(id)}`,
        isUrgent: true,
        timeoutMs,
        message: (sequence) => ({ op: 'M', sequence, id, key, method, arguments: values }),
        answered: (answer) => {
          if (answer.op === 'm') reply = { status: answer.status, text: answer.text, arguments: answer.arguments }
        },
        ended: (ending) => {
          this.#count--
          resolve(ending === 'late' ? 'timeout' : ending === 'ended' ? undefined : reply)
        },
      })
      if (refusal === undefined) this.#count++
      else resolve({ status: QmfStatus.INVALID_PARAMETER, text: refusal, arguments: [] })
    })
  }

  /** What the request of that sequence called. */
  method(sequence: number, schemaOf: (key: ClassKey) => Schema | undefined): SchemaMethod | undefined {
    const asked = this.#requests.asked(sequence)
    if (asked?.op !== 'M') return undefined
    const schema = schemaOf(asked.key)
    return schema?.kind === 'table' ? schema.methods.find(({ name }) => name === asked.method) : undefined
  }
}
