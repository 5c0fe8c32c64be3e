/**
 * Metrics of the machine of the server. Where they are measured they have the labels that patterns ask for, and no others; what is
 * remembered of them has all.
 */

type Arguments = Readonly<Record<string, string>>

const FAMILY = 'host.'
/** These name a part of what is measured; without them it is the whole. */
const PARTS = ['cpu', 'mount', 'device', 'interface']

/** Whether a metric, or all that a pattern matches, is of that machine. */
export function isOfOwnMachine(metric: string): boolean {
  return metric.startsWith(FAMILY)
}

/** Arguments with which the whole of a metric is asked for, and no part of it. */
export function ofTheWhole(): Arguments {
  return Object.fromEntries(PARTS.map((name) => [name, '']))
}

/** Whether arguments ask for parts, of which something with these labels is none. A pattern matches the empty text, too. */
export function isWhole(labels: Readonly<Record<string, unknown>>, args: Arguments): boolean {
  return PARTS.some((part) => args[part]?.includes('*') === true && labels[part] === undefined)
}

/** Whether something with these labels is a part that arguments do not ask for. */
export function isUnaskedPart(labels: Readonly<Record<string, unknown>>, args: Arguments): boolean {
  return PARTS.some((part) => args[part] === undefined && labels[part] !== undefined)
}
