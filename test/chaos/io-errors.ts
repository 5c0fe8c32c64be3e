/**
 * System calls that fail: strace makes the Nth fsync or pwrite64 on the database's files fail, once, for a while, or from
 * then on. After a failed fsync nothing is answered any more; what had been answered is there when it is opened again.
 * No room is no failure: the store goes on by itself.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { located, type Rig, Tally } from '../rig/rig.ts'
import type { Child } from '../support/child.ts'
import { serverWithFailingSync } from './io-errors-server.ts'
import { checkState, openState } from './power-cut/check.ts'
import { ScriptedRun } from './power-cut/scripted.ts'
import { callsIn, straceMissing } from './power-cut/trace.ts'

const BATCHES = 40
/** A shorter run makes one whole server end, not one in each way. */
const SHORT = 50
const FILES = ['', '-wal', '-journal'].map((suffix) => `cinnabar.db${suffix}`)
/** How long a full disk stays full: so many writes. */
const FULL_WRITES = 12

/** A way to fail. `when`: strace's words for it, from the number of the first call that fails. */
interface Fault {
  readonly name: string
  readonly call: 'fsync' | 'fdatasync' | 'pwrite64'
  readonly error: 'EIO' | 'ENOSPC'
  readonly when: (first: number) => string
}

const once = (first: number): string => String(first)
const forever = (first: number): string => `${first}+`
const FAULTS: readonly Fault[] = [
  { name: 'fsync fails once', call: 'fsync', error: 'EIO', when: once },
  { name: 'fsync fails from then on', call: 'fsync', error: 'EIO', when: forever },
  { name: 'fsync finds no room', call: 'fsync', error: 'ENOSPC', when: once },
  { name: 'fdatasync fails once', call: 'fdatasync', error: 'EIO', when: once },
  { name: 'write fails once', call: 'pwrite64', error: 'EIO', when: once },
  { name: 'write fails from then on', call: 'pwrite64', error: 'EIO', when: forever },
  { name: 'no room once', call: 'pwrite64', error: 'ENOSPC', when: once },
  {
    name: 'no room for a while',
    call: 'pwrite64',
    error: 'ENOSPC',
    when: (first) => `${first}..${first + FULL_WRITES}`,
  },
  { name: 'no room from then on', call: 'pwrite64', error: 'ENOSPC', when: forever },
]

/** Each way to fail at the 1st, 2nd, 3rd ... call, or evenly spread if there are more calls than `count` allows. */
export const ioErrors: Rig = async ({ seed, count, say }) => {
  const missing = straceMissing()
  if (missing !== undefined) throw new Error(missing)
  const tally = new Tally(['runs', 'lost', 'unexpected', 'reused'])
  const calls = await callsOf(seed)
  const used = FAULTS.filter(({ call }) => (calls.get(call) ?? 0) > 0)
  for (const fault of used) {
    const end = (calls.get(fault.call) ?? 0) + 1
    const runs = Math.min(end, Math.ceil(count / used.length))
    for (let run = 0; run < runs; run++) {
      const first = runs === end ? run + 1 : Math.max(1, Math.round(((run + 0.5) * end) / runs))
      const outcome = await oneRun(seed, fault, first)
      for (const what of ['runs', `${fault.name}: ${outcome}`]) tally.add(what)
    }
    say(`${fault.name}: ${runs} of ${end} calls`)
  }
  tally.add('servers ended', await serverWithFailingSync(count < SHORT ? 1 : undefined))
  return tally.totals()
}

/** How often one thread makes each call in a run without faults: strace counts for each thread by itself. */
async function callsOf(seed: number): Promise<Map<string, number>> {
  const run = new Run(seed)
  try {
    await run.end([])
    run.check()
    const byThread = new Tally()
    const calls = new Map<string, number>()
    for (const { call, thread } of run.traced()) {
      const key = `${call} ${thread}`
      byThread.add(key)
      calls.set(call, Math.max(byThread.of(key), calls.get(call) ?? 0))
    }
    return calls
  } finally {
    run.script.remove()
  }
}

async function oneRun(seed: number, { name, call, error, when }: Fault, first: number): Promise<string> {
  const run = new Run(seed)
  try {
    const status = await run.end(['-e', `inject=${call}:error=${error}:when=${when(first)}`], when === forever)
    return run.judge(status, call, error)
  } catch (caught) {
    throw located(caught, `seed ${seed}, ${name}, call ${first}`)
  } finally {
    run.script.remove()
  }
}

/** A system call, as strace has written it down. */
interface Call {
  readonly call: string
  readonly thread: string
  readonly injected: boolean
  readonly line: string
}

class Run {
  readonly script = new ScriptedRun('io-errors')
  readonly #seed: number
  #errors = ''

  constructor(seed: number) {
    this.#seed = seed
  }

