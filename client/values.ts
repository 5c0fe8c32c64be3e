/** Values of the protocol as JavaScript has them, and arguments of metrics and controls from JavaScript values. */
import type { Argument, ArgumentList } from '../protocol/monitor/arguments.ts'
import { BasicType, openLabelFamilies } from '../protocol/monitor/constants.ts'
import { compareLabels, isKnownLabel } from '../protocol/monitor/labels.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { Field, Value } from '../protocol/monitor/value.ts'

export { isKnownLabel }

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

/** What samples refer to: a channel, in one generation of its ids. */
export interface SampleOrigin {
  readonly generation: string
  commit(transaction: number): void
}

/** The labels of a series [MON 9 Patterns]. */
export interface SampleLabels {
  readonly host?: string
  readonly cpu?: string
  readonly mount?: string
  readonly device?: string
  readonly interface?: string
  readonly agent?: string
  readonly source?: string
  readonly index?: string
  readonly broker?: string
  readonly object?: string
  readonly [label: string]: string | undefined
}

/** A value as it reaches its handler, or as the answer to a command. */
export class Sample {
  readonly kind = 'value'
  /** The metric as it was followed or queried, perhaps a pattern. Empty if this program does not follow the metric. */
  readonly name: string
  /** The id of the metric on its channel. */
  readonly id: number
  /** The id that COMMIT takes; 0 for a value that the producer does not keep. */
  readonly transaction: number
  /** Microseconds since 1970. */
  readonly time: number
  /** The value with its type, as it came: with labels it is a REC of these and of `value`. VOID if there is no measurement. */
  readonly value: Value

  readonly #origin: SampleOrigin | undefined

  constructor(name: string, { metric, transaction, time, value }: ValueMessage, origin?: SampleOrigin) {
    this.#origin = origin
    this.name = name
    this.id = metric
    this.transaction = transaction
    this.time = time
    this.value = value
  }

  /** The name of the metric, also where a pattern was followed. */
  get metric(): string {
    const named = labelledOf(this.value, this.name)?.labels.find(({ name }) => name === 'name')
    return named === undefined ? this.name : String(plainOf(named))
  }

  /** The labels that name and arguments left open, such as `host`; they tell the series of a metric apart. */
  get labels(): SampleLabels {
    const { labels = [] } = labelledOf(this.value, this.name) ?? {}
    const others = labels.filter(({ name }) => name !== 'name')
    return Object.fromEntries(others.map((label) => [label.name, String(plainOf(label))]))
  }

  /** What was measured, without labels, as JavaScript has it. Converted on each access. */
  get plain(): Plain {
    return plainOf(this.#measured)
  }

  /** What was measured, if it is a number. Integers beyond 2^53 are rounded; `plain` has them exactly. */
  get number(): number | undefined {
    const { value } = this.#measured
    return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
  }

  /** What was measured, if it is a text. */
  get text(): string | undefined {
    const { plain } = this
    return typeof plain === 'string' ? plain : undefined
  }

  /** The values of a list one by one, such as those of the answer to a pattern, each with its own time; else the value itself. */
  get elements(): readonly Sample[] {
    const records = recordsOf(this.value)
    if (records === undefined) return [this]
    const shown = this.isCut ? records.slice(0, -1) : records
    return shown.map((record) => {
      const value = { type: BasicType.REC, value: record }
      const { time = this.time } = labelledOf(value, this.name) ?? {}
      return new Sample(this.name, { ...this, metric: this.id, time, value }, this.#origin)
    })
  }

  /** Whether the list was longer than a message may be: the rest is missing. */
  get isCut(): boolean {
    return recordsOf(this.value)?.at(-1)?.[0]?.name === 'more'
  }

  /** Where it is in the history of the producer: what `after` takes. */
  get place(): Place {
    return { generation: this.#origin?.generation ?? '', transaction: this.transaction }
  }

  /**
   * Commits this value, without a wait: the COMMIT is sent while the program goes on, in one with those of other values where that is
   * possible, and again on the next connection if this one is lost before it is stored. `close` waits for it. Does nothing
   * for a value that the producer does not keep, is committed already, or belongs to a channel that was left.
   */
  commit(): void {
    if (this.transaction !== 0) this.#origin?.commit(this.transaction)
  }

  get #measured(): Value {
    return labelledOf(this.value, this.name)?.measured ?? this.value
  }
}

interface Labelled {
  readonly labels: readonly Field[]
  /** The own time of an element, microseconds since 1970. */
  readonly time: number | undefined
  readonly measured: Value
}

/**
 * The parts of a REC that stands for a series [MON 9 Patterns]: its labels, in an answer its own time, and last `value`.
 * Undefined for other values. `asked`: the name or pattern that was followed or queried.
 */
function labelledOf(value: Value, asked: string): Labelled | undefined {
  if (value.type !== BasicType.REC) return undefined
  const measured = value.value.at(-1)
  if (measured?.name !== 'value') return undefined
  const before = value.value.slice(0, -1)
  const last = before.at(-1)
  const time = last?.name === 'time' && last.type === BasicType.UINT64 ? Number(last.value) : undefined
  const labels = time === undefined ? before : before.slice(0, -1)
  return labels.length > 0 && areLabels(labels, asked) ? { labels, time, measured } : undefined
}

/**
 * Whether the fields are texts in the order of labels. Other records may end with `value`, too: labels of any name come after one
 * with a place of its own, as in every answer to a pattern, or where `asked` is of a family whose labels are open.
 */
function areLabels(fields: readonly Field[], asked: string): boolean {
  const [first] = fields as [Field, ...Field[]]
  const isOpen = isKnownLabel(first.name) || openLabelFamilies.some((family) => asked.startsWith(family))
  return fields.every(({ name, type }, index) => {
    if (type !== BasicType.STRING || !(isOpen || isKnownLabel(name))) return false
    return index === 0 || compareLabels(name, (fields[index - 1] as Field).name) > 0
  })
}

/** Undefined if the value is not a list of records. */
export function recordsOf({ type, value }: Value): readonly (readonly Field[])[] | undefined {
  if (type !== BasicType.ARRAY || value.element !== BasicType.REC) return undefined
  return value.items as readonly (readonly Field[])[]
}

export type ArgumentValue = string | number | bigint | boolean | Uint8Array
export type Arguments = Readonly<Record<string, ArgumentValue>>

const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n
const MAX_UINT64 = 2n ** 64n - 1n

/**
 * The producer converts the arguments to their declared types if nothing is lost by that. Throws TypeError for a value of another
 * type, as programs in JavaScript may pass it, and RangeError for an integer of more than 64 bits.
 */
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
      if (value < MIN_INT64 || value > MAX_UINT64) {
        throw new RangeError(`argument \`${name}\`: ${value} does not fit into 64 bits`)
      }
      return { name, type: value > MAX_INT64 ? BasicType.UINT64 : BasicType.INT64, value }
    case 'number':
      // An integer is accepted for a parameter of type DOUBLE, but not the other way round [MON 2].
      return Number.isSafeInteger(value)
        ? { name, type: BasicType.INT64, value: BigInt(value) }
        : { name, type: BasicType.DOUBLE, value }
    default:
      if (!isBytes(value)) {
        const type = value === null ? 'null' : typeof value
        throw new TypeError(
          `argument \`${name}\`: ${type} is not possible, only string, number, bigint, boolean or Uint8Array`,
        )
      }
      return { name, type: BasicType.OPAQUE, value }
  }
}

/** Not by `instanceof`: bytes of another realm, such as the sandbox of a test runner, are bytes. */
function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]'
}
