/** Labels: which a series may have, in which order they are sent, and which of them are [MON 9 Patterns, 9 Labels]. */
import { MAX_NAME_BYTES } from '../../../protocol/monitor/constants.ts'
import { compareLabels, isKnownLabel } from '../../../protocol/monitor/labels.ts'
import { nameProblem } from '../../../protocol/monitor/value.ts'
import type { Labels, OpenLabels } from './metric.ts'

/** The labels that a source may give its series, the name of the metric apart. */
export const MAX_LABELS = 64
export const MAX_LABEL_BYTES = 1024
/** All names and texts of a series together, the name of the metric among them. */
export const MAX_SERIES_BYTES = 4096

/** The text of a label; undefined if the series has no such label. */
export function labelText(labels: Labels, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined
}

/** Labels from names and texts; a name may be any, `__proto__` too. */
export function labelsFrom(entries: Iterable<readonly [name: string, text: string]>): Labels {
  const labels: Record<string, string> = Object.create(null)
  for (const [name, text] of entries) labels[name] = text
  return labels
}

/** The names of labels without a place of their own, in the order of their bytes. */
export function otherLabels(labels: Labels): string[] {
  const names = Object.keys(labels).filter((name) => !isKnownLabel(name))
  return names.length > 1 ? names.sort(compareLabels) : names
}

/** Every label but those that an exact text fixes: what is sent where labels are open. */
export class AllLabelsBut implements OpenLabels {
  readonly #fixed: ReadonlySet<string>
  /** The value never stands alone, because series with further labels may come. */
  readonly size = Number.POSITIVE_INFINITY

  constructor(fixed: Iterable<string> = []) {
    this.#fixed = new Set(fixed)
  }

  has(name: string): boolean {
    return !this.#fixed.has(name)
  }
}

/** Characters of a name that an answer repeats. */
const MAX_SHOWN = 100

/** A name for people: one that somebody has sent may be as long as the request. */
export function shownName(name: string): string {
  return name.length > MAX_SHOWN ? `${name.slice(0, MAX_SHOWN).toWellFormed()}…` : name
}

const encoder = new TextEncoder()
const scratch = new Uint8Array(MAX_SERIES_BYTES)

/** The length in UTF-8, or more than `most` if that is exceeded. */
function utf8Length(text: string, most: number): number {
  if (text.length > most) return most + 1
  const { read, written } = encoder.encodeInto(text, scratch)
  return read < text.length ? most + 1 : written
}

/** What is wrong with the labels of a series with open labels, for people; undefined if nothing is. */
export function openLabelsProblem(name: string, labels: Labels): string | undefined {
  let [count, bytes] = [0, utf8Length(name, MAX_NAME_BYTES)]
  for (const label of Object.keys(labels)) {
    const text: unknown = labels[label]
    if (label === 'name' || text === undefined) continue
    if (++count > MAX_LABELS) return `more than ${MAX_LABELS} labels`
    const problem = nameProblem(label)
    if (problem !== undefined) return `a label has ${problem}`
    if (typeof text !== 'string') return `label ${shownName(label)}: a ${typeof text}`
    if (!text.isWellFormed()) return `label ${shownName(label)}: its text is not Unicode`
    const length = utf8Length(text, MAX_LABEL_BYTES)
    if (length > MAX_LABEL_BYTES) return `label ${shownName(label)}: more than ${MAX_LABEL_BYTES} bytes`
    bytes += utf8Length(label, MAX_NAME_BYTES) + length
  }
  return bytes > MAX_SERIES_BYTES ? `name and labels of more than ${MAX_SERIES_BYTES} bytes` : undefined
}

/** What stands for something else in a REC, an argument list or an answer, so that no foreign label may be called so. */
const reserved = [
  ...['name', 'value', 'time', 'more'],
  ...['interval_ms', 'deadline_ms', 'on_demand', 'producer', 'node', 'on_behalf_of'],
]
const EXPORTED = 'exported_'
const RESERVED = new RegExp(`^(?:${EXPORTED})*(?:${reserved.join('|')})$`)
const IMPORTED = new RegExp(`^(?:${EXPORTED})+(?:${reserved.join('|')})$`)

/**
 * The name under which a foreign label is kept: `exported_` stands before a reserved one, and before one that looks as if it
 * had been renamed so. Each name gets another one, and `toForeign` gives it back.
 */
export function fromForeign(label: string): string {
  return RESERVED.test(label) ? EXPORTED + label : label
}

/** The foreign name of a label, as its source gave it. */
export function toForeign(label: string): string {
  return IMPORTED.test(label) ? label.slice(EXPORTED.length) : label
}

/** All labels of a series but its name, as their source called them. */
export function ownLabels(labels: Labels): (readonly [name: string, text: string])[] {
  const own: (readonly [string, string])[] = []
  for (const name of Object.keys(labels)) {
    const text = labels[name]
    if (name !== 'name' && text !== undefined) own.push([toForeign(name), text])
  }
  return own
}
