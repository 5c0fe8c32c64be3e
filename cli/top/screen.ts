/**
 * Full-screen access to a terminal: the alternate screen, and the keyboard key by key. The terminal is restored however the
 * process ends: `close` is also called when it exits.
 */
import type { Readable } from 'node:stream'

export interface Keyboard extends Readable {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
}

export interface Size {
  readonly columns: number
  readonly rows: number
}

export interface ScreenListener {
  /** Receives bytes of keys, split anywhere. */
  keys(bytes: Uint8Array): void
  resized(): void
  /** The terminal was closed. */
  ended(): void
}

export interface Screen {
  size(): Size
  /** Takes over the terminal; returns a function that restores it and may be called twice. */
  open(listener: ScreenListener): () => void
  write(text: string): void
}

interface Output {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

interface Exiting {
  on(event: 'exit' | 'SIGHUP', listener: () => void): unknown
  off(event: 'exit' | 'SIGHUP', listener: () => void): unknown
}

/** Alternate screen, no cursor, no line wrap: a character of unexpected width must not shift the following lines. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'

/** One character or the name of a key. The sequences of other keys are ignored. */
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

/** Keys by what follows ESC [ or ESC O: without parameters, or with one and a tilde. */
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
/** After ESC: [ or O, parameters, intermediates, and a final character. */
const UNFINISHED = /^(\[[0-?]*[ -/]*|O)?$/
const FINISHED = /^(?:\[([0-?]*[ -/]*[@-~])|O([ -~]))/
const MAX_SEQUENCE = 32

/** Undefined if one of the two is not a terminal. */
export function processScreen(keyboard: Keyboard, output: Output, exiting: Exiting): Screen | undefined {
  if (!keyboard.isTTY || !output.isTTY) return undefined
  return {
    size: () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    write: (text) => void output.write(text),
    open({ keys, resized, ended }) {
      let isOpen = true
      const close = () => {
        if (!isOpen) return
        isOpen = false
        // The error listener stays: a terminal that was hung up can still report errors.
        keyboard.off('data', keys).off('end', ended).pause()
        output.off('resize', resized)
        exiting.off('exit', close)
        exiting.off('SIGHUP', ended)
        keyboard.setRawMode?.(false)
        output.write(LEAVE)
      }
      exiting.on('exit', close)
      // Without a listener, SIGHUP would end the process without the event 'exit'.
      exiting.on('SIGHUP', ended)
      output.write(ENTER)
      keyboard.setRawMode?.(true)
      output.on('resize', resized)
      keyboard.on('data', keys).on('end', ended).on('error', ended).resume()
      return close
    },
  }
}

/** Writes only the lines that differ from those drawn before. */
export class Painter {
  readonly #write: (text: string) => void
  #drawn: readonly string[] = []

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  draw(lines: readonly string[]): void {
    const isAnew = this.#drawn.length !== lines.length
    const changed = lines.flatMap((line, i) =>
      isAnew || line !== this.#drawn[i] ? [`\x1b[${i + 1};1H\x1b[K${line}\x1b[0m`] : [],
    )
    if (changed.length > 0) this.#write(`${isAnew ? '\x1b[2J' : ''}${changed.join('')}`)
    this.#drawn = lines
  }

  /** The next draw() writes all lines. */
  forget(): void {
    this.#drawn = []
  }
}

/**
 * Decodes the bytes of a keyboard. Special keys arrive as escape sequences (ECMA-48 5.4), which may be split anywhere. Each of
 * them begins with the byte of the Escape key, so that only a pause shows that it was the Escape key itself.
 */
export class KeyReader {
  readonly #decoder = new TextDecoder()
  #rest = ''

  /** Whether a sequence or the Escape key has begun: call `settle` if no more bytes arrive for a moment. */
  get isPending(): boolean {
    return this.#rest !== ''
  }

  read(bytes: Uint8Array): Key[] {
    const keys: Key[] = []
    this.#rest += this.#decoder.decode(bytes, { stream: true })
    while (this.#rest !== '') {
      if (this.#rest.startsWith(ESCAPE) && UNFINISHED.test(this.#rest.slice(1))) {
        // No terminal sends such a long sequence.
        if (this.#rest.length > MAX_SEQUENCE) this.#rest = ''
        break
      }
      keys.push(...this.#next())
    }
    return keys
  }

  /** Treats what has begun as the Escape key, or drops it. */
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
