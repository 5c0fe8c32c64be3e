/** The output of a program whose end is noticed before its output is read, as on a busy machine. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runProgram } from '../../../../../server/kernel/controls/exec/program.ts'

const hasProc = existsSync('/proc/self/stat')
if (!hasProc) console.warn('output that is read after the end of its program is not tested: there is no /proc')

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-program-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Keeps the event loop busy, so that no limit of time of the test itself could end it. */
function busyUntil(isDone: () => boolean): void {
  const from = performance.now()
  while (!isDone()) {
    if (performance.now() - from > 60_000) throw new Error('what the event loop was kept busy for has not come')
  }
}

const hasEnded = (pid: number): boolean => /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))

// Whether a program has ended is looked at in /proc.
it.skipIf(!hasProc)('is read, though the time for it is over', async () => {
  const [pidFile, goFile] = [join(directory, 'pid'), join(directory, 'go')]
  const line = `echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; until [ -e ${goFile} ]; do :; done; echo hello`
  let isOver = false
  const clock = {
    setTimeout(callback: () => void, ms: number) {
      const timer = setTimeout(callback, ms === 250 ? 0 : ms)
      if (ms === 250) {
        // The timer is due before anything else is read.
        const from = performance.now()
        busyUntil(() => performance.now() - from > 5)
        isOver = true
      }
      return timer
    },
    clear: (timer: NodeJS.Timeout | undefined) => clearTimeout(timer),
  }
  const ended = runProgram(
    {
      path: '/bin/sh',
      argv: ['-c', line],
      environment: {},
      directory,
      user: undefined,
      stdin: undefined,
      timeoutMs: 60_000,
      maxOutput: 1_000,
    },
    clock as unknown as Parameters<typeof runProgram>[1],
    new AbortController().signal,
  )
  busyUntil(() => existsSync(pidFile))
  const pid = Number(readFileSync(pidFile, 'latin1'))
  // The output of this one and its end are noticed in one turn. Its end has the other one looked at, which ends in that turn.
  const other = spawn('/bin/echo', ['x'], { stdio: ['ignore', 'pipe', 'ignore'] })
  other.stdout.once('data', () => {
    writeFileSync(goFile, '')
    busyUntil(() => hasEnded(pid))
  })
  busyUntil(() => hasEnded(other.pid as number))
  expect(await ended).toMatchObject({ end: { exit: 0 }, stdout: 'hello\n' })
  expect(isOver).toBe(true)
})
