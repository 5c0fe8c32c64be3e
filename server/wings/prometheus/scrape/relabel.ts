/**
 * Relabelling, as Prometheus has it: rules that change the labels of a target before it is scraped, or those of a series before
 * it is taken, or drop it. Expressions are those of RE2, and match a text as a whole.
 */
import { createHash } from 'node:crypto'
import { RE2JS, RE2JSException } from 're2js'

export const RELABEL_ACTIONS = [
  'replace',
  'keep',
  'drop',
  'keepequal',
  'dropequal',
  'hashmod',
  'labelmap',
  'labeldrop',
  'labelkeep',
  'lowercase',
  'uppercase',
] as const
export type RelabelAction = (typeof RELABEL_ACTIONS)[number]

export interface RelabelRule {
  readonly action: RelabelAction
  readonly sourceLabels: readonly string[]
  readonly separator: string
  readonly regex: string
  /** 0 if there is none. */
  readonly modulus: number
  readonly targetLabel: string
  readonly replacement: string
}

/** A rule that says nothing. */
export const DEFAULT_RULE: RelabelRule = {
  action: 'replace',
  sourceLabels: [],
  separator: ';',
  regex: '(.*)',
  modulus: 0,
  targetLabel: '',
  replacement: '$1',
}

const WITHOUT_TARGET: ReadonlySet<RelabelAction> = new Set(['keep', 'drop', 'labelmap', 'labeldrop', 'labelkeep'])
/** They judge, and change no label. */
const JUDGES: ReadonlySet<RelabelAction> = new Set(['keep', 'drop', 'keepequal', 'dropequal'])

/** What is wrong with a rule, for people; undefined if nothing is. */
export function ruleProblem(rule: RelabelRule): string | undefined {
  const { action, sourceLabels, separator, regex, modulus, targetLabel, replacement } = rule
  const isDefault = (...keys: (keyof RelabelRule)[]): boolean => keys.every((key) => rule[key] === DEFAULT_RULE[key])
  if (targetLabel === '' && !WITHOUT_TARGET.has(action)) return `\`${action}\` needs \`target_label\``
  if (action === 'hashmod' && modulus === 0) return '`hashmod` needs a `modulus` of at least 1'
  if ((action === 'keepequal' || action === 'dropequal') && !isDefault('separator', 'regex', 'modulus', 'replacement'))
    return `\`${action}\` takes \`source_labels\` and \`target_label\` alone`
  if ((action === 'lowercase' || action === 'uppercase') && !isDefault('replacement'))
    return `\`${action}\` takes no \`replacement\``
  const isOfLabels = action === 'labeldrop' || action === 'labelkeep'
  if (isOfLabels && (sourceLabels.length > 0 || !isDefault('targetLabel', 'modulus', 'separator', 'replacement')))
    return `\`${action}\` takes \`regex\` alone`
  if (![separator, targetLabel, replacement, ...sourceLabels].every((text) => text.isWellFormed()))
    return 'it has a text that is not Unicode'
  try {
    compiled(regex)
    return undefined
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    return `\`regex\` is no regular expression of RE2: ${error.message}`
  }
}

/** A dot matches a line feed, too. */
function compiled(regex: string): RE2JS {
  return RE2JS.compile(`^(?s:${regex})$`)
}

/** Labels with their texts; a label without a text is none. */
export type MutableLabels = Map<string, string>

export class Relabelling {
  readonly #rules: readonly CompiledRule[]

  /** The rules have no problem. */
  constructor(rules: readonly RelabelRule[]) {
    this.#rules = rules.map((rule) => new CompiledRule(rule))
  }

  /** Changes the labels by all rules, one after the other; returns false as soon as one of them drops what has these labels. */
  apply(labels: MutableLabels): boolean {
    return this.#rules.every((rule) => rule.apply(labels))
  }
}

