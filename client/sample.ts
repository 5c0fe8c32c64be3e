/** A value as it reaches its handler. */
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { Value } from '../protocol/monitor/value.ts'
import { type Plain, plainOf } from './plain.ts'

export class Sample {
  readonly kind = 'value'
  /** The metric as it was followed: a pattern's values have their own names inside. Empty where this run follows nothing of that id. */
  readonly name: string
  /** The id of the metric. */
  readonly metric: number
  /** What COMMIT takes; 0 for a value that is not kept. */
  readonly transaction: number
  /** Microseconds since 1970. */
  readonly time: number
  /** With its type; VOID where there is no measurement. */
  readonly value: Value

  constructor(name: string, { metric, transaction, time, value }: ValueMessage) {
    this.name = name
    this.metric = metric
    this.transaction = transaction
    this.time = time
    this.value = value
  }

  /** The value as JavaScript has it; made anew each time. */
  get plain(): Plain {
    return plainOf(this.value)
  }
}
