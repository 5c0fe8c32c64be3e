/**
 * Schemas that outlive a connection, so that a broker is asked only for those that it did not have before. One for each
 * broker: a hash is only what a broker says it is, and one that lies must not spoil what others send.
 */
import type { ClassKey, Schema } from '../../../protocol/qmf/types.ts'

/** Names in QMF may hold any character but are never longer than 255 bytes; NUL keeps them apart. */
export function keyText({ packageName, className, hash }: ClassKey): string {
  return `${packageName}\0${className}\0${hash}`
}

export class SchemaCache {
  readonly #most: number
  /** The oldest first. */
  readonly #schemas = new Map<string, Schema>()

  constructor(most = 1_000) {
    this.#most = most
  }

  get(key: ClassKey): Schema | undefined {
    return this.#schemas.get(keyText(key))
  }

  add(schema: Schema): void {
    this.#schemas.set(keyText(schema.key), schema)
    if (this.#schemas.size <= this.#most) return
    for (const oldest of this.#schemas.keys()) {
      this.#schemas.delete(oldest)
      return
    }
  }
}
