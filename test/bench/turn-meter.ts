/**
 * How long the turns of the event loop of a server take, measured inside of it, so that they can be told apart from the load of the
 * machine: of what passes between two timers of a millisecond, /proc says how long the thread was on a core, and how long it waited for one
 * (Linux only). It takes a few percent of a core while it measures.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../rig/patience.ts'

export interface Turns {
  /** The longest time that the thread was on a core between two timers, and from one to the next whatever it did. */
  readonly longestCpuMs: number
  readonly longestMs: number
  /** How long it waited for a core in all. */
  readonly waitedMs: number
}

/** What the main thread of the server runs: it measures as long as the file `on` is there, and then leaves the file `turns`. */
const PROGRAM = `
const { existsSync, readFileSync, writeFileSync } = await import('node:fs')
const { isMainThread } = await import('node:worker_threads')
const spent = () => readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ').map((ns) => Number(ns) / 1e6)
let meter, last, turns
const measure = () => {
  const [cpu, waited] = spent()
  const now = performance.now()
  turns.longestCpuMs = Math.max(turns.longestCpuMs, cpu - last.cpu)
  turns.longestMs = Math.max(turns.longestMs, now - last.now)
  turns.waitedMs += waited - last.waited
  last = { now, cpu, waited }
}
const look = () => {
  const isOn = existsSync(directory + '/on')
  if (isOn && meter === undefined) {
    turns = { longestCpuMs: 0, longestMs: 0, waitedMs: 0 }
    const [cpu, waited] = spent()
    last = { now: performance.now(), cpu, waited }
    meter = setInterval(measure, 1).unref()
  } else if (!isOn && meter !== undefined) {
    clearInterval(meter)
    meter = undefined
    writeFileSync(directory + '/turns', JSON.stringify(turns))
  }
}
if (isMainThread) setInterval(look, 100).unref()
`

export class TurnMeter {
  readonly #directory = mkdtempSync(join(tmpdir(), 'cinnabar-turns-'))

  /** For a `ServerProcess`. */
  get preload(): string {
    return `const directory = ${JSON.stringify(this.#directory)}\n${PROGRAM}`
  }

  start(): void {
    writeFileSync(join(this.#directory, 'on'), '')
  }

  async end(): Promise<Turns> {
    rmSync(join(this.#directory, 'on'))
    const turns = join(this.#directory, 'turns')
    await until('the turns are measured', () => existsSync(turns) && readFileSync(turns).length > 0)
    return JSON.parse(readFileSync(turns, 'utf8')) as Turns
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
