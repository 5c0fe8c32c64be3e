/**
 * A process of its own that runs the script on a directory: `process.ts <directory> <history> <batches file> <seed>
 * <batches> [how it ends]`. The history is a file, so that strace records its lines in one order with what the store
 * writes; the batches are another, that strace leaves out. It ends cleanly, with 1 when storing failed (as the server
 * does), or by SIGKILL: `abrupt`; `log`, the log was never carried over; `idle`, the log is empty.
 */
import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { StorageError } from '../../../storage/store.ts'
import { Random } from '../../support/random.ts'
import { batchToText, type Line } from './history.ts'
import { Script } from './script.ts'

const [directory = '', history = '', batchFile = '', seed = '1', batches = '100', end = ''] = process.argv.slice(2)
/** When the log is carried over: often and at each pause of the script, only often, or never. */
const OFTEN = { idleMs: 5, checkpointPages: 24 }
const ON_THE_WAY = { idleMs: 1e8, checkpointPages: 24 }
const NEVER = { idleMs: 1e8, checkpointPages: 1e6 }
const checkpoints: Readonly<Record<string, typeof OFTEN>> = { abrupt: ON_THE_WAY, log: NEVER }
const lines = openSync(history, 'a')
const recorded = openSync(batchFile, 'a')
let exitCode = 0
function note(line: Line): void {
  if (line.on === 'failed') exitCode = 1
  writeSync(lines, `${JSON.stringify(line)}\n`)
}

note({ on: 'begun', pid: process.pid })
const script = new Script({
  directory,
  random: new Random(Number(seed)),
  batches: Number(batches),
  abrupt: end !== '',
  ...(checkpoints[end] ?? OFTEN),
  record: (batch) => writeSync(recorded, `${batchToText(batch)}\n`),
  note,
})
await script.run().catch((error: unknown) => {
  if (!(error instanceof StorageError)) throw error
  note({ on: 'failed', code: error.code, message: error.message })
})
// Long enough for the store to carry its log over.
if (end === 'idle') await sleep(500)
if (end !== '') process.kill(process.pid, 'SIGKILL')
process.exit(exitCode)