/** The labels of `labels` that stay as they are, whatever the rules do to what has them. */
export function untouchedBy<T>(rules: readonly RelabelRule[], labels: Readonly<Record<string, T>>): Record<string, T> {
  const changing = rules.filter(({ action }) => !JUDGES.has(action))
  const isAny = changing.some(({ action, targetLabel }) => WITHOUT_TARGET.has(action) || targetLabel.includes('$'))
  const changed = new Set(changing.map(({ targetLabel }) => targetLabel))
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !isAny && !changed.has(name)))
}

class CompiledRule {
  readonly #rule: RelabelRule
  readonly #regex: RE2JS

  constructor(rule: RelabelRule) {
    this.#rule = rule
    this.#regex = compiled(rule.regex)
  }

  apply(labels: MutableLabels): boolean {
    const { action, sourceLabels, separator, targetLabel, modulus } = this.#rule
    const text = sourceLabels.map((name) => labels.get(name) ?? '').join(separator)
    switch (action) {
      case 'keep':
        return this.#regex.test(text)
      case 'drop':
        return !this.#regex.test(text)
      case 'keepequal':
        return (labels.get(targetLabel) ?? '') === text
      case 'dropequal':
        return (labels.get(targetLabel) ?? '') !== text
      case 'replace':
        this.#replace(labels, text)
        return true
      case 'hashmod':
        set(labels, targetLabel, remainder(text, modulus))
        return true
      case 'lowercase':
        set(labels, targetLabel, byCharacter(text, lower))
        return true
      case 'uppercase':
        set(labels, targetLabel, byCharacter(text, upper))
        return true
      case 'labelmap':
        for (const [name, value] of [...labels]) {
          const to = this.#expander(name)?.(this.#rule.replacement)
          if (to !== undefined) set(labels, to, value)
        }
        return true
      case 'labeldrop':
      case 'labelkeep':
        for (const name of [...labels.keys()]) {
          if (this.#regex.test(name) === (action === 'labeldrop')) labels.delete(name)
        }
        return true
    }
  }

  #replace(labels: MutableLabels, text: string): void {
    const { targetLabel, replacement } = this.#rule
    const expand = this.#expander(text)
    if (expand === undefined) return
    const name = expand(targetLabel)
    if (name !== '') set(labels, name, expand(replacement))
  }

  /** Puts what was matched in `text` into a template; undefined if it does not match. */
  #expander(text: string): ((template: string) => string) | undefined {
    const matcher = this.#regex.matcher(text)
    if (!matcher.find()) return undefined
    const names = this.#regex.namedGroups()
    return (template) =>
      template.replaceAll(VARIABLE, (_whole, braced?: string, bare?: string) => {
        const name = braced ?? bare
        if (name === undefined) return '$'
        const group = Object.hasOwn(names, name) ? names[name] : groupNumber(name)
        return group === undefined || group > matcher.groupCount() ? '' : (matcher.group(group) ?? '')
      })
  }
}

/** `$$`, `${name}` or `$name`, as Go's templates have them; a `$` before anything else stays. */
const VARIABLE = /\$(?:\$|\{([\p{L}\p{Nd}_]+)\}|([\p{L}\p{Nd}_]+))/gu

/** Undefined if it is the number of no group: Go takes none with zeros before it. */
function groupNumber(name: string): number | undefined {
  return /^(?:0|[1-9]\d{0,7})$/.test(name) ? Number(name) : undefined
}

function set(labels: MutableLabels, name: string, text: string): void {
  if (text === '') labels.delete(name)
  else labels.set(name, text)
}

/** Prometheus takes the last eight bytes of the hash. */
function remainder(text: string, modulus: number): string {
  return String(createHash('md5').update(text).digest().readBigUInt64BE(8) % BigInt(modulus))
}

/** Go changes each character into one other; JavaScript would make "SS" of "ß". */
function byCharacter(text: string, change: (character: string) => string): string {
  return Array.from(text, change).join('')
}

function upper(character: string): string {
  const changed = character.toUpperCase()
  return isOne(changed) ? changed : character
}

/** Only that of "İ" has two characters, the second one a dot to put above. */
function lower(character: string): string {
  const [first = ''] = character.toLowerCase()
  return first
}

function isOne(text: string): boolean {
  return [...text].length === 1
}
