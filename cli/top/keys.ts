/**
 * From the bytes of a keyboard to keys. A key that is no character comes as an escape sequence (ECMA-48 5.4), which may
 * be cut anywhere; and the Escape key is the beginning of all of them, so that only silence tells that it was one.
 */

/** One character, or the name of a key. Sequences of other keys are swallowed. */
export type Key = string

const CONTROLS: Readonly<Record<string, Key>> = {
  '\x02': 'page-up',
  '\x03': 'interrupt',
  '\x04': 'interrupt',
  '\x06': 'page-down',
  '\b': 'backspace',
  '\n': 'enter',
  '\x0c': 'redraw',
  '\r': 'enter',
  '\x15': 'clear',
  '\x7f': 'backspace',
}

/** By what follows ESC [ or ESC O: without parameters, or with one and a tilde. */
const SEQUENCES: Readonly<Record<string, Key>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  F: 'end',
  H: 'home',
  '1~': 'home',
  '4~': 'end',
  '5~': 'page-up',
  '6~': 'page-down',
  '7~': 'home',
  '8~': 'end',
}

const ESCAPE = '\x1b'
/** Behind ESC: [ or O, parameters, intermediates; then the final one. */
const UNFINISHED = /^(\[[0-?]*[ -/]*|O)?$/
const FINISHED = /^(?:\[([0-?]*[ -/]*[@-~])|O([ -~]))/
const MAX_SEQUENCE = 32

export class KeyReader {
  readonly #decoder = new TextDecoder()
  #rest = ''

  /** Whether a sequence, or the Escape key, has begun: call `settle` when nothing more comes for a moment. */
  get isPending(): boolean {
    return this.#rest !== ''
  }

  read(bytes: Uint8Array): Key[] {
    const keys: Key[] = []
    this.#rest += this.#decoder.decode(bytes, { stream: true })
    while (this.#rest !== '') {
      if (this.#rest.startsWith(ESCAPE) && UNFINISHED.test(this.#rest.slice(1))) {
        // No terminal sends this; what goes on for ever is not kept.
        if (this.#rest.length > MAX_SEQUENCE) this.#rest = ''
        break
      }
      keys.push(...this.#next())
    }
    return keys
  }

  /** Nothing more came: what has begun was the Escape key, or is given up. */
  settle(): Key[] {
    const isEscape = this.#rest === ESCAPE
    this.#rest = ''
    return isEscape ? ['escape'] : []
  }

  #next(): Key[] {
    const sequence = this.#rest.startsWith(ESCAPE) ? FINISHED.exec(this.#rest.slice(1)) : null
    if (sequence) {
      this.#rest = this.#rest.slice(1 + sequence[0].length)
      const key = SEQUENCES[sequence[1] ?? sequence[2] ?? '']
      return key ? [key] : []
    }
    const character = String.fromCodePoint(this.#rest.codePointAt(0)!)
    this.#rest = this.#rest.slice(character.length)
    if (character === ESCAPE) return ['escape']
    const control = CONTROLS[character]
    if (control) return [control]
    return character < ' ' ? [] : [character]
  }
}
