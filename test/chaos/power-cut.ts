/**
 * The power goes: strace records what a process writes to the database and when it answers what; from that, states are
 * built that a cut could leave, opened, and held against the answers. -shm is left out: SQLite makes it anew.
 */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import { located, type Rig, type RigOptions, Tally } from '../rig/rig.ts'
import { Random } from '../support/random.ts'
import { checkState, type Expected, openState } from './power-cut/check.ts'
import { Disk } from './power-cut/disk.ts'
import { Known, type Line } from './power-cut/history.ts'
import { ScriptedRun } from './power-cut/scripted.ts'
import { eventsOf, SYSCALLS, straceMissing, type TraceEvent } from './power-cut/trace.ts'

/** States of one recorded run. */
const STATES = 500
const MIN_TRACES = 2
const BATCHES = 100
/** One state in so many is opened by the whole store, thread and all. */
const WHOLE_STORE = 100
const GENERATION = 'generation'
const FILES = ['cinnabar.db', 'cinnabar.db-wal', 'cinnabar.db-journal', GENERATION]

interface Recording {
  readonly events: readonly TraceEvent[]
  readonly lines: readonly Line[]
  readonly expected: Expected
}

/** States, and how many of them lie behind a checkpoint, in its midst, or hold less than was written. */
export const powerCut: Rig = async ({ seed, count, say }: RigOptions) => {
  const missing = straceMissing()
  if (missing !== undefined) throw new Error(missing)
  const traces = Math.max(MIN_TRACES, Math.ceil(count / STATES))
  const tally = new Tally(['states', 'traces', 'events', 'checkpoints', 'lost', 'unexpected', 'reused'])
  tally.add('traces', traces)
  for (let trace = 0; trace < traces; trace++) {
    const states = Math.floor((count * (trace + 1)) / traces) - Math.floor((count * trace) / traces)
    const run = new ScriptedRun('power-cut')
    try {
      const recording = await record(run, seed + trace)
      await cutAll(recording, { run, seed: seed + trace, states, tally })
      say(`trace ${trace + 1} of ${traces} (seed ${seed + trace}): ${states} states`)
    } finally {
      run.remove()
    }
  }
  return tally.totals()
}

/** Runs the script under strace. */
async function record(run: ScriptedRun, seed: number): Promise<Recording> {
  const options = ['-xx', '-s', '1000000', '-e', `trace=${SYSCALLS}`]
  const child = run.start({ seed, batches: BATCHES }, { options, files: ['.', ...FILES] })
  const code = await child.end()
  if (code !== 0) throw new Error(`seed ${seed}: the script ended with ${code}: ${child.errors}`)
  const lines = run.lines()
  const events = [...eventsOf(run.trace, run.data, run.history)]
  if (events.filter(({ kind }) => kind === 'line').length !== lines.length)
    throw new Error(`seed ${seed}: strace has not seen every line of the history`)
  rmSync(run.trace)
  return { events, lines, expected: run.expected() }
}

interface Cuts {
  readonly run: ScriptedRun
  readonly seed: number
  readonly states: number
  readonly tally: Tally
}

async function cutAll({ events, lines, expected }: Recording, { run, seed, states, tally }: Cuts): Promise<void> {
  const random = new Random(seed)
  const moments = Array.from({ length: states }, () => random.below(events.length + 1)).sort((a, b) => a - b)
  const disk = new Disk()
  const known = new Known()
  let [at, line] = [0, 0]
  for (const [number, moment] of moments.entries()) {
    for (; at < moment; at++) {
      const event = events[at] as TraceEvent
      disk.apply(event)
      if (event.kind === 'line') known.add(lines[line++] as Line)
      if (event.kind === 'sync' && event.name === FILES[0]) tally.add('checkpoints')
    }
    const { data: directory, scratch } = run
    lay(directory, disk.cut(random), join(scratch, GENERATION))
    try {
      if (number % WHOLE_STORE === 0) await openWhole(directory)
      const opened = openState(directory)
      try {
        checkState(opened, known, expected)
      } finally {
        opened.close()
      }
    } catch (error) {
      throw located(error, `seed ${seed}, state ${number}, a cut after event ${moment} of ${events.length}`)
    }
    tally.add('states')
    tally.add(known.written > known.durable ? 'with a batch under way' : 'with all answered')
  }
  tally.add('events', events.length)
}

/** In the directory and the file that were served, since others would count as restored. `aside`: where the file waits. */
function lay(directory: string, files: Iterable<readonly [name: string, bytes: Uint8Array]>, aside: string): void {
  const served = join(directory, GENERATION)
  // Unless a start without it has made another.
  if (!existsSync(aside)) renameSync(served, aside)
  for (const name of readdirSync(directory)) rmSync(join(directory, name))
  for (const [name, bytes] of files) {
    if (name === GENERATION) renameSync(aside, served)
    writeFileSync(join(directory, name), bytes)
  }
}

/** As the server opens and closes it. */
async function openWhole(directory: string): Promise<void> {
  const store = new SqliteStore({ directory, reserveBytes: 0 })
  const onFailed = (error: Error): void => {
    throw error
  }
  await store.open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed })
  await store.close()
}
