/** The scripts of Prometheus' own tests: what is loaded, what is evaluated, and what is expected of it. */
import { boundedDurationMs, floatOf } from '../../../promql/parse/numbers.ts'
import { unquoted } from '../../../promql/parse/quoting.ts'
import { type NotedSeries, parseNotedSeries } from '../../../promql/parse/series-notation.ts'

export interface Load {
  readonly kind: 'load'
  readonly stepMs: number
  /** Whether classic histograms of it are loaded as native ones as well. */
  readonly hasNativeTwins: boolean
  readonly series: readonly NotedSeries[]
}

export interface Expectation {
  readonly of: 'fail' | 'warn' | 'info'
  matches(message: string): boolean
}

export interface Evaluation {
  readonly kind: 'eval'
  readonly line: number
  readonly text: string
  readonly startMs: number
  readonly endMs: number
  /** Undefined for an instant query. */
  readonly stepMs: number | undefined
  readonly expectations: readonly Expectation[]
  readonly isOrdered: boolean
  readonly isWithoutWarning: boolean
  readonly isWithoutInfo: boolean
  readonly scalar: number | undefined
  readonly string: string | undefined
  /** Of an instant query that gives a range. */
  readonly rangeVector: { readonly startMs: number; readonly endMs: number; readonly stepMs: number } | undefined
  readonly series: readonly NotedSeries[]
}

export type Command = Load | Evaluation | { readonly kind: 'clear' }

export function parseScript(text: string): Command[] {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .map((line) => (line.startsWith('#') ? '' : line))
  const commands: Command[] = []
  for (let index = 0; index < lines.length; index++) {
    const head = lines[index] ?? ''
    if (head === '') continue
    const end = lines.indexOf('', index)
    const body = lines.slice(index + 1, end < 0 ? lines.length : end)
    if (/^clear$/i.test(head)) commands.push({ kind: 'clear' })
    else if (/^load/i.test(head)) {
      commands.push(parseLoad(head, body))
      index += body.length
    } else if (/^eval/i.test(head)) {
      commands.push(parseEvaluation(head, body, index + 1))
      index += body.length
    } else throw new Error(`line ${index + 1}: no command: ${head}`)
  }
  return commands
}

function parseLoad(head: string, body: readonly string[]): Load {
  const [, twins, step = ''] = /^load(_with_nhcb)?\s+(\S+)$/i.exec(head) ?? []
  const series = new Map<string, NotedSeries>()
  for (const line of body) {
    const parsed = parseNotedSeries(line)
    // A series that is defined again is the later one.
    series.set(parsed.labels.key, parsed)
  }
  return { kind: 'load', stepMs: ms(step), hasNativeTwins: twins !== undefined, series: [...series.values()] }
}

function parseEvaluation(head: string, body: readonly string[], line: number): Evaluation {
  const instant = /^eval(?:_(fail|warn|ordered|info))?\s+instant\s+(?:at\s+(\S+))?\s+(.+)$/i.exec(head)
  const range = /^eval(?:_(fail|warn|info))?\s+range\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+?)\s+(.+)$/i.exec(head)
  const found = instant ?? range
  if (found === null) throw new Error(`line ${line}: no evaluation: ${head}`)
  const [, mode] = found
  const expectations: Expectation[] = []
  if (mode === 'fail' || mode === 'warn' || mode === 'info') expectations.push({ of: mode, matches: () => true })
  const result = {
    isOrdered: mode === 'ordered',
    isWithoutWarning: false,
    isWithoutInfo: false,
    scalar: undefined as number | undefined,
    string: undefined as string | undefined,
    rangeVector: undefined as Evaluation['rangeVector'],
    series: [] as NotedSeries[],
  }
  for (const expected of body) {
    const failure = /^expected_fail_(message|regexp)\s+(.*)$/.exec(expected)
    const vector = /^expect\s+range\s+vector\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)$/.exec(expected)
    const string = /^expect string\s+(.+)$/.exec(expected)
    const expectation = /^expect\s+(ordered|fail|warn|no_warn|info|no_info)\b(?:\s+(regex|msg):(.*))?$/.exec(expected)
    const number = floatOf(expected)
    if (failure !== null) expectations.push({ of: 'fail', matches: matcher(failure[1] ?? '', failure[2] ?? '') })
    else if (vector !== null) {
      const [startMs = 0, endMs = 0, stepMs = 0] = vector.slice(1).map(ms)
      result.rangeVector = { startMs, endMs, stepMs }
    } else if (string !== null) result.string = unquoted(string[1] ?? '')
    else if (expectation !== null) {
      const [, of, how = '', what = ''] = expectation
      if (of === 'ordered') result.isOrdered = true
      else if (of === 'no_warn') result.isWithoutWarning = true
      else if (of === 'no_info') result.isWithoutInfo = true
      else if (of === 'fail' || of === 'warn' || of === 'info')
        expectations.push({ of, matches: matcher(how, what.trim()) })
    } else if (number !== undefined) result.scalar = number
    else result.series.push(parseNotedSeries(expected))
  }
  const [startMs, endMs, stepMs] =
    instant === null
      ? [found[2], found[3], found[4]].map((text) => ms(text ?? ''))
      : [ms(found[2] ?? '0'), ms(found[2] ?? '0')]
  return {
    kind: 'eval',
    line,
    text: found.at(-1) ?? '',
    startMs: startMs ?? 0,
    endMs: endMs ?? 0,
    stepMs,
    expectations,
    ...result,
  }
}

function matcher(how: string, what: string): (message: string) => boolean {
  if (how === 'regex' || how === 'regexp') {
    // Go's expressions of the files are written as JavaScript has them.
    const regex = new RegExp(what, 'u')
    return (message) => regex.test(message)
  }
  return how === '' ? () => true : (message) => message === what
}

function ms(text: string): number {
  const found = boundedDurationMs(text)
  if (found === undefined) throw new Error(`no duration: ${text}`)
  return found
}
