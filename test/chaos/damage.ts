/**
 * Files that are not as they were left: bits flipped, pages zeroed, ends cut off, in copies of what a killed process left
 * behind. It starts, or refuses with an error that says what to do and touches nothing. If it starts, no value is wrong,
 * what is missing is told on its channel, and no id comes twice.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GapReason } from '../../protocol/monitor/constants.ts'
import { codeOf, storageError } from '../../storage/sqlite/errors.ts'
import { StorageError } from '../../storage/store.ts'
import { Random } from '../support/random.ts'
import { checkChannel, deliverAll, type Opened, openState } from './power-cut/check.ts'
import { Known, type Line } from './power-cut/history.ts'
import type { Rig, RigOptions, Totals } from './rig.ts'

/** Damages of one base. */
const DAMAGES = 250
const MIN_BASES = 3
const BATCHES = 60
const PAGE = 16_384
const SECTOR = 512
const DATABASE = 'cinnabar.db'
/** A row without a checksum was changed and nobody noticed. */
export const UNCHECKED = 'a wrong row, not noticed'

interface Damage {
  readonly file: string
  readonly what: string
  /** Gives the bytes it has then. */
  readonly of: (bytes: Buffer) => Buffer
}

export const damage: Rig = async ({ seed, count, say }: RigOptions): Promise<Totals> => {
  const bases = Math.max(MIN_BASES, Math.ceil(count / DAMAGES))
  const totals: Record<string, number> = { damages: 0, lost: 0, unexpected: 0, reused: 0, refused: 0 }
  for (let base = 0; base < bases; base++) {
    const scratch = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'damage-'))
    try {
      const known = await leave(scratch, seed + base)
      const random = new Random(seed + base)
      const damages = Math.floor((count * (base + 1)) / bases) - Math.floor((count * base) / bases)
      for (let number = 0; number < damages; number++) {
        const chosen = choose(scratch, random)
        const outcome = one(scratch, chosen, known, `seed ${seed + base}, damage ${number}: ${chosen.what}`)
        const file = chosen.file.slice(DATABASE.length) || 'database'
        for (const what of ['damages', `${file}: ${outcome}`]) totals[what] = (totals[what] ?? 0) + 1
        if (outcome === 'refused') totals['refused'] = (totals['refused'] ?? 0) + 1
      }
      say(`base ${base + 1} of ${bases} (seed ${seed + base}): ${damages} damages`)
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  }
  return totals
}

/** Runs the script, which ends itself by SIGKILL: database, log and index stay as they are. */
async function leave(scratch: string, seed: number): Promise<Known> {
  const [data, history, batches] = [join(scratch, 'base'), join(scratch, 'history'), join(scratch, 'batches')]
  mkdirSync(data)
  // With a log that holds the latest, all, or nothing: what is in the log hides the pages of the database.
  const how = ['abrupt', 'log', 'idle'][seed % 3] as string
  const script = ['test/chaos/power-cut/process.ts', data, history, batches, String(seed), String(BATCHES)]
  const child = spawn(process.execPath, ['--import', 'tsx', ...script, how], { stdio: ['ignore', 'ignore', 'inherit'] })
  const [, signal] = await once(child, 'exit')
  if (signal !== 'SIGKILL') throw new Error(`seed ${seed}: the script has failed`)
  rmSync(join(data, 'reserve'), { force: true })
  const known = new Known()
  const lines = readFileSync(history, 'utf8').trim().split('\n')
  for (const line of lines) known.add(JSON.parse(line) as Line)
  return known
}

