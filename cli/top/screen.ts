/**
 * A whole terminal: the alternate screen, and the keyboard key by key. Whatever ends the process, the terminal is given
 * back as it was: `close` is also called when it exits.
 */
import type { Keyboard } from '../prompt.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

export interface ScreenListener {
  /** Bytes of keys, cut anywhere. */
  keys(bytes: Uint8Array): void
  resized(): void
  /** Nobody types any more: the terminal is gone. */
  ended(): void
}

export interface Screen {
  size(): Size
  /** Takes the terminal over; gives a function that gives it back, and may be called twice. */
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

/** Alternate screen, no cursor, no line that runs on: a character of unexpected width must not push the rest down. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'

/** Undefined where one of the two is no terminal. */
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
        // Its errors are still listened to: a terminal that is hung up has them later too.
        keyboard.off('data', keys).off('end', ended).pause()
        output.off('resize', resized)
        exiting.off('exit', close)
        exiting.off('SIGHUP', ended)
        keyboard.setRawMode?.(false)
        output.write(LEAVE)
      }
      exiting.on('exit', close)
      // By itself it would end the process without 'exit'.
      exiting.on('SIGHUP', ended)
      output.write(ENTER)
      keyboard.setRawMode?.(true)
      output.on('resize', resized)
      keyboard.on('data', keys).on('end', ended).on('error', ended).resume()
      return close
    },
  }
}

/** Writes what is not there yet: lines that differ from those drawn before, each at its place. */
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

  /** Nothing is known about what the screen shows. */
  forget(): void {
    this.#drawn = []
  }
}
