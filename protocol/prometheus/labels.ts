/** Labels of a sample as Prometheus takes them: the name of each stands once, and none is empty. */
import { prometheusLabel } from './names.ts'

export type SampleLabel = readonly [name: string, text: string]

/** What Prometheus itself puts before a label whose name it needs. */
const EXPORTED = 'exported_'

/**
 * An empty text is no label, and labels whose names become one share it. `own` is the label that a sample has by what it is, `le`
 * or `quantile`: others called so, or called as if they had been renamed so, get `exported_` in front, so that none become one.
 */
export function prometheusLabels(labels: Iterable<SampleLabel>, own = ''): SampleLabel[] {
  const texts = new Map<string, string>()
  for (const [name, text] of labels) {
    if (text === '') continue
    const shown = prometheusLabel(name)
    const label = own === '' ? shown : besideLabel(shown, own)
    const before = texts.get(label)
    texts.set(label, before === undefined ? readable(text) : `${before};${readable(text)}`)
  }
  return [...texts]
}

/** What a label is called beside one whose name is taken. */
export function besideLabel(label: string, own: string): string {
  if (!label.endsWith(own)) return label
  const isTaken = EXPORTED.repeat((label.length - own.length) / EXPORTED.length) + own === label
  return isTaken ? EXPORTED + label : label
}

/** What no reader of Prometheus takes in a text: NUL, which ends it, and halves of characters, which have no UTF-8. */
export function readable(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed()
  return whole.includes('\0') ? whole.replaceAll('\0', '\ufffd') : whole
}

/** Names the same labels in any order. */
export function labelsKey(labels: readonly SampleLabel[]): string {
  let [isSorted, before, key] = [true, '', '']
  for (const [name, text] of labels) {
    if (name < before) isSorted = false
    before = name
    key += `${name}\0${text}\0`
  }
  return isSorted ? key : labelsKey([...labels].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** As they stand in a text: `host="a",cpu="0"`. */
export function labelsText(labels: readonly SampleLabel[]): string {
  let joined = ''
  for (const [label, text] of labels) joined += `${joined === '' ? '' : ','}${label}="${escaped(text)}"`
  return joined
}

export function escaped(text: string): string {
  return /[\\\n"]/.test(text) ? text.replace(/[\\\n"]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`)) : text
}
