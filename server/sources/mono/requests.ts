/**
 * What an agent was asked and has not answered. Responses say of which kind they are and nothing else: they belong to the
 * requests of that kind in order. One that is late is waited for all the same, or all later ones would be mistaken.
 */

import { ProtocolError } from '../../../protocol/errors.ts'
import type { MonoHeader, MonoName, MonoStatus } from '../../../protocol/mono/constants.ts'

export interface MonoResponses {
  readonly list: readonly MonoName[]
  readonly add: { readonly status: MonoStatus; readonly header: MonoHeader | undefined }
  readonly remove: { readonly status: MonoStatus }
}
export type MonoRequestKind = keyof MonoResponses

interface Request<K extends MonoRequestKind> {
  readonly askedMs: number
  readonly answered: (answer: MonoResponses[K] | undefined) => void
  isLate: boolean
}

/** An agent answers within milliseconds; one that speaks the other dialect never does. */
export const LATE_MS = 10_000

export class MonoRequests {
  readonly #asked: { readonly [K in MonoRequestKind]: Request<K>[] } = { list: [], add: [], remove: [] }

  get count(): number {
    return this.#all().length
  }

  /** Whether something was not answered in time. */
  get isLate(): boolean {
    return this.#all().some(({ isLate }) => isLate)
  }

  /** `answered` gets undefined if the connection ends before. */
  ask<K extends MonoRequestKind>(
    kind: K,
    nowMs: number,
    answered: (answer: MonoResponses[K] | undefined) => void,
  ): void {
    this.#asked[kind].push({ askedMs: nowMs, answered, isLate: false })
  }

  /** The response to the first of a kind begins. Throws ProtocolError if nothing of the kind was asked. */
  expect(kind: MonoRequestKind): void {
    if (this.#asked[kind].length > 0) return
    throw new ProtocolError('UNKNOWN_MESSAGE', `a response to ${kind}, which was not asked`)
  }

  /** The same, when all of it is there. */
  answer<K extends MonoRequestKind>(kind: K, answer: MonoResponses[K]): void {
    this.expect(kind)
    this.#asked[kind].shift()?.answered(answer)
  }

  /** The connection is over: nothing is answered any more. */
  end(): void {
    for (const { answered } of this.#all()) answered(undefined)
  }

  /** Gives how many became late since it was asked last. */
  late(nowMs: number): number {
    const late = this.#all().filter(({ askedMs, isLate }) => !isLate && nowMs - askedMs > LATE_MS)
    for (const request of late) request.isLate = true
    return late.length
  }

  #all(): { readonly askedMs: number; readonly answered: (answer: undefined) => void; isLate: boolean }[] {
    const { list, add, remove } = this.#asked
    return [...list, ...add, ...remove]
  }
}
