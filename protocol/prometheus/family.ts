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

interface Names {
  has(name: string): boolean
}

export class Family {
  readonly name: string
  readonly #first: Samples
  /** All but the first, and their metrics, if there are more: most families have one, and there may be a hundred thousand. */
  #others: Samples[] | undefined
  #metrics: Set<string> | undefined

  constructor(name: string, first: Samples) {
    this.name = name
    this.#first = first
  }

  /** Of its samples, and its own. */
  get names(): readonly string[] {
    const { shape } = this.#first
    return shape === 'number' ? [this.name] : distributionNames(this.name, shape)
  }

  /** Whether these samples can stand in it: a label tells those of different metrics apart, and nothing those of one. */
  takes({ shape, metric }: Samples): boolean {
    return shape === this.#first.shape && metric !== this.#first.metric && this.#metrics?.has(metric) !== true
  }

  add(samples: Samples): void {
    this.#others ??= []
    this.#others.push(samples)
    this.#metrics ??= new Set()
    this.#metrics.add(samples.metric)
  }

  /** `taken`: the names of all families. */
  *text(format: ExpositionFormat, taken: Names): Generator<string> {
    const all = [this.#first, ...(this.#others ?? [])]
    yield this.#head(format, taken, all)
    const marker = markerOf(all)
    for (const samples of all) {
      const isMarked = samples !== this.#first || samples.name !== this.name
      yield* samples.text(this.name, isMarked ? marker : undefined)
    }
  }

  #head(format: ExpositionFormat, taken: Names, all: readonly Samples[]): string {
    const { help, unit, type: given } = this.#first
    const text = readable(help).replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
    if (format === 'prometheus') {
      const type = given === 'unknown' ? 'untyped' : given
      return `${help === '' ? '' : `# HELP ${this.name} ${text}\n`}# TYPE ${this.name} ${type}\n`
    }
    // A counter of OpenMetrics is called as its samples are, without `_total`.
    const base = this.name.endsWith(TOTAL) ? this.name.slice(0, -TOTAL.length) : ''
    const isCounter = given === 'counter' && base !== '' && !taken.has(base) && all.every(({ isCount }) => isCount)
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

/** The label for the metrics of marked samples; no sample of the family has it already. */
function markerOf(all: readonly Samples[]): string {
  let label = NAME_LABEL
  while (all.some(({ nameLabels }) => nameLabels.has(label))) label += '_'
  return label
}