function choose(scratch: string, random: Random): Damage {
  const base = join(scratch, 'base')
  const files = readdirSync(base).filter((name) => name.startsWith(DATABASE) && statSync(join(base, name)).size > 0)
  const file = random.pick([DATABASE, DATABASE, DATABASE, ...files, ...files].filter((name) => files.includes(name)))
  const { size } = statSync(join(base, file))
  const at = random.below(size)
  // Every other one into the first bytes of a page, where the structure of the tree is.
  const near = random.below(2) === 0 ? at : at - (at % PAGE) + random.below(100)
  const bit = random.below(8)
  return random.pick<Damage>([
    { file, what: `bit ${bit} of byte ${near} of ${file} flipped`, of: (bytes) => flip(bytes, near, bit) },
    { file, what: `bit ${bit} of byte ${at} of ${file} flipped`, of: (bytes) => flip(bytes, at, bit) },
    { file, what: `page at byte ${at} of ${file} zeroed`, of: (bytes) => zero(bytes, at, PAGE) },
    { file, what: `sector at byte ${at} of ${file} zeroed`, of: (bytes) => zero(bytes, at, SECTOR) },
    { file, what: `${file} cut off at byte ${at}`, of: (bytes) => bytes.subarray(0, at) },
    { file, what: `${file} cut off at page ${at - (at % PAGE)}`, of: (bytes) => bytes.subarray(0, at - (at % PAGE)) },
  ])
}

function flip(bytes: Buffer, at: number, bit: number): Buffer {
  if (at < bytes.length) bytes[at] = (bytes[at] as number) ^ (1 << bit)
  return bytes
}

function zero(bytes: Buffer, at: number, length: number): Buffer {
  const from = at - (at % length)
  return bytes.fill(0, from, Math.min(bytes.length, from + length))
}

function one(scratch: string, { file, of }: Damage, known: Known, name: string): string {
  const directory = join(scratch, 'damaged')
  cpSync(join(scratch, 'base'), directory, { recursive: true })
  const path = join(directory, file)
  writeFileSync(path, of(readFileSync(path)))
  const before = filesOf(directory)
  try {
    return judge(directory, before, known, file === DATABASE)
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** -shm is SQLite's own scratch. */
function filesOf(directory: string): Map<string, Buffer> {
  const names = [DATABASE, `${DATABASE}-wal`].filter((name) => existsSync(join(directory, name)))
  return new Map(names.map((name) => [name, readFileSync(join(directory, name))]))
}

function judge(directory: string, before: ReadonlyMap<string, Buffer>, known: Known, inDatabase: boolean): string {
  let opened: Opened
  try {
    opened = openState(directory)
  } catch (error) {
    return refusal(error, directory, before)
  }
  try {
    return delivered(opened, known)
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    // Only blocks carry a checksum: of what else is in the database a wrong row may go unnoticed, of a value never.
    if (!inDatabase || /bytes of|never given/.test(what)) throw error
    return UNCHECKED
  } finally {
    opened.close()
  }
}

/** It does not start: that is told, and nothing is touched. */
function refusal(error: unknown, directory: string, before: ReadonlyMap<string, Buffer>): string {
  const told = codeOf(error).startsWith('SQLITE') ? storageError(error, join(directory, DATABASE)) : error
  if (!(told instanceof StorageError)) throw error
  if (told.code !== 'DAMAGED' || !told.message.includes(join(directory, DATABASE))) throw told
  for (const [name, bytes] of filesOf(directory))
    if (Buffer.compare(bytes, before.get(name) ?? Buffer.alloc(0)) !== 0)
      throw new Error(`${name} was changed by a start that was refused`)
  return 'refused'
}

function delivered(opened: Opened, known: Known): string {
  const batch = opened.recovered.wall
  const channels = deliverAll(opened)
  const isShort = batch < known.durable
  let told = 0
  for (const [channel, account] of known.accounts) {
    const got = channels.get(channel)
    if (got === undefined) {
      if (account.made <= batch && account.deleted > known.written) throw new Error(`channel ${channel} is gone`)
      continue
    }
    const unknown = got.gaps.some(({ reason, count }) => reason === GapReason.restart && count === 0)
    // Transactions of the log are gone: each channel has to say so. What was committed in them comes again.
    const gaps = isShort && unknown ? [{ kind: 'gap', id: 0, count: Number.POSITIVE_INFINITY, reason: 5 } as const] : []
    checkChannel(channel, account, { ...got, gaps: [...got.gaps, ...gaps] }, -1)
    told += got.gaps.filter(({ reason }) => reason === GapReason.damaged).length
  }
  if (isShort) return 'the log is short, told'
  return told > 0 ? 'values lost, told' : 'nothing lost'
}
