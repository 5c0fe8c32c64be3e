/**
 * When a heartbeat is due and when a peer counts as gone. Time is looked at in `tick` only, so that what happened between
 * two of them counts as having happened at the later one: bytes that wait to be read cost nobody his connection.
 */

/** Without heartbeats, and until they are agreed on. */
const SILENCE_MS = 30_000
/** What we ask for where the server leaves the choice. */
const HEARTBEAT_SECONDS = 10

/** 0: none. */
export function chooseHeartbeat(minSeconds: number, maxSeconds: number): number {
  return Math.min(Math.max(HEARTBEAT_SECONDS, minSeconds), maxSeconds)
}

export class Liveness {
  /** How long the peer may be silent; undefined: as long as it likes. */
  #silenceMs: number | undefined = SILENCE_MS
  #heartbeatMs: number | undefined
  #heardAt: number | undefined
  #sentAt: number | undefined

  /** From now on; a peer is gone after two of its heartbeats did not come. */
  agree(heartbeatSeconds: number): void {
    this.#heartbeatMs = heartbeatSeconds > 0 ? heartbeatSeconds * 1000 : undefined
  }

  /** Nothing has to come any more except heartbeats. */
  settle(): void {
    this.#silenceMs = this.#heartbeatMs && 2 * this.#heartbeatMs
  }

  /** An answer has to come, whatever was agreed on. */
  await(): void {
    this.#silenceMs = SILENCE_MS
    this.#heardAt = undefined
  }

  heard(): void {
    this.#heardAt = undefined
  }

  sent(): void {
    this.#sentAt = undefined
  }

  isSilent(nowMs: number): boolean {
    this.#heardAt ??= nowMs
    return this.#silenceMs !== undefined && nowMs - this.#heardAt > this.#silenceMs
  }

  /** Half of the interval: the peer counts from what it heard last, and ticks are a second apart. */
  isHeartbeatDue(nowMs: number): boolean {
    this.#sentAt ??= nowMs
    return this.#heartbeatMs !== undefined && nowMs - this.#sentAt >= this.#heartbeatMs / 2
  }
}
