/**
 * The sample lines of an exposition, one after the other as they came. Families have places in it instead of texts: there may be
 * a hundred thousand of them with a line each, and a text that grows is a tree with several nodes for each line.
 */

/** What a line takes of memory besides its text: its family knows its place, and until its block is closed it is a tree. */
const LINE_BYTES = 64
/** What labels take of memory besides their text: an entry of the map, and one among those of their family. */
const LABELS_BYTES = 256
/** Characters after which a block is closed: lines stand in one block as a whole, so that a longer one makes a longer block. */
const BLOCK = 1 << 15

export class Lines {
  readonly #blocks: string[] = []
  #open: string[] = []
  #openLength = 0
  /** Each once: a host has the same ones in all its families. */
  readonly #labels = new Map<string, string>()
  #bytes = 0

  /** About what they take of memory. */
  get bytes(): number {
    return this.#bytes
  }

  /** The place of a new line: its block, and where it begins there. */
  add(line: string): number {
    const place = this.#blocks.length * BLOCK + this.#openLength
    this.#open.push(line)
    this.#openLength += line.length
    this.#bytes += line.length + LINE_BYTES
    if (this.#openLength >= BLOCK) this.#close()
    return place
  }

  /** Whether the line at `next` follows those of this place and length, in the same block. */
  follow(place: number, length: number, next: number): boolean {
    return next === place + length && Math.floor(next / BLOCK) === Math.floor(place / BLOCK)
  }

  /** Lines that follow each other. */
  text(place: number, length: number): string {
    if (this.#openLength > 0) this.#close()
    const start = place % BLOCK
    return (this.#blocks[Math.floor(place / BLOCK)] as string).slice(start, start + length)
  }

  /** The same text for the same labels, whoever has them. */
  labels(text: string): string {
    const known = this.#labels.get(text)
    if (known !== undefined) return known
    this.#labels.set(text, text)
    this.#bytes += text.length + LABELS_BYTES
    return text
  }

  #close(): void {
    this.#blocks.push(this.#open.join(''))
    this.#open = []
    this.#openLength = 0
  }
}