  /** Runs the script; gives its exit code, -1 if it was killed because the disk stays full. */
  async end(inject: string[], stuck = false): Promise<number> {
    const options = ['-s', '200', '-e', 'trace=pwrite64,write,fdatasync,fsync', ...inject]
    const child = this.script.start({ seed: this.#seed, batches: BATCHES }, { options, files: FILES })
    const killed = stuck && (await this.#killWhenFull(child))
    const code = await child.end()
    this.#errors = child.errors
    return killed ? -1 : Number(code)
  }

  /** A disk that stays full: the store waits for room, as long as it takes. True if it had to be killed. */
  async #killWhenFull(child: Child): Promise<boolean> {
    for (let fullSince = 0; child.isRunning; ) {
      await sleep(20)
      const lines = this.script.lines()
      if (lines.some(({ on }) => on === 'failed' || on === 'end')) return false
      if (lines.some(({ on }) => on === 'full')) fullSince++
      const [begun] = lines
      // Long enough that it has tried again several times.
      if (fullSince < 10 || begun?.on !== 'begun') continue
      process.kill(begun.pid, 'SIGKILL')
      return true
    }
    return false
  }

  /** The calls in the order of their ends; the history's lines are calls of write. */
  traced(): Call[] {
    const calls: Call[] = []
    for (const { thread, line } of callsIn(this.script.trace)) {
      const call = /^\w+(?=\()/.exec(line)?.[0]
      if (call !== undefined) calls.push({ call, thread, injected: line.includes('(INJECTED)'), line })
    }
    return calls
  }

  /** Opens it without faults: everything answered is there. */
  check(): void {
    const opened = openState(this.script.data)
    try {
      checkState(opened, this.script.known(), this.script.expected())
    } finally {
      opened.close()
    }
  }

  /** What came of it, or an Error if that must not be. */
  judge(status: number, call: string, error: string): string {
    this.check()
    const lines = this.script.lines()
    const failed = lines.find((line) => line.on === 'failed')
    const traced = this.traced()
    const at = traced.findIndex(({ injected }) => injected)
    if (at < 0) {
      if (status !== 0) throw new Error(`it ended with ${status} though nothing was made to fail: ${this.#errors}`)
      return 'passed unharmed'
    }
    const isSync = call !== 'pwrite64'
    if (isSync) nothingAnsweredAfterFailure(traced)
    if (failed !== undefined) {
      if (status !== 1) throw new Error(`it ended with ${status} after it failed: ${this.#errors}`)
      const behind = lines.slice(lines.indexOf(failed)).find(({ on }) => on === 'durable' || on === 'written')
      if (behind !== undefined) throw new Error(`it went on after it failed: ${JSON.stringify(behind)}`)
      if (!failed.message.includes(this.script.data)) throw new Error(`the error does not say where: ${failed.message}`)
      const before = lines[lines.indexOf(failed) - 1]?.on
      const opening = before === 'begun' || before === 'durable'
      if (failed.code === 'FULL' && opening) return 'refused to start'
      if (failed.code !== 'IO' || (error === 'ENOSPC' && !isSync)) throw new Error(`it failed: ${failed.message}`)
      return 'ended with an error'
    }
    if (status < 0) return 'waits for room'
    if (status !== 0) throw new Error(`it ended with ${status}: ${this.#errors}`)
    return lines.some(({ on }) => on === 'full') ? 'went on when there was room' : 'went on'
  }
}

/**
 * After a failed fsync there is no other, and the batch it was for is not answered, nor a later one, unless the store is
 * opened anew. The batch before may be: its answer can be on the way while the log is carried over.
 */
function nothingAnsweredAfterFailure(calls: readonly Call[]): void {
  let written = 0
  let unsynced = false
  let allowed = Number.POSITIVE_INFINITY
  for (const { call, injected, line } of calls) {
    const isLog = line.includes('cinnabar.db-wal>')
    if (call === 'write') {
      const [, on, batch] = /\\"on\\":\\"(\w+)\\"(?:,\\"batch\\":(\d+))?/.exec(line) ?? []
      if (on === 'opened') allowed = Number.POSITIVE_INFINITY
      if (on === 'written') written = Number(batch)
      if (on === 'durable' && Number(batch) > allowed)
        throw new Error(`batch ${batch} was answered after its fsync failed`)
    } else if (call === 'pwrite64') {
      // What is as short as this is the header of the log.
      if (isLog && !line.includes(', 32, 0)')) unsynced = true
    } else if (injected) {
      allowed = Math.min(allowed, unsynced ? written - 1 : written)
    } else if (allowed < Number.POSITIVE_INFINITY) {
      throw new Error(`an fsync was tried after one had failed: ${line}`)
    } else if (isLog) unsynced = false
  }
}
