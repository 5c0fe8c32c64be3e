/**
 * The stream's index list: it applies to every pair until an index operation changes it. A token's own prefix
 * overwrites the first positions and never shifts the others.
 */
import { NO_INDEX } from './token.ts'

export class IndexList {
  readonly #values: number[] = []
  readonly #merged: number[] = []

  get depth(): number {
    return this.#values.length
  }

  clear(): void {
    this.#values.length = 0
  }

  push(value: number): void {
    this.#values.push(value)
  }

  /** `fromEnd` 1 is the last element, 2 the one before it. The caller has looked at the depth. */
  replace(fromEnd: 1 | 2, value: number): void {
    this.#values[this.#values.length - fromEnd] = value
  }

  /** The list as it is now, to keep. */
  copy(): readonly number[] {
    return this.#values.length === 0 ? NO_INDEX : Object.freeze(this.#values.slice())
  }

  /** The list under `prefix`: valid until the next call or change. */
  under(prefix: readonly number[]): readonly number[] {
    const values = this.#values
    if (values.length <= prefix.length) return prefix
    if (prefix.length === 0) return values
    const merged = this.#merged
    merged.length = 0
    for (const value of prefix) merged.push(value)
    for (let i = prefix.length; i < values.length; i++) merged.push(values[i] as number)
    return merged
  }
}
