/** The subscriptions of a series: how they end, and how values reach them. */
import type { Series, Subscription } from './metric.ts'

/** Gives a value to all subscriptions; `tail` is basic type and value, `time` in microseconds since 1970. The hottest loop of the hub. */
export function passOn(subscriptions: readonly Subscription[], tail: Uint8Array, time: number): void {
  for (let index = 0; index < subscriptions.length; index++) {
    const { framePrefix, sink } = subscriptions[index] as Subscription
    sink.append(framePrefix, tail, time)
  }
}

/**
 * Gives several values, in their order, to one subscription after the other: each leads to other places in memory, which are
 * touched once for all values then.
 */
export function passOnRun(subscriptions: readonly Subscription[], tails: readonly Uint8Array[], time: number): void {
  for (let index = 0; index < subscriptions.length; index++) {
    const { framePrefix, sink } = subscriptions[index] as Subscription
    for (const tail of tails) sink.append(framePrefix, tail, time)
  }
}

/** Removes a subscription, if it is there, by moving the last one into its place: thousands may end at once. */
export function unsubscribe(series: Series, subscription: Subscription): void {
  const { subscriptions } = series
  if (subscriptions[subscription.at] !== subscription) return
  const last = subscriptions.pop()
  if (last !== undefined && last !== subscription) {
    subscriptions[subscription.at] = last
    last.at = subscription.at
  }
}
