/** Random texts of metrics, as programs expose them for Prometheus, one after the other: with everything that the formats allow, and broken. */
import type { ExpositionFormat } from '../../protocol/prometheus/samples.ts'
import type { Random } from '../support/random.ts'

const NAMES = [
  'a',
  'a_b',
  'a:b',
  '_x',
  'A9',
  ':',
  'x_total',
  'timed_a',
  'timed_b',
  'h_bucket',
  'go_gc_duration_seconds',
]
const LABELS = [
  'a',
  '_',
  'A',
  'le',
  'job',
  'instance',
  'exported_job',
  'exported_instance',
  'name',
  'value',
  'time',
  'host',
  'a_1',
]
/** As they stand between quotes. */
const TEXTS = [
  '',
  ' ',
  'x',
  '0.5',
  '+Inf',
  '\\\\',
  '\\n',
  '\\"',
  'a\\"b\\\\n',
  '{}',
  ',=',
  '#',
  '# EOF',
  'größe',
  '\u{1f600}',
  '\ufeff',
  '\u2028',
  '\r',
  '\t',
  '\u007f',
  '\\t',
  '\\',
]
const VALUES = [
  '0',
  '-0',
  '+0',
  '1',
  '-1',
  '+1',
  '1.',
  '.5',
  '-.5e-3',
  '1e3',
  '1E+3',
  '5e-324',
  '2e-324',
  '1e-400',
  '2.2250738585072011e-308',
  '1.7976931348623157e308',
  '9007199254740993',
  '18446744073709551615',
  '0.1000000000000000055511151231257827021181583404541015625',
  '00012',
  'NaN',
  'nan',
  'Inf',
  '+Inf',
  '-inf',
  'Infinity',
  '-infinity',
]
const NO_VALUES = [
  '',
  '1e400',
  '-1e400',
  '0x10',
  '0x1p4',
  '1_000',
  '+NaN',
  'one',
  '1,5',
  '1e',
  '.',
  '--1',
  '１',
  'in',
  '1f',
  '"1"',
]
const BLANKS = [' ', ' ', ' ', '  ', '\t', ' \t']
const MUTATIONS = [...'{}",=\\ \n\t#0e+-_:.xN', '\r', '\0', 'é', '# TYPE a gauge\n', '# EOF\n', '\n\n']

/** Series whose samples have times: they never go, and no text that has them is broken, so that they are known by their names. */
export const TIMED = /^timed_/

export class ExpositionTexts {
  readonly #random: Random
  readonly #format: ExpositionFormat
  readonly #nowMs: number
  /** Whether some of its texts are broken. */
  readonly #isCareless: boolean
  /** The series that the target has at times, as they stand in a line. */
  readonly #series: readonly { readonly text: string; readonly name: string }[]

  constructor(random: Random, format: ExpositionFormat, nowMs: number) {
    this.#random = random
    this.#format = format
    this.#nowMs = nowMs
    this.#isCareless = this.#chance(0.5)
    const all = Array.from({ length: 8 }, () => this.#oneSeries())
    // Prometheus takes several times of one series only in their order.
    const isFirst = (text: string, at: number) => all.findIndex((one) => one.text === text) === at
    this.#series = all.filter(({ name, text }, at) => !TIMED.test(name) || isFirst(text, at))
  }

  next(): string {
    const lines = this.#series
      .filter(({ name }) => TIMED.test(name) || this.#chance(0.7))
      .flatMap((series) => this.#lines(series))
    const text = `${lines.join('\n')}${lines.length > 0 ? '\n' : ''}${this.#format === 'openmetrics' ? '# EOF\n' : ''}`
    return this.#isCareless && this.#chance(0.6) ? this.#broken(text) : text
  }

  #chance(of: number): boolean {
    return this.#random.next() < of
  }

  #oneSeries(): { text: string; name: string } {
    const random = this.#random
    const name = random.pick(this.#isCareless ? NAMES.filter((one) => !TIMED.test(one)) : NAMES)
    const names = new Set(Array.from({ length: random.below(4) }, () => random.pick(LABELS)))
    const labels = Array.from(names, (label) => `${label}="${random.pick(TEXTS.slice(0, -2))}"`)
    return { name, text: labels.length === 0 ? name : `${name}{${labels.join(',')}}` }
  }

  #lines({ text, name }: { readonly text: string; readonly name: string }): string[] {
    const random = this.#random
    const isOpen = this.#format === 'openmetrics'
    const blank = isOpen ? ' ' : random.pick(BLANKS)
    const time = TIMED.test(name) ? `${blank}${this.#time()}` : ''
    // Prometheus takes them elsewhere too from its version 2.43 on, and this server does.
    const hasExemplar = isOpen && /_(?:total|bucket)$/.test(name) && this.#chance(0.5)
    const exemplar = hasExemplar ? ` # {trace_id="x"} 1${this.#chance(0.5) ? ' 1.5' : ''}` : ''
    const line = `${text}${blank}${random.pick(VALUES)}${time}${exemplar}`
    const comment = this.#chance(0.2) ? [`# HELP ${name} Help \\\\ \\n of ${name}`] : []
    const plain = !isOpen && this.#chance(0.1) ? [random.pick(['', '# a comment', '#', '   ', '\t# x'])] : []
    return [...comment, ...plain, line]
  }

  #time(): string {
    const ms = this.#nowMs - this.#random.below(600_000)
    return this.#format === 'openmetrics' ? (ms / 1_000).toFixed(3) : String(ms)
  }

  /** With something else at a place or two. */
  #broken(text: string): string {
    const random = this.#random
    if (this.#chance(0.3)) return text.replace(/ \S+\n/, ` ${random.pick(NO_VALUES)}\n`)
    let broken = text
    for (let count = 1 + random.below(2); count > 0; count--) {
      const at = random.below(broken.length + 1)
      broken = broken.slice(0, at) + random.pick(['', ...MUTATIONS]) + broken.slice(at + random.below(2))
    }
    return broken
  }
}
