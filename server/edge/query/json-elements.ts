/**
 * Reads a long answer in JSON piece by piece: each object of a list is parsed by itself as soon as it is there, and what stands
 * around the lists at the end. So no step takes long, and the text is never in memory as a whole.
 */
const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

export class JsonElements {
  readonly #take: (element: unknown) => void
  readonly #mostCharacters: number
  /** Around the lists, and of the object that is read now. */
  #around = ''
  #element = ''
  /** The lists and objects that are open, by the characters that open them. */
  readonly #open: number[] = []
  /** How many were open where the object begins that is read; 0 if none is. */
  #elementAt = 0
  #isInText = false
  #isEscaped = false
  #isAfterElement = false

  /** `mostCharacters`: of one object, and of what stands around all. */
  constructor(mostCharacters: number, take: (element: unknown) => void) {
    this.#mostCharacters = mostCharacters
    this.#take = take
  }

  /** Throws SyntaxError. */
  add(piece: string): void {
    let from = 0
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (code === BACKSLASH) this.#isEscaped = true
        else if (code === QUOTE) this.#isInText = false
      } else if (code === QUOTE) this.#isInText = true
      else if (code === OPEN_OBJECT || code === OPEN_LIST) {
        this.#isAfterElement = false
        if (this.#elementAt === 0 && code === OPEN_OBJECT && this.#open.at(-1) === OPEN_LIST) {
          this.#keep(piece.slice(from, at))
          from = at
          this.#elementAt = this.#open.length + 1
        }
        this.#open.push(code)
      } else if (code === CLOSE_OBJECT || code === CLOSE_LIST) {
        this.#isAfterElement = false
        const isElement = this.#elementAt === this.#open.length && this.#elementAt > 0
        this.#open.pop()
        if (isElement) {
          this.#keep(piece.slice(from, at + 1))
          from = at + 1
          this.#end()
        }
      } else if (code === COMMA && this.#isAfterElement && this.#elementAt === 0) {
        // What stands around has an empty list then.
        this.#isAfterElement = false
        from = at + 1
      }
    }
    this.#keep(piece.slice(from))
  }

  /** What stands around the objects of lists, whose lists are empty. Throws SyntaxError. */
  rest(): unknown {
    return JSON.parse(this.#around)
  }

  #keep(text: string): void {
    if (this.#elementAt > 0) this.#element += text
    else this.#around += text
    if (Math.max(this.#element.length, this.#around.length) > this.#mostCharacters)
      throw new SyntaxError(`an element of more than ${this.#mostCharacters} characters`)
  }

  #end(): void {
    this.#take(JSON.parse(this.#element))
    this.#element = ''
    this.#elementAt = 0
    this.#isAfterElement = true
  }
}
