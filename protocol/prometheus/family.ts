/** A family of the text formats: samples with one name and type, of one metric or of several whose names became one. */
import { distributionNames } from './distribution.ts'
import { readable } from './labels.ts'
import { type ExpositionFormat, NAME_LABEL, type Samples } from './samples.ts'

const TOTAL = '_total'

const unitWords: Readonly<Record<string, string>> = {
  B: 'bytes',
  bytes: 'bytes',
  By: 'bytes',
  s: 'seconds',
  sec: 'seconds',
  ms: 'milliseconds',
  '%': 'percent',
}

export class Family {
  readonly name: string
  /** Of its samples, and its own. */
  readonly names: readonly string[]
  readonly #first: Samples
  readonly #all: Samples[]
  /** Of all but the first, if there are more. */
  #metrics: Set<string> | undefined

  constructor(name: string, first: Samples) {
    const { shape } = first
    this.name = name
    this.names = shape === 'number' ? [name] : distributionNames(name, shape)
    this.#first = first
    this.#all = [first]
  }

  /** Whether these samples can stand in it: a label tells those of different metrics apart, and nothing those of one. */
  takes({ shape, metric }: Samples): boolean {
    return shape === this.#first.shape && metric !== this.#first.metric && this.#metrics?.has(metric) !== true
  }

  add(samples: Samples): void {
    this.#all.push(samples)
    this.#metrics ??= new Set()
    this.#metrics.add(samples.metric)
  }

  /** `taken`: the names of all families. */
  *text(format: ExpositionFormat, taken: ReadonlySet<string>): Generator<string> {
    yield this.#head(format, taken)
    const marker = this.#marker()
    for (const samples of this.#all) {
      const isMarked = samples !== this.#first || samples.name !== this.name
      yield* samples.text(this.name, isMarked ? marker : undefined)
    }
  }

  /** The label for the metrics of marked samples; no sample of the family has it already. */
  #marker(): string {
    let label = NAME_LABEL
    while (this.#all.some(({ nameLabels }) => nameLabels.has(label))) label += '_'
    return label
  }

  #head(format: ExpositionFormat, taken: ReadonlySet<string>): string {
    const { help, unit, type: given } = this.#first
    const text = readable(help).replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
    if (format === 'prometheus') {
      const type = given === 'unknown' ? 'untyped' : given
      return `${help === '' ? '' : `# HELP ${this.name} ${text}\n`}# TYPE ${this.name} ${type}\n`
    }
    // A counter of OpenMetrics is called as its samples are, without `_total`.
    const base = this.name.endsWith(TOTAL) ? this.name.slice(0, -TOTAL.length) : ''
    const isCounter =
      given === 'counter' && base !== '' && !taken.has(base) && this.#all.every(({ isCount }) => isCount)
    const name = isCounter ? base : this.name
    const type = given === 'counter' && !isCounter ? 'unknown' : given
    const word = unitWords[unit] ?? unit
    return [
      help === '' ? '' : `# HELP ${name} ${text.replace(/"/g, '\\"')}\n`,
      `# TYPE ${name} ${type}\n`,
      word !== '' && name.endsWith(`_${word}`) ? `# UNIT ${name} ${word}\n` : '',
    ].join('')
  }
}
