/**
 * The power goes: strace records what a process writes to the database and when it answers what; from that, states are
 * built that a cut could leave, opened, and held against the answers. -shm is left out: SQLite makes it anew.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import { compiled } from '../support/compiled.ts'
import { Random } from '../support/random.ts'
import { checkState, Expected, openState } from './power-cut/check.ts'
import { Disk } from './power-cut/disk.ts'
import { batchFromText, Known, type Line } from './power-cut/history.ts'
import { eventsOf, SYSCALLS, straceMissing, type TraceEvent } from './power-cut/trace.ts'
import type { Rig, RigOptions, Totals } from './rig.ts'

/** States of one recorded run. */
const STATES = 500
const MIN_TRACES = 2
const BATCHES = 100
/** One state in so many is opened by the whole store, thread and all. */
const WHOLE_STORE = 100
const GENERATION = 'generation'
const FILES = ['cinnabar.db', 'cinnabar.db-wal', 'cinnabar.db-journal', GENERATION]

/** The data directory of the server that is recorded. */
const DATA = 'data'

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
  const totals: Record<string, number> = {
    states: 0,
    traces,
    events: 0,
    checkpoints: 0,
    lost: 0,
    unexpected: 0,
    reused: 0,
  }
  for (let trace = 0; trace < traces; trace++) {
    const states = Math.floor((count * (trace + 1)) / traces) - Math.floor((count * trace) / traces)
    const scratch = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'power-cut-'))
    try {
      const recording = await record(scratch, seed + trace)
      await cutAll(recording, { scratch, seed: seed + trace, states, totals })
      say(`trace ${trace + 1} of ${traces} (seed ${seed + trace}): ${states} states`)
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  }
  return totals as Totals
}

/** Runs the script under strace. */
async function record(scratch: string, seed: number): Promise<Recording> {
  const [data, history, batches, trace] = [DATA, 'history', 'batches', 'trace'].map((name) => join(scratch, name))
  if (data === undefined || history === undefined || batches === undefined || trace === undefined) throw new Error()
  mkdirSync(data)
  const paths = [data, history, ...FILES.map((name) => join(data, name))].flatMap((path) => ['-P', path])
  const script = [compiled('test/chaos/power-cut/process.ts'), data, history, batches, String(seed), String(BATCHES)]
  const child = spawn(
    'strace',
    ['-f', '--seccomp-bpf', '-y', '-xx', '-s', '1000000', '-o', trace, '-e', `trace=${SYSCALLS}`, ...paths].concat(
      process.execPath,
      script,
    ),
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`seed ${seed}: the script ended with ${code}: ${errors}`)
  const text = (file: string): string[] => readFileSync(file, 'utf8').trim().split('\n')
  const lines = text(history).map((line): Line => JSON.parse(line))
  const events = [...eventsOf(trace, data, history)]
  if (events.filter(({ kind }) => kind === 'line').length !== lines.length)
    throw new Error(`seed ${seed}: strace has not seen every line of the history`)
  rmSync(trace)
  return { events, lines, expected: new Expected(text(batches).map(batchFromText)) }
}

interface Cuts {
  readonly scratch: string
  readonly seed: number
  readonly states: number
  readonly totals: Record<string, number>
}

async function cutAll({ events, lines, expected }: Recording, { scratch, seed, states, totals }: Cuts): Promise<void> {
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
      if (event.kind === 'sync' && event.name === FILES[0]) add(totals, 'checkpoints')
    }
    const directory = join(scratch, DATA)
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
      const what = error instanceof Error ? error.message : String(error)
      throw new Error(`seed ${seed}, state ${number}, a cut after event ${moment} of ${events.length}: ${what}`)
    }
    add(totals, 'states')
    add(totals, known.written > known.durable ? 'with a batch under way' : 'with all answered')
  }
  add(totals, 'events', events.length)
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

function add(totals: Record<string, number>, what: string, count = 1): void {
  totals[what] = (totals[what] ?? 0) + count
}
