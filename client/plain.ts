/**
 * Values as plain JavaScript: a REC is an object, an ARRAY an array, VOID is null, OPAQUE is bytes. Integers of 64 bits are
 * numbers as far as those are exact, bigints beyond. Text that is no UTF-8 shows U+FFFD; `value` itself has its bytes.
 */
import { BasicType } from '../protocol/monitor/constants.ts'
import type { Value } from '../protocol/monitor/value.ts'

export type Plain = number | bigint | boolean | string | null | Uint8Array | readonly Plain[] | PlainRecord
export interface PlainRecord {
  readonly [name: string]: Plain
}

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
