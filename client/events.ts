/** What a consumer tells beside values, and who listens to it. */
import type { Gap, Notice } from '../protocol/monitor/message.ts'
import type { ConnectionError } from './errors.ts'

export interface ConsumerEvents {
  /** Values were lost; told in its place between the values. */
  readonly gap: Gap
  readonly notice: Notice
  /** The connection is gone; another one is being made. */
  readonly disconnected: ConnectionError
  /** There is a connection again. */
  readonly connected: { readonly channel: number }
  /** The end: undefined where it was closed from here. */
  readonly closed: Error | undefined
}

export type Listener<E extends keyof ConsumerEvents> = (event: ConsumerEvents[E]) => void

export class Events {
  readonly #listeners: { readonly [E in keyof ConsumerEvents]: Set<Listener<E>> } = {
    gap: new Set(),
    notice: new Set(),
    disconnected: new Set(),
    connected: new Set(),
    closed: new Set(),
  }

  /** Gives the function that ends it. */
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
