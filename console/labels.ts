/** What series are called where several are shown: by the labels that differ between them. What all have alike is said once. */
import type { LineArguments } from './series-watch.ts'

export interface Labelled {
  readonly metric: string
  /** The arguments that it was asked for with: they are shown already. */
  readonly args: LineArguments
  /** All of its labels, and the arguments. */
  readonly labels: LineArguments
}

export interface Naming {
  /** Of each series, in their order. */
  readonly names: readonly string[]
  /** The labels that all of them have alike; empty if there is none. */
  readonly common: string
}

/** Names as `mode=idle cpu=0`, after the metric if there are several. */
export function namingOf(all: readonly Labelled[]): Naming {
  const [first] = all
  if (first === undefined) return { names: [], common: '' }
  const keys = [...new Set(all.flatMap(({ labels }) => Object.keys(labels)))]
  const isCommon = (key: string): boolean => all.every(({ labels }) => labels[key] === first.labels[key])
  const apart = keys.filter((key) => !isCommon(key))
  const isOneMetric = all.every(({ metric }) => metric === first.metric)
  const names = all.map(({ metric, labels }) => {
    const text = labelsText(labels, apart)
    return isOneMetric && text !== '' ? text : [metric, text].filter(Boolean).join(' ')
  })
  const alike = keys.filter((key) => isCommon(key) && first.labels[key] !== first.args[key])
  return { names, common: labelsText(first.labels, alike) }
}

/** `host=web1 mode=idle`; what is empty is left out. */
export function labelsText(labels: LineArguments, keys: readonly string[] = Object.keys(labels)): string {
  return keys
    .filter((key) => (labels[key] ?? '') !== '')
    .map((key) => `${key}=${labels[key]}`)
    .join(' ')
}
