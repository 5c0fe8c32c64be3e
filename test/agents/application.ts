/** A small C# program and the agent, built from their sources, and how they are run by a real Mono. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export const MONO = '/usr/bin/mono'
const MCS = '/usr/bin/mcs'
export const BUILD = fileURLToPath(new URL('../../agents/mono/build', import.meta.url))
export const AGENT = fileURLToPath(new URL('../../agents/mono/CinnabarAgent.exe', import.meta.url))

export const missing = !existsSync(MONO) || !existsSync(MCS)
/** Behind the name of tests that are skipped. */
export const howTo = missing ? ' (not installed: apt-get install mono-runtime mono-mcs)' : ''

/** Builds the agent, unless it is newer than its sources: the files of tests that need it share one. */
export function buildAgent(): void {
  const folder = dirname(BUILD)
  const sources = [
    BUILD,
    ...readdirSync(folder)
      .filter((name) => name.endsWith('.cs'))
      .map((name) => join(folder, name)),
  ]
  const built = statSync(AGENT, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (sources.some((source) => statSync(source).mtimeMs > built)) execFileSync(BUILD)
}

/** Compiles a C# source beside this file into a directory, and returns the program. */
export function compile(directory: string, source = 'Program.cs'): string {
  const program = join(directory, source.replace('.cs', '.exe'))
  execFileSync(MCS, ['-optimize', `-out:${program}`, fileURLToPath(new URL(source, import.meta.url))])
  return program
}

export class Application {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #errors: Promise<string>
  readonly #ended: Promise<number | null>
  readonly #out: Buffer[] = []

  /** `options`: of the agent; undefined: without it. */
  constructor(program: string, options: string | undefined, args: readonly string[], environment = {}) {
    const agent = options === undefined ? [] : [`--agent=${AGENT}${options === '' ? '' : `:${options}`}`]
    const child = spawn(MONO, [...agent, program, ...args], { env: { ...process.env, ...environment } })
    this.#child = child
    child.stdout.on('data', (chunk: Buffer) => this.#out.push(chunk))
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    this.#errors = text(child.stderr)
    this.#ended = new Promise((resolve) => child.on('close', resolve))
  }

  /** Gives a command, and waits until it is done. */
  async obey(command: string): Promise<void> {
    this.#child.stdin?.write(`${command}\n`)
    while ((await this.#line()) !== command);
  }

  /** Waits until it has said something. */
  async begun(): Promise<void> {
    await this.#line()
  }

  /** Of the threads that the kernel knows by name. */
  threads(): string[] {
    const tasks = `/proc/${this.#child.pid}/task`
    return readdirSync(tasks).map((thread) => readFileSync(join(tasks, thread, 'comm'), 'utf8').trim())
  }

  /** Closes its standard input and waits for its end. What it wrote is there byte by byte. */
  async end(): Promise<{ code: number | null; out: string; err: string }> {
    this.#child.stdin?.end()
    while ((await this.#line()) !== undefined);
    return { code: await this.#ended, out: Buffer.concat(this.#out).toString('latin1'), err: await this.#errors }
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  async #line(): Promise<string | undefined> {
    const { done, value } = await this.#lines.next()
    return done ? undefined : value
  }
}
