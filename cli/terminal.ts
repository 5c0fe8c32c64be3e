/**
 * Where a command prints, asks and is interrupted. Results go to stdout, everything said about them to stderr, so that
 * a pipe carries results only.
 */
import type { Readable } from 'node:stream'
import pc from 'picocolors'
import { ExitCode, Failure } from './failure.ts'
import { askSecret } from './prompt.ts'
import { processScreen, type Screen } from './top/screen.ts'

export type Colors = ReturnType<typeof pc.createColors>

export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  /** Standard input as it comes. */
  readonly input: Readable
  /** For stdout: without effect where it is no terminal. */
  readonly colors: Colors
  /**
   * One or more lines to stdout. Settles when the system has taken them; rejects with EPIPE where nobody reads any more,
   * else with Failure, as where a disk is full.
   */
  print(text: string): Promise<void>
  /** Whether somebody watches stderr. */
  readonly isWatched: boolean
  /** One or more lines to stderr. */
  note(text: string): void
  /** All of it, key by key; undefined where stdin or stdout is no terminal. */
  readonly screen?: Screen | undefined
  /** Reads a line without showing it. Throws Failure where nobody can be asked. */
  askSecret(question: string): Promise<string>
  /** The first Ctrl-C or SIGTERM calls, a second one kills; gives a function that undoes it. */
  onInterrupt(callback: () => void): () => void
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export function processTerminal({ env, stdin, stdout, stderr }: NodeJS.Process): Terminal {
  // Whoever prints learns of it by its promise.
  stdout.on('error', () => {})
  stderr.on('error', () => {})
  return {
    env,
    input: stdin,
    colors: pc.createColors(stdout.isTTY === true && pc.isColorSupported),
    print: (text) =>
      new Promise((resolve, reject) => {
        stdout.write(`${text}\n`, (error) => (error ? reject(unwritten(error)) : resolve()))
      }),
    isWatched: stderr.isTTY === true,
    note: (text) => stderr.write(`${text}\n`),
    screen: processScreen(stdin, stdout, process),
    askSecret: (question) => askSecret(question, stdin, stderr),
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

function unwritten(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return error
  return new Failure(ExitCode.FAILED, `the output takes no more: ${error.message}`, { cause: error })
}
