/** A run of the script in a process of its own, on a directory in memory where there is one, and what it has left there. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../../support/child.ts'
import { compiled } from '../../support/compiled.ts'
import { Expected } from './check.ts'
import { batchFromText, Known, type Line } from './history.ts'

const MEMORY = '/dev/shm'

export interface ScriptOptions {
  readonly seed: number
  readonly batches: number
  /** How it ends; cleanly if nothing is said. process.ts says which ways there are. */
  readonly end?: 'abrupt' | 'log' | 'idle'
}

export class ScriptedRun {
  /** Where everything lies. */
  readonly scratch: string
  /** The data directory that the script has. */
  readonly data: string
  /** What it says about itself. */
  readonly history: string
  /** What strace writes, if it runs under it. */
  readonly trace: string
  readonly #batches: string

  constructor(name: string) {
    this.scratch = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), `${name}-`))
    this.data = join(this.scratch, 'data')
    this.history = join(this.scratch, 'history')
    this.trace = join(this.scratch, 'trace')
    this.#batches = join(this.scratch, 'batches')
    mkdirSync(this.data)
  }

  /** Starts the script; with `strace`, under it, with these options and what is read or written of `files` and of the history. */
  start(
    { seed, batches, end }: ScriptOptions,
    strace?: { readonly options: readonly string[]; readonly files: readonly string[] },
  ): Child {
    const program = compiled('test/chaos/power-cut/process.ts')
    const script = [program, this.data, this.history, this.#batches, String(seed), String(batches), end ?? '']
    if (strace === undefined) return new Child(process.execPath, script)
    const paths = [this.history, ...strace.files.map((name) => join(this.data, name))].flatMap((path) => ['-P', path])
    const options = ['-f', '--seccomp-bpf', '-y', '-o', this.trace, ...strace.options, ...paths]
    return new Child('strace', [...options, process.execPath, ...script])
  }

  /** The whole lines of the history. */
  lines(): Line[] {
    return wholeLines(this.history).map((line) => JSON.parse(line))
  }

  known(): Known {
    const known = new Known()
    for (const line of this.lines()) known.add(line)
    return known
  }

  /** What the store has to hold after each batch. */
  expected(): Expected {
    return new Expected(wholeLines(this.#batches).map(batchFromText))
  }

  remove(): void {
    rmSync(this.scratch, { recursive: true, force: true })
  }
}

function wholeLines(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
}
