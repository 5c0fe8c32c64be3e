/** Tables of controls and of commands, in both directions: uint8 class | uint8 method, and then the fields. */
import type { Cursor } from './cursor.ts'
import { type Fields, type Layout, readFields, writeFields } from './fields.ts'
import type { Writer } from './writer.ts'

/** `code`: the class in the upper byte. */
export interface Method {
  readonly code: number
  readonly fields: Layout
}
export type Methods = Readonly<Record<string, Method>>

/** One of the table, with what it holds. */
export type MethodOf<T extends Methods> = {
  [N in keyof T]: { readonly name: N } & Fields<T[N]['fields']>
}[keyof T]

/** One that is in no table. Nothing but its code was read. */
export interface UnknownMethod {
  readonly name: 'unknown'
  readonly code: number
}

export class MethodTable<T extends Methods> {
  readonly #methods: T
  readonly #names: ReadonlyMap<number, string>

  constructor(methods: T) {
    this.#methods = methods
    this.#names = new Map(Object.entries(methods).map(([name, { code }]) => [code, name]))
  }

  nameOf(code: number): string | undefined {
    return this.#names.get(code)
  }

  codeOf(method: MethodOf<T>): number {
    return this.#methods[method.name]!.code
  }

  /** Reads the fields, which stand behind the code. */
  read(code: number, cursor: Cursor): MethodOf<T> | UnknownMethod {
    const name = this.nameOf(code)
    if (name === undefined) return { name: 'unknown', code }
    const { fields } = this.#methods[name]!
    return { name, ...readFields(cursor, fields) } as MethodOf<T>
  }

  /** Writes the fields. */
  write(writer: Writer, method: MethodOf<T>): void {
    writeFields(writer, this.#methods[method.name]!.fields, method as Fields<Layout>)
  }
}
