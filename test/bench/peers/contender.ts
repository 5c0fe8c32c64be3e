/** What takes part in `durable`: a server that is started, and the two ends that drive it. */
import { execFileSync } from 'node:child_process'
import type { Job } from '../processes/end.ts'
import type { ServerUnderTest } from '../processes/server-under-test.ts'

export interface Started {
  readonly server: ServerUnderTest
  /** A server that the values come through before; its cost is counted apart. */
  readonly below?: ServerUnderTest
  /** What else works for it, by what it is; its cost is counted apart. */
  readonly others?: Readonly<Record<string, readonly ServerUnderTest[]>>
  /** Stops everything; without it the server, and the one below. */
  readonly stop?: () => Promise<void>
  readonly publisher: Job
  readonly consumer: Job
}

export interface Contender {
  readonly name: string
  /** What a reader has to know to judge the figure: persistence, acknowledgement. */
  readonly settings: string
  readonly values: number
  /** Starts the server with everything it keeps in `directory`. */
  start(directory: string): Promise<Started>
}

/** A contender that may not be installed, or too old for what it is asked. */
export interface Peer extends Contender {
  /** Why it cannot take part; undefined: it can. */
  missing(): string | undefined
}

/** What a program prints about its version, or undefined if there is no such program. */
export function versionOf(program: string, ...args: readonly string[]): string | undefined {
  try {
    const lines = execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      .toString()
      .trim()
    return lines.split('\n', 1)[0] ?? ''
  } catch (error) {
    // mosquitto -h exits with 3 after it has printed what is wanted.
    const printed = error instanceof Error && 'stdout' in error ? String(error.stdout ?? '').trim() : ''
    return printed === '' ? undefined : printed.split('\n', 1)[0]
  }
}
