/** The events of a consumer: what it reports beside its values. */
import { type GapReasonName, gapReasonName, type NoticeName, noticeName } from '../protocol/monitor/constants.ts'
import type { Gap, Notice } from '../protocol/monitor/message.ts'
import type { ConnectionError } from './errors.ts'
import type { Restored } from './mailbox.ts'

/** Another attempt to connect is going to be made. */
export interface RetryEvent {
  /** Its number: 1 for the first after the connection was lost, or after the first attempt has failed. */
  readonly attempt: number
  /** How long it is until then. */
  readonly delayMs: number
  /** Why there is no connection: what ended the last one, or the last attempt. */
  readonly error: Error
}

/** The events of a consumer beside its values. */
export interface ConsumerEvents {
  /** Values were lost. The event comes in its place between the values. */
  readonly gap: GapEvent
  readonly notice: NoticeEvent
  /**
   * The producer was restored from a backup, or another one has taken its place: what was handled before is not known by its
   * transaction id any more, and some of it may come again. The event comes before the first value of the new generation.
   */
  readonly restored: Restored
  /** The connection is lost, and another one is being made. */
  readonly disconnected: ConnectionError
  /** Another attempt to connect is going to be made. */
  readonly retrying: RetryEvent
  /** There is a connection again. */
  readonly connected: { readonly channel: number }
  /** The consumer has ended; undefined if `close` was called. */
  readonly closed: Error | undefined
}

export type Listener<E extends keyof ConsumerEvents> = (event: ConsumerEvents[E]) => void

/** Values were lost. Times are microseconds since 1970; 0 if they are unknown. */
export interface GapEvent {
  readonly kind: 'gap'
  /** The id that COMMIT takes. */
  readonly transaction: number
  /** The metric as it was followed; empty if several have lost values. */
  readonly metric: string
  /** The id of the metric; 0 if several have lost values. */
  readonly id: number
  /** 0 if it is unknown. */
  readonly count: number
  readonly from: number
  readonly to: number
  /** A word, or the number of a reason that this version does not know. */
  readonly reason: GapReasonName | number
}

export interface NoticeEvent {
  readonly kind: 'notice'
  /** A word, or the number of a code that this version does not know. */
  readonly code: NoticeName | number
  readonly channel: number
  readonly detail: string
}

/** `metric` is the name of the metric. */
export function toGapEvent({ metric: id, reason, ...rest }: Gap, metric: string): GapEvent {
  return { ...rest, id, metric, reason: gapReasonName(reason) ?? reason }
}

export function toNoticeEvent({ code, ...rest }: Notice): NoticeEvent {
  return { ...rest, code: noticeName(code) ?? code }
}

/** The listeners of a consumer. What a listener throws reaches whoever caused the event. */
export class Emitter {
  readonly #listeners: { readonly [E in keyof ConsumerEvents]: Set<Listener<E>> } = {
    gap: new Set(),
    notice: new Set(),
    restored: new Set(),
    disconnected: new Set(),
    retrying: new Set(),
    connected: new Set(),
    closed: new Set(),
  }

  /** Returns the function that removes the listener. */
  on<E extends keyof ConsumerEvents>(event: E, listener: Listener<E>): () => void {
    this.#listeners[event].add(listener)
    return () => {
      this.#listeners[event].delete(listener)
    }
  }

  emit<E extends keyof ConsumerEvents>(event: E, detail: ConsumerEvents[E]): void {
    for (const listener of this.#listeners[event]) listener(detail)
  }
}
