/** Reads metrics as text as a list of samples, with the series as it stands there. */
import { type TextLimits, TextMemory, TextParser, type TextSink } from '../../protocol/prometheus/text.ts'
import type { TextFormat, TextMetadata } from '../../protocol/prometheus/text-line.ts'

export interface TextSample {
  readonly series: string
  readonly value: number
  /** Microseconds since 1970; undefined if the line has none. */
  readonly time: number | undefined
}

interface ReadSeries {
  readonly text: string
}

/** Keeps the samples. Series that it has seen stay the same objects. */
export class SampleList implements TextSink<ReadSeries> {
  readonly samples: TextSample[] = []
  /** How many lines were not recognised. */
  looked = 0

  series(text: string): ReadSeries {
    this.looked++
    return { text }
  }

  take({ text: series }: ReadSeries, value: number, time: number | undefined): void {
    this.samples.push({ series, value, time })
  }
}

export interface ReadText {
  readonly samples: readonly TextSample[]
  readonly families: ReadonlyMap<string, TextMetadata>
  readonly looked: number
}

export class TextReader {
  readonly #memory = new TextMemory<ReadSeries>()
  readonly #format: TextFormat
  readonly #limits: TextLimits

  constructor(format: TextFormat = 'prometheus', limits: TextLimits = { lineBytes: 65_536, families: 1_000 }) {
    this.#format = format
    this.#limits = limits
  }

  /** Reads a text in pieces of so many bytes, with the memory of those that it has read before. */
  read(given: string | Uint8Array, piece = Number.POSITIVE_INFINITY): ReadText {
    const bytes = typeof given === 'string' ? new TextEncoder().encode(given) : given
    const list = new SampleList()
    const parser = new TextParser(this.#format, this.#limits, list, this.#memory)
    for (let at = 0; at < bytes.length; at += piece) for (const _ of parser.push(bytes.subarray(at, at + piece)));
    for (const _ of parser.end());
    return { samples: list.samples, families: parser.families, looked: list.looked }
  }
}
