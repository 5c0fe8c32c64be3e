/**
 * Keys of series: the name and the labels of a series as one text. Each text in it stands with its length before it, because a
 * text may have any characters; so a key can be taken apart again.
 */
import { labelsFrom } from '../kernel/metrics/labels.ts'
import type { Labels } from '../kernel/metrics/metric.ts'

/** Texts as one text. */
export function joined(texts: readonly string[]): string {
  let all = ''
  for (const text of texts) all += `${text.length}:${text}`
  return all
}

/** The texts that were joined. */
export function split(all: string): string[] {
  const texts: string[] = []
  let at = 0
  while (at < all.length) {
    const start = all.indexOf(':', at) + 1
    const end = start + Number(all.slice(at, start - 1))
    texts.push(all.slice(start, end))
    at = end
  }
  return texts
}

/** Tells the series of a family apart. Labels without a text are none, and their order does not matter. */
export function keyOfSeries(name: string, labels: Labels): string {
  const texts = [name]
  for (const label of Object.keys(labels).sort()) {
    const text = labels[label]
    if (label !== 'name' && text !== undefined && text !== '') texts.push(label, text)
  }
  return joined(texts)
}

/** The name and labels that a key was made of. */
export function seriesOfKey(key: string): { readonly name: string; readonly labels: Labels } {
  const [name = '', ...texts] = split(key)
  const labels = texts.flatMap((label, at) => (at % 2 === 0 ? [[label, texts[at + 1] as string] as const] : []))
  return { name, labels: labelsFrom(labels) }
}

/** The name that a key begins with. */
export function nameOfKey(key: string): string {
  const start = key.indexOf(':') + 1
  return key.slice(start, start + Number(key.slice(0, start - 1)))
}
