/** Values of the protocol as JavaScript has them, and arguments of metrics and controls from JavaScript values. */
import type { Argument, ArgumentList } from '../protocol/monitor/arguments.ts'
import { BasicType } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { Value } from '../protocol/monitor/value.ts'

export type Plain = number | bigint | boolean | string | null | Uint8Array | readonly Plain[] | PlainRecord
export interface PlainRecord {
  readonly [name: string]: Plain
}

/**
 * A REC becomes an object, an ARRAY an array, VOID null, and OPAQUE bytes. 64-bit integers become numbers as long as those
 * are exact, and bigints beyond that. Text that is not UTF-8 is shown with U+FFFD; `value` itself has its bytes.
 */
export function plainOf(value: Value): Plain {
  switch (value.type) {
    case BasicType.INT64:
    case BasicType.UINT64: {
      const number = Number(value.value)
      return Number.isSafeInteger(number) ? number : value.value
    }
    case BasicType.STRING:
      return typeof value.value === 'string' ? value.value : new TextDecoder().decode(value.value)
    case BasicType.REC:
      return Object.fromEntries(value.value.map((field) => [field.name, plainOf(field)]))
    case BasicType.ARRAY: {
      const { element, items } = value.value
      return items.map((item) => plainOf({ type: element, value: item } as Value))
    }
    default:
      return value.value
  }
}

/** A place in the history of a producer: nothing up to it is handed out again. In another generation it means nothing. */
export interface Place {
  /** As `consumer.generation` named it. */
  readonly generation: string
  /** The highest transaction id that was handled. */
  readonly transaction: number
}

/** A value as it reaches its handler. */
export class Sample {
  readonly kind = 'value'
  /**
   * The metric as it was followed: the values of a pattern have their own names inside. Empty if this program does not
   * follow the metric.
   */
  readonly name: string
  /** The id of the metric. */
  readonly metric: number
  /** The id that COMMIT takes; 0 for a value that the producer does not keep. */
  readonly transaction: number
  /** Microseconds since 1970. */
  readonly time: number
  /** The value with its type; VOID if there is no measurement. */
  readonly value: Value

  readonly #generation: string

  constructor(name: string, { metric, transaction, time, value }: ValueMessage, generation = '') {
    this.#generation = generation
    this.name = name
    this.metric = metric
    this.transaction = transaction
    this.time = time
    this.value = value
  }

  /** Where it is in the history of the producer: what `after` takes. */
  get place(): Place {
    return { generation: this.#generation, transaction: this.transaction }
  }

  /** The value as JavaScript has it, converted on each access. */
  get plain(): Plain {
    return plainOf(this.value)
  }
}

export type ArgumentValue = string | number | bigint | boolean | Uint8Array
export type Arguments = Readonly<Record<string, ArgumentValue>>

const MAX_INT64 = 2n ** 63n - 1n

/** The producer converts the arguments to their declared types if nothing is lost by that. */
export function toArgumentList(values: Arguments): ArgumentList {
  return Object.entries(values).map(([name, value]) => toArgument(name, value))
}

function toArgument(name: string, value: ArgumentValue): Argument {
  switch (typeof value) {
    case 'string':
      return { name, type: BasicType.STRING, value }
    case 'boolean':
      return { name, type: BasicType.BOOLEAN, value }
    case 'bigint':
      return { name, type: value > MAX_INT64 ? BasicType.UINT64 : BasicType.INT64, value }
    case 'number':
      // An integer is accepted for a parameter of type DOUBLE, but not the other way round [MON 2].
      return Number.isSafeInteger(value)
        ? { name, type: BasicType.INT64, value: BigInt(value) }
        : { name, type: BasicType.DOUBLE, value }
    default:
      return { name, type: BasicType.OPAQUE, value }
  }
}
