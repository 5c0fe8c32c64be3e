/**
 * One channel that producers call for [MON 14]: each call is a session, and the next one goes on where the last was cut off.
 * What comes on a call before its consumer has taken it over is held back, and little of it is read.
 */
import type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
import type { Connection } from './connection.ts'
import { ConnectionError, isPassing } from './errors.ts'
import type { Session, SessionListener, Sessions } from './session.ts'

export class Line implements Sessions {
  readonly url: string
  #waiting: Call | undefined
  #current: Connection | undefined
  #wake: (() => void) | undefined

  constructor(url: string) {
    this.url = url
  }

  /** Whether somebody calls and is not answered yet. */
  get isRinging(): boolean {
    return this.#waiting !== undefined && this.#waiting.connection?.ended === undefined
  }

  /** A producer has logged us in for this channel. Whatever it had before is of no more use to it. */
  ring(call: Call): void {
    const again = new ConnectionError('CLOSED', `${this.url}: the producer has called again`)
    this.#waiting?.connection?.close(again)
    this.#waiting = call
    this.#current?.close(again)
    this.#wake?.()
  }

  async next(listener: SessionListener, signal?: AbortSignal): Promise<Session> {
    while (!this.isRinging) await this.#rung(signal)
    const call = this.#waiting as Call
    this.#waiting = undefined
    const session = call.takeOver(listener)
    this.#current = session.connection
    return session
  }

  /** Nobody is troubled by our waiting: it is the producer that calls, and it will not where it may not. */
  goesOn(reason: ConnectionError): boolean {
    return isPassing(reason) || reason.code === 'SUPERSEDED' || reason.code === 'WITHDRAWN'
  }

  /** Nobody answers any more. */
  close(): void {
    this.#waiting?.connection?.close()
  }

  #rung(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal?.reason)
      if (signal?.aborted) abort()
      signal?.addEventListener('abort', abort, { once: true })
      this.#wake = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
    })
  }
}

export class Call implements SessionListener {
  #session: Session | undefined
  #listener: SessionListener | undefined
  #held: (ValueMessage | Gap)[] | undefined = []

  get connection(): Connection | undefined {
    return this.#session?.connection
  }

  /** It is logged in, and has its layers. */
  came(session: Session): this {
    this.#session = session
    return this
  }

  /** To be called when `came` has been. */
  takeOver(listener: SessionListener): Session {
    const session = this.#session as Session
    this.#listener = listener
    session.connection.hold(false, false)
    return { ...session, release: () => this.#release() }
  }

  value(message: ValueMessage): void {
    // The answer to who asks for the names.
    if (this.#listener && message.transaction === 0) this.#listener.value(message)
    else if (this.#held) this.#held.push(message)
    else this.#listener?.value(message)
  }

  gap(gap: Gap): void {
    if (this.#held) this.#held.push(gap)
    else this.#listener?.gap(gap)
  }

  notice(notice: Notice): void {
    this.#listener?.notice(notice)
  }

  closed(connection: Connection, reason: ConnectionError, isOurs: boolean): void {
    this.#listener?.closed(connection, reason, isOurs)
  }

  #release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const message of held) {
      if (message.kind === 'gap') this.#listener?.gap(message)
      else this.#listener?.value(message)
    }
  }
}
