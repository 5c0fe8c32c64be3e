/** Outcomes as lines for a person: what was expected and what came, the first difference marked. */
import type { Arrival } from './speaker.ts'
import type { Failure } from './stage.ts'
import type { Outcome } from './target.ts'

/** Bytes shown on each side of the difference in a long frame. */
const SHOWN_BEFORE = 64
const SHOWN = 160

/** The lines of one outcome. */
export function describeOutcome({ script, over, result, why, failure }: Outcome): string {
  const name = `${over.padEnd(8)} ${script.name}`
  if (result === 'ok') return `ok      ${name}`
  if (result === 'not applicable') return `-       ${name}: not applicable: ${why}`
  const rule = `        [MON ${script.clauses.join(', ')}] ${script.title}`
  const lines = failure === undefined ? [`        ${why}`] : describeFailure(failure)
  return [`FAILED  ${name}`, rule, ...lines].join('\n')
}

/** The sections of the protocol. */
const SECTIONS = Array.from({ length: 16 }, (_, index) => String(index + 1))

/** The verdict, with what was not tried in any way, and why. `isWhole`: all scripts were chosen. */
export function summary(outcomes: readonly Outcome[], isWhole: boolean): string {
  const count = (result: Outcome['result']): number => outcomes.filter((outcome) => outcome.result === result).length
  const verdict = `${count('ok')} ok, ${count('failed')} failed, ${count('not applicable')} not applicable`
  return [verdict, ...untried(outcomes, isWhole)].join('\n')
}

function untried(outcomes: readonly Outcome[], isWhole: boolean): string[] {
  const tried = new Set(outcomes.filter(({ result }) => result !== 'not applicable').map(({ script }) => script.name))
  const triedSections = new Set([...tried].map(sectionOf))
  const whole: string[] = []
  const parts: string[] = []
  const scripts = reasonsOf(outcomes.filter(({ script }) => !tried.has(script.name)))
  for (const section of SECTIONS) {
    const reasons = new Map<string, string[]>()
    for (const [name, why] of scripts) {
      if (sectionOf(name) === section) reasons.set(why, [...(reasons.get(why) ?? []), name])
    }
    if (reasons.size === 0) {
      if (isWhole && !triedSections.has(section)) whole.push(`${section} (there are no scripts)`)
    } else if (triedSections.has(section)) {
      const named = [...reasons].map(([why, found]) => `${found.join(', ')}: ${why}`)
      parts.push(`${section} (${named.join('; ')})`)
    } else whole.push(`${section} (${[...reasons.keys()].join('; ')})`)
  }
  return [
    ...(whole.length === 0 ? [] : [`not tried: ${whole.join(', ')}`]),
    ...(parts.length === 0 ? [] : [`tried in part: ${parts.join(', ')}`]),
  ]
}

/** Why each script was not tried: what is missing, rather than that it is for another way. */
function reasonsOf(outcomes: readonly Outcome[]): Map<string, string> {
  const reasons = new Map<string, string>()
  for (const { script, why = '', isMissing } of outcomes) {
    if (isMissing || !reasons.has(script.name)) reasons.set(script.name, why)
  }
  return reasons
}

function sectionOf(script: string): string {
  return script.slice(0, script.indexOf('/'))
}

function describeFailure({ message, step, expected, came, at }: Failure): string[] {
  const lines = [`        line ${step?.line}: ${step?.text}`, `        ${message}`]
  for (const { text } of expected) lines.push(`        expected  ${text}`)
  if (came !== undefined) lines.push(`        came      ${describeArrival(came, at)}`)
  return lines
}

function describeArrival(arrival: Arrival, at: number | undefined): string {
  if ('frame' in arrival) return hexWithMark(arrival.frame, at)
  if ('json' in arrival) return JSON.stringify(arrival.json)
  if ('closed' in arrival) return `the end of the connection (${arrival.closed.code ?? 'no code'})`
  return `nothing for ${arrival.nothing} ms`
}

/** Words of four bytes; the one with the first difference between > and <. */
export function hexWithMark(frame: Buffer, at?: number): string {
  const first = at === undefined ? 0 : Math.max(0, (at & ~3) - SHOWN_BEFORE)
  const last = Math.min(frame.length, first + SHOWN)
  const words: string[] = []
  for (let offset = first; offset < last; offset += 4) {
    const word = frame.subarray(offset, Math.min(offset + 4, last)).toString('hex')
    words.push(at !== undefined && (at & ~3) === offset ? `>${word}<` : word)
  }
  if (at !== undefined && at >= frame.length) words.push('>end<')
  return `${first > 0 ? '... ' : ''}${words.join(' ')}${last < frame.length ? ` ... (${frame.length} bytes)` : ''}`
}
