/**
 * A map of a message, read by meaning: senders differ in the type codes of their numbers and texts. The text of a broker
 * is binary (vbin16), which a field table reads as text if it is UTF-8 and as bytes otherwise.
 */
import { decodeLatin1 } from '../../amqp/bytes.ts'
import type { FieldTable, FieldValue } from '../../amqp/field-table.ts'
import { ProtocolError } from '../../errors.ts'

export class MapItem {
  readonly #table: FieldTable
  readonly #at: number

  /** `at`: the position in the body where it stands, or what it stands in; errors name it. */
  constructor(table: FieldTable, at: number) {
    this.#table = table
    this.#at = at
  }

  has(key: string): boolean {
    return this.#table.has(key)
  }

  /** Returns a text of 1 to `maxLength` UTF-16 units. Throws ProtocolError: BAD_NAME, TOO_LONG. */
  name(key: string, maxLength: number): string {
    const text = this.text(key, maxLength)
    if (text !== undefined && text !== '') return text
    throw this.wrong('BAD_NAME', `"${key}" is not a name`)
  }

  /** Returns undefined if it is no text. Throws ProtocolError (TOO_LONG). */
  text(key: string, maxLength: number): string | undefined {
    const text = textOf(this.#table.get(key))
    if (text === undefined || text.length <= maxLength) return text
    throw this.wrong('TOO_LONG', `"${key}" has ${text.length} characters; the limit is ${maxLength}`)
  }

  /** Throws ProtocolError (BAD_NUMBER) if it is no integer. */
  integer(key: string): bigint {
    const integer = this.optionalInteger(key)
    if (integer !== undefined) return integer
    throw this.wrong('BAD_NUMBER', `"${key}" is not an integer`)
  }

  /** Returns undefined if it is no integer. */
  optionalInteger(key: string): bigint | undefined {
    return integerOf(this.#table.get(key))
  }

  flag(key: string): boolean {
    return this.#table.get(key) === true
  }

  /** Throws ProtocolError (BAD_TYPE) if it is no map. */
  map(key: string): FieldTable {
    const value = this.#table.get(key)
    if (value instanceof Map) return value
    throw this.wrong('BAD_TYPE', `"${key}" is not a map`)
  }

  /** As `map`, for errors at the same position. */
  item(key: string): MapItem {
    return new MapItem(this.map(key), this.#at)
  }

  /** Returns the maps of a list; none if it is absent. Throws ProtocolError (BAD_TYPE) if it is something else. */
  items(key: string): readonly MapItem[] {
    const value = this.#table.get(key) ?? []
    if (!Array.isArray(value)) throw this.wrong('BAD_TYPE', `"${key}" is not a list`)
    return value.map((one: FieldValue) => {
      if (one instanceof Map) return new MapItem(one, this.#at)
      throw this.wrong('BAD_TYPE', `"${key}" holds something other than maps`)
    })
  }

  wrong(code: ProtocolError['code'], message: string): ProtocolError {
    return new ProtocolError(code, message, this.#at)
  }
}

/** Returns undefined if the value is no text; bytes that are not UTF-8 are read as Latin-1. */
export function textOf(value: FieldValue | undefined): string | undefined {
  return value instanceof Uint8Array ? decodeLatin1(value) : typeof value === 'string' ? value : undefined
}

/** Returns undefined if the value is no integer. */
export function integerOf(value: FieldValue | undefined): bigint | undefined {
  if (typeof value === 'bigint') return value
  return Number.isInteger(value) ? BigInt(value as number) : undefined
}
