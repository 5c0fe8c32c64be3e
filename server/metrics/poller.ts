/** Readings of polled sensors, shared: identical metric, arguments and interval are one timer and one measurement. */
import type { Identity } from '../../auth/permissions.ts'
import type { Clock, Timer } from '../clock.ts'
import type { Measured } from './metric.ts'
import { keyOfArguments, type PolledTarget } from './selection.ts'

interface Group {
  readonly key: string
  readonly target: PolledTarget
  readonly identity: Identity
  readonly listeners: Set<(measured: Measured) => void>
  readonly timer: Timer
}

export class Poller {
  readonly #clock: Clock
  readonly #groups = new Map<string, Group>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Measures now for this listener, then every `intervalMs` for all who share it. The returned function ends it. */
  poll(
    target: PolledTarget,
    identity: Identity,
    intervalMs: number,
    listener: (measured: Measured) => void,
  ): () => void {
    const key = keyOf(target, identity, intervalMs)
    const group = this.#groups.get(key) ?? this.#open(key, target, identity, intervalMs)
    group.listeners.add(listener)
    deliver(target.sensor.measure(target.metric, target.args, identity, key), (measured) => {
      if (group.listeners.has(listener)) listener(measured)
    })
    return () => {
      group.listeners.delete(listener)
      if (group.listeners.size === 0) this.#close(group)
    }
  }

  #open(key: string, target: PolledTarget, identity: Identity, intervalMs: number): Group {
    const listeners = new Set<(measured: Measured) => void>()
    // A source that is slower than the interval is asked again when it has answered, not ever more often.
    let asked = false
    const timer = this.#clock.setInterval(() => {
      if (asked) return
      asked = true
      deliver(target.sensor.measure(target.metric, target.args, identity, key), (measured) => {
        asked = false
        for (const listener of listeners) listener(measured)
      })
    }, intervalMs)
    const group = { key, target, identity, listeners, timer }
    this.#groups.set(key, group)
    return group
  }

  #close(group: Group): void {
    if (this.#groups.get(group.key) !== group) return
    this.#groups.delete(group.key)
    this.#clock.clear(group.timer)
    group.target.sensor.forget?.(group.key)
  }
}

function keyOf({ sensor, metric, args }: PolledTarget, identity: Identity, intervalMs: number): string {
  return JSON.stringify([metric.name, keyOfArguments(args), intervalMs, sensor.personal ? identity.userId : 0])
}

function deliver(measured: Measured | Promise<Measured>, to: (measured: Measured) => void): void {
  if (measured instanceof Promise) void measured.then(to)
  else to(measured)
}
