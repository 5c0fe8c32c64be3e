/**
 * The requests that an agent has not answered. A response has a kind but no id: it belongs to the oldest request of that
 * kind. A late response is still waited for, because otherwise all later ones would be assigned to the wrong requests.
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

/** An agent answers within milliseconds; an agent of the other dialect never does. */
export const LATE_MS = 10_000

export class MonoRequests {
  readonly #asked: { readonly [K in MonoRequestKind]: Request<K>[] } = { list: [], add: [], remove: [] }

  get count(): number {
    return this.#all().length
  }

  /** Whether a request was not answered in time. */
  get isLate(): boolean {
    return this.#all().some(({ isLate }) => isLate)
  }

  /** Calls `answered` with the response, or with undefined if the connection ends before. */
  ask<K extends MonoRequestKind>(
    kind: K,
    nowMs: number,
    answered: (answer: MonoResponses[K] | undefined) => void,
  ): void {
    this.#asked[kind].push({ askedMs: nowMs, answered, isLate: false })
  }

  /** A response of this kind begins. Throws ProtocolError if there is no request of this kind. */
  expect(kind: MonoRequestKind): void {
    if (this.#asked[kind].length > 0) return
    throw new ProtocolError('UNKNOWN_MESSAGE', `a response to ${kind} without a request`)
  }

  /** Completes the oldest request of a kind. Throws ProtocolError like `expect`. */
  answer<K extends MonoRequestKind>(kind: K, answer: MonoResponses[K]): void {
    this.expect(kind)
    this.#asked[kind].shift()?.answered(answer)
  }

  /** Completes all requests with undefined, after the connection has ended. */
  end(): void {
    for (const { answered } of this.#all()) answered(undefined)
  }

  /** Returns how many requests became late since the last call. */
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
