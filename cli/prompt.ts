/** Reads a line from a terminal without showing it. Ctrl-C comes as a character while the terminal is raw. */
import type { Readable } from 'node:stream'
import { ExitCode, Failure } from './failure.ts'

export interface Keyboard extends Readable {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
}

const INTERRUPT = '\x03'
const END = ['\r', '\n', '\x04']
const RUBOUT = ['\b', '\x7f']
/** Ctrl-U. */
const KILL = '\x15'

/** Throws Failure where there is no terminal, or the one who is asked gives up. */
export function askSecret(
  question: string,
  keyboard: Keyboard,
  screen: { write(text: string): unknown },
): Promise<string> {
  if (!keyboard.isTTY) {
    const message = `${question.trim()} cannot be asked here: there is no terminal. Name a file or a variable: see --help`
    return Promise.reject(new Failure(ExitCode.USAGE, message))
  }
  return new Promise((resolve, reject) => {
    const decoder = new TextDecoder()
    const typed: string[] = []
    const finish = (rest = '') => {
      keyboard.off('data', read).off('end', ended).pause()
      // What was typed ahead answers the next question.
      if (rest) keyboard.unshift(Buffer.from(rest))
      keyboard.setRawMode?.(false)
      screen.write('\n')
    }
    const ended = () => {
      finish()
      resolve(typed.join(''))
    }
    const read = (chunk: Uint8Array) => {
      const keys = [...decoder.decode(chunk, { stream: true })]
      for (const [index, key] of keys.entries()) {
        if (key === INTERRUPT) {
          finish()
          return reject(new Failure(ExitCode.FAILED, 'interrupted'))
        }
        if (END.includes(key)) {
          finish(keys.slice(index + 1).join(''))
          return resolve(typed.join(''))
        }
        if (RUBOUT.includes(key)) typed.pop()
        else if (key === KILL) typed.length = 0
        else typed.push(key)
      }
    }
    screen.write(question)
    keyboard.setRawMode?.(true)
    // A stream that was paused stays so until told otherwise.
    keyboard.on('end', ended).on('data', read).resume()
  })
}
