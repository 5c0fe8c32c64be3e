/**
 * Which version of QMF is spoken with a broker. Version 2 is tried first: its requests work wherever there is v2, but a
 * broker may broadcast by v1 alone, and then v1 is better. Kept over connections, since the choice costs one.
 */
import type { AmqpRefusal } from '../../../protocol/amqp/session.ts'
import type { QmfVersion } from './wire.ts'

/** The address of a broker that broadcasts by v1. */
const BYTES_BROKER = 'agent.1.0'
/** The address of one that broadcasts by v2. */
const MAP_BROKER = 'broker'
/** A broker that broadcasts by both sends both heartbeats within this time. */
const BOTH_MS = 3_000
const NOT_FOUND = 404
const UNAUTHORIZED = 403
/** What qpidd says if its access control does not let the user bind a queue, or publish where v2 is asked. */
const REFUSED_EXCHANGE = /exchange bind request|cannot publish to qmf\.default/

export class VersionChoice {
  readonly #isFree: boolean
  #version: QmfVersion
  /** The monotonic time of the first heartbeat by v1 on this connection. */
  #bytesMs: number | undefined
  #isMapHeard = false
  /** Whether this connection speaks v1, rather than the next one only. */
  #wasOne = false
  /** How often v1 was taken since a connection worked. */
  #taken = 0

  constructor(configured: QmfVersion | 'auto') {
    this.#isFree = configured === 'auto'
    this.#version = configured === 'auto' ? 2 : configured
  }

  get version(): QmfVersion {
    return this.#version
  }

  /** Takes note of a heartbeat. */
  heard(agent: string, nowMs: number): void {
    if (agent === MAP_BROKER) this.#isMapHeard = true
    if (agent === BYTES_BROKER) this.#bytesMs ??= nowMs
  }

  /** Call it every second. Returns whether the other version is chosen now. */
  tick(nowMs: number): boolean {
    const isHeard = this.#bytesMs !== undefined && nowMs - this.#bytesMs >= BOTH_MS
    return isHeard && !this.#isMapHeard && this.#takeOne()
  }

  /** The broker has not answered who it is. Returns whether the other version is chosen now. */
  isSilent(): boolean {
    return this.#takeOne()
  }

  /** The broker has refused a command: that of a binding if it has no exchanges of v2, or the user no right to them. */
  refused({ code, text }: AmqpRefusal): boolean {
    const isMissing = code === NOT_FOUND && text.includes('qmf.default')
    const isForbidden = code === UNAUTHORIZED && REFUSED_EXCHANGE.test(text)
    return (isMissing || isForbidden) && this.#takeOne()
  }

  /** The console is ready. */
  worked(): void {
    this.#taken = 0
  }

  /** Whether the version that was chosen now was not tried since a connection worked. */
  get isProgress(): boolean {
    return this.#taken <= 1
  }

  /** The connection has ended. After one by v1 without broadcasts, v2 is tried again: the broker may have changed. */
  ended(): void {
    if (this.#isFree && this.#version === 1 && this.#wasOne && this.#bytesMs === undefined) this.#version = 2
    this.#wasOne = this.#version === 1
    this.#bytesMs = undefined
    this.#isMapHeard = false
  }

  #takeOne(): boolean {
    if (!this.#isFree || this.#version === 1) return false
    this.#version = 1
    this.#taken++
    return true
  }
}
