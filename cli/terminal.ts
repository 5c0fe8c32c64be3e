/**
 * The terminal of a command: printing, prompting and interrupts. Results go to stdout and notes about them to stderr, so that
 * a pipe receives only results.
 */
import type { Readable } from 'node:stream'
import pc from 'picocolors'
import { calledAs } from './called-as.ts'
import { ExitCode, Failure } from './failure.ts'
import { type Keyboard, processScreen, type Screen } from './top/screen.ts'

export type Colors = ReturnType<typeof pc.createColors>

export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  /** The words that begin a command line of this program, such as `npx cinnabar`. */
  readonly program: string
  /** Standard input. */
  readonly input: Readable
  /** Colours for stdout, without effect if that is not a terminal. */
  readonly colors: Colors
  /**
   * Prints one or more lines to stdout. Resolves when the system has accepted them; rejects with EPIPE if the pipe is closed,
   * otherwise with Failure, for example if a disk is full.
   */
  print(text: string): Promise<void>
  /** Whether stderr is a terminal. */
  readonly isWatched: boolean
  /** Prints one or more lines to stderr. */
  note(text: string): void
  /** Full-screen access; undefined if stdin or stdout is not a terminal. */
  readonly screen?: Screen | undefined
  /** Reads a line without showing it. Rejects with Failure if stdin is not a terminal. */
  askSecret(question: string): Promise<string>
  /** Reads a line that is shown while it is typed; undefined if stdin is not a terminal. */
  ask(question: string): Promise<string | undefined>
  /** The first Ctrl-C or SIGTERM calls back, a second one kills. Returns a function that removes the callback. */
  onInterrupt(callback: () => void): () => void
}

const PROGRESS_NOTE_MS = 1000
const INTERRUPT = '\x03'
const END = ['\r', '\n', '\x04']
const RUBOUT = ['\b', '\x7f']
/** Ctrl-U. */
const KILL = '\x15'
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export function processTerminal(process: NodeJS.Process): Terminal {
  const { env, stdin, stdout, stderr } = process
  // Errors are reported by the promises of print().
  stdout.on('error', () => {})
  stderr.on('error', () => {})
  return {
    env,
    program: calledAs(process),
    input: stdin,
    colors: pc.createColors(stdout.isTTY === true && pc.isColorSupported),
    print: (text) =>
      new Promise((resolve, reject) => {
        stdout.write(`${text}\n`, (error) => (error ? reject(outputError(error)) : resolve()))
      }),
    isWatched: stderr.isTTY === true,
    note: (text) => stderr.write(`${text}\n`),
    screen: processScreen(stdin, stdout, process),
    askSecret: (question) => askSecret(question, stdin, stderr),
    ask: (question) => ask(question, stdin, stderr),
    onInterrupt(callback) {
      const interrupted = () => {
        undo()
        callback()
      }
      const undo = () => {
        for (const signal of SIGNALS) process.off(signal, interrupted)
      }
      for (const signal of SIGNALS) process.on(signal, interrupted)
      return undo
    },
  }
}

function outputError(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return error
  return new Failure(ExitCode.FAILED, `cannot write the output: ${error.message}`, { cause: error })
}

/**
 * Reads a line from a terminal without showing it. Rejects with Failure if there is no terminal, or after Ctrl-C, which is an
 * ordinary character while the terminal is raw.
 */
export function askSecret(
  question: string,
  keyboard: Keyboard,
  screen: { write(text: string): unknown },
): Promise<string> {
  if (!keyboard.isTTY) {
    const message = `cannot prompt for "${question.trim()}" without a terminal: use a file or a variable, see --help`
    return Promise.reject(new Failure(ExitCode.USAGE, message))
  }
  return new Promise((resolve, reject) => {
    const decoder = new TextDecoder()
    const typed: string[] = []
    const finish = (rest = '') => {
      keyboard.off('data', read).off('end', ended).pause()
      // Characters that were typed ahead answer the next prompt.
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
    // A paused stream stays paused until it is resumed.
    keyboard.on('end', ended).on('data', read).resume()
  })
}

/** Reads a line from a terminal that shows it. Undefined if there is no terminal. */
export function ask(
  question: string,
  keyboard: Keyboard,
  screen: { write(text: string): unknown },
): Promise<string | undefined> {
  if (!keyboard.isTTY) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const decoder = new TextDecoder()
    let typed = ''
    const finish = (line: string) => {
      keyboard.off('data', read).off('end', ended).pause()
      resolve(line)
    }
    const ended = () => finish(typed)
    const read = (chunk: Uint8Array) => {
      typed += decoder.decode(chunk, { stream: true })
      const end = typed.search(/[\r\n]/)
      if (end >= 0) finish(typed.slice(0, end))
    }
    screen.write(question)
    keyboard.on('end', ended).on('data', read).resume()
  })
}

/**
 * Prints a note if the promise takes more than a second and stderr is a terminal. `why` finds out what it waits for, and must not
 * reject; an empty text says nothing.
 */
export async function withProgress<T>(
  terminal: Terminal,
  what: string,
  waiting: Promise<T>,
  why: () => Promise<string> = async () => '',
): Promise<T> {
  let isOver = false
  const note = async (): Promise<void> => {
    if (!terminal.isWatched) return
    const reason = await why()
    if (!isOver) terminal.note(reason === '' ? `${what} …` : `${what}; ${reason} …`)
  }
  const timer = setTimeout(() => void note(), PROGRESS_NOTE_MS)
  try {
    return await waiting
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}
