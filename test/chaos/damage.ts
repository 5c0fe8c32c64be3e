/**
 * Files that are not as they were left: bits flipped, pages zeroed, ends cut off, in copies of what a killed process left
 * behind. It starts, or refuses with an error that says what to do and touches nothing. If it starts, no value is wrong,
 * what is missing is reported on its channel, and no id comes twice.
 */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GapReason } from '../../protocol/monitor/constants.ts'
import { openSqlite } from '../../storage/sqlite/driver.ts'
import { codeOf, storageError } from '../../storage/sqlite/errors.ts'
import { type Batch, BLOCK_WIDTH, GAP_WIDTH, type Recovered, StorageError } from '../../storage/store.ts'
import { located, type Rig, Tally } from '../rig/rig.ts'
import { Random } from '../support/random.ts'
import { checkChannel, deliverAll, type Opened, openState } from './power-cut/check.ts'
import type { Known } from './power-cut/history.ts'
import { ScriptedRun } from './power-cut/scripted.ts'

/** Damages of one base. */
const DAMAGES = 250
const MIN_BASES = 3
const BATCHES = 60
const PAGE = 16_384
const SECTOR = 512
/** Of a row: the rest is frames, or the row after it. */
const NUMBERS_BYTES = 80
const DATABASE = 'cinnabar.db'
/** A database that has lost transactions is behind its file, until a server has informed its consumers. */
const RESTORED = /counts as restored/
/** Where the files are kept as the server left them. */
const WHOLE = 'whole'
/** Tables whose rows have checksums: half of what hits the database hits rows of theirs. */
const CHECKED = ['numbers', 'gap', 'settled', 'block', 'gap_order', 'block_order']
/** A row without a checksum was changed and nobody noticed. */
export const UNCHECKED = 'a row without a checksum changed, not noticed'

/** What a process has left, and what is known of it. */
interface Base {
  readonly known: Known
  /** What is in the tables whose rows have no checksum. */
  readonly unchecked: string
  /** Where in the database rows with a checksum stand. */
  readonly rows: readonly { readonly table: string; readonly from: number; readonly to: number }[]
}

interface Damage {
  readonly file: string
  readonly what: string
  /** Gives the bytes it has then. */
  readonly of: (bytes: Buffer) => Buffer
}

export const damage: Rig = async ({ seed, count, say }) => {
  const bases = Math.max(MIN_BASES, Math.ceil(count / DAMAGES))
  const tally = new Tally(['damages', 'lost', 'unexpected', 'reused', 'refused'])
  for (let base = 0; base < bases; base++) {
    const run = new ScriptedRun('damage')
    try {
      const left = await leave(run, seed + base)
      const random = new Random(seed + base)
      const damages = Math.floor((count * (base + 1)) / bases) - Math.floor((count * base) / bases)
      for (let number = 0; number < damages; number++) {
        const chosen = choose(run, left, random)
        const outcome = one(run, chosen, left, `seed ${seed + base}, damage ${number}: ${chosen.what}`)
        const file = chosen.file.slice(DATABASE.length) || 'database'
        for (const what of ['damages', `${file}: ${outcome}`]) tally.add(what)
        if (outcome === 'refused') tally.add('refused')
      }
      say(`base ${base + 1} of ${bases} (seed ${seed + base}): ${damages} damages`)
    } finally {
      run.remove()
    }
  }
  return tally.totals()
}

/** Runs the script, which ends itself by SIGKILL: database, log and index stay as they are. */
async function leave(run: ScriptedRun, seed: number): Promise<Base> {
  // With a log that holds the latest, all, or nothing: what is in the log hides the pages of the database.
  const end = (['abrupt', 'log', 'idle'] as const)[seed % 3]
  const child = run.start({ seed, batches: BATCHES, ...(end && { end }) })
  await child.end()
  if (child.process.signalCode !== 'SIGKILL') throw new Error(`seed ${seed}: the script has failed: ${child.errors}`)
  const { data, scratch } = run
  rmSync(join(data, 'reserve'), { force: true })
  const known = run.known()
  cpSync(data, join(scratch, WHOLE), { recursive: true })
  const opened = openState(data)
  try {
    if (opened.recovered.warnings !== undefined) throw new Error(`seed ${seed}: ${opened.recovered.warnings}`)
    return { known, unchecked: uncheckedOf(opened.recovered), rows: rowsIn(join(scratch, WHOLE, DATABASE)) }
  } finally {
    opened.close()
  }
}

function uncheckedOf({ channels, instances, bindings, stops, results, age, wall }: Recovered): string {
  return JSON.stringify([channels, instances, bindings, stops, results, age, wall])
}

/** Without the log: pages as they are in the file, which its own schema need not know of all. */
function rowsIn(path: string): Base['rows'] {
  const bytes = readFileSync(path)
  const alone = `${path}-alone`
  writeFileSync(alone, bytes)
  const database = openSqlite(alone)
  try {
    const pages = database.prepare<unknown[], [string, number]>(
      "select name, pageno from dbstat where pagetype = 'leaf' and ncell > 0",
    )
    const leaves = pages.raw().all()
    return leaves.flatMap(([table, number]) => (CHECKED.includes(table) ? cellsOf(bytes, number, table) : []))
  } finally {
    database.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${alone}${suffix}`, { force: true })
  }
}

/** Where the numbers of each row stand in a leaf: https://sqlite.org/fileformat2.html section 1.6. */
function cellsOf(bytes: Buffer, number: number, table: string): Base['rows'] {
  const at = (number - 1) * PAGE
  return Array.from({ length: bytes.readUInt16BE(at + 3) }, (_, cell) => {
    const from = at + bytes.readUInt16BE(at + 8 + 2 * cell)
    return { table, from, to: Math.min(from + NUMBERS_BYTES, at + PAGE) }
  })
}

function choose({ scratch }: ScriptedRun, { rows }: Base, random: Random): Damage {
  const base = join(scratch, WHOLE)
  const files = readdirSync(base).filter((name) => name.startsWith(DATABASE) && statSync(join(base, name)).size > 0)
  const file = random.pick([DATABASE, DATABASE, DATABASE, ...files, ...files].filter((name) => files.includes(name)))
  const bit = random.below(8)
  if (file === DATABASE && rows.length > 0 && random.below(2) === 0) {
    // Most tables have but one leaf; blocks have many.
    const table = random.pick(CHECKED.filter((name) => rows.some((row) => row.table === name)))
    const { from, to } = random.pick(rows.filter((row) => row.table === table))
    const at = from + random.below(to - from)
    return { file, what: `bit ${bit} of byte ${at} of ${file}, in ${table}, flipped`, of: (all) => flip(all, at, bit) }
  }
  const { size } = statSync(join(base, file))
  const at = random.below(size)
  // Every other one into the first bytes of a page, where the structure of the tree is.
  const near = random.below(2) === 0 ? at : at - (at % PAGE) + random.below(100)
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

function one({ scratch, data: directory }: ScriptedRun, { file, of }: Damage, base: Base, name: string): string {
  // In the directory itself, with its file: a copy of them would count as restored.
  const whole = join(scratch, WHOLE)
  for (const name of readdirSync(directory)) if (name !== 'generation') rmSync(join(directory, name))
  for (const name of readdirSync(whole)) writeFileSync(join(directory, name), readFileSync(join(whole, name)))
  const path = join(directory, file)
  writeFileSync(path, of(readFileSync(path)))
  const before = filesOf(directory)
  try {
    return judge(directory, before, base, file === DATABASE)
  } catch (error) {
    throw located(error, name)
  }
}

/** -shm is SQLite's own scratch. */
function filesOf(directory: string): Map<string, Buffer> {
  const names = [DATABASE, `${DATABASE}-wal`].filter((name) => existsSync(join(directory, name)))
  return new Map(names.map((name) => [name, readFileSync(join(directory, name))]))
}

function judge(directory: string, before: ReadonlyMap<string, Buffer>, base: Base, inDatabase: boolean): string {
  let opened: Opened
  try {
    opened = openState(directory)
  } catch (error) {
    return refusal(error, directory, before)
  }
  try {
    const outcome = delivered(opened, base.known)
    opened.close()
    opened = openState(directory)
    // What was mended stays so.
    const warnings = (opened.recovered.warnings ?? []).filter((warning) => !RESTORED.test(warning))
    if (warnings.length > 0) throw new Error(`opened again: ${warnings}`)
    return outcome + emptied(opened)
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    // Of rows without a checksum a wrong one may go unnoticed, of a value never.
    const isUnchecked = inDatabase && uncheckedOf(opened.recovered) !== base.unchecked
    if (!isUnchecked || /bytes of|never given/.test(what)) throw error
    return UNCHECKED
  } finally {
    opened.close()
  }
}

/** Everything is committed, then the channels are deleted: of what is broken nothing may stand in the way for ever. */
function emptied({ recovered, write }: Opened): string {
  const { blocks, gaps, channels } = recovered
  const ids = (rows: Float64Array, width: number): Float64Array => rows.filter((_, index) => index % width === 0)
  const none = new Float64Array()
  const batch: Batch = {
    number: 1,
    data: new ArrayBuffer(0),
    dataLength: 0,
    blocks: none,
    moved: none,
    settled: none,
    removed: ids(blocks, BLOCK_WIDTH),
    channels: recovered.numbers,
    gaps: none,
    gapsRemoved: ids(gaps, GAP_WIDTH),
    changes: [],
    reserves: false,
    age: recovered.age,
    wall: recovered.wall,
  }
  try {
    write(batch)
    write({ ...batch, changes: channels.map(({ id }) => ({ remove: 'channel', id })) })
    return ''
  } catch (error) {
    // A page that only a removal has to look at. The server ends, and says why.
    if (!(error instanceof StorageError) || error.code !== 'DAMAGED') throw error
    return ', storing failed'
  }
}

/** It does not start: that is reported, and nothing is touched. */
function refusal(error: unknown, directory: string, before: ReadonlyMap<string, Buffer>): string {
  const reported = codeOf(error).startsWith('SQLITE') ? storageError(error, join(directory, DATABASE)) : error
  if (!(reported instanceof StorageError)) throw error
  // The number of the format is a few bits in the header.
  if (
    (reported.code !== 'DAMAGED' && reported.code !== 'TOO_NEW') ||
    !reported.message.includes(join(directory, DATABASE))
  )
    throw reported
  for (const [name, bytes] of filesOf(directory))
    if (Buffer.compare(bytes, before.get(name) ?? Buffer.alloc(0)) !== 0)
      throw new Error(`${name} was changed by a start that was refused`)
  return 'refused'
}

function delivered(opened: Opened, known: Known): string {
  const batch = opened.recovered.wall
  const channels = deliverAll(opened)
  const isShort = batch < known.durable
  const warnings = opened.recovered.warnings ?? []
  const mended = mendedChannels(warnings)
  let reported = 0
  for (const [channel, account] of known.accounts) {
    const got = channels.get(channel)
    if (got === undefined) {
      if (account.made <= batch && account.deleted > known.written) throw new Error(`channel ${channel} is gone`)
      continue
    }
    const unknown = got.gaps.some(({ reason, count }) => reason === GapReason.restart && count === 0)
    if (mended.has(channel) && !unknown) throw new Error(`channel ${channel} was mended and does not tell`)
    // Transactions of the log, or a GAP, are gone: each channel has to say so. What was committed in them comes again.
    const isTold = unknown && (isShort || mended.has(channel))
    const gaps = isTold ? [{ kind: 'gap', id: 0, count: Number.POSITIVE_INFINITY, reason: 5 } as const] : []
    checkChannel(channel, account, { ...got, gaps: [...got.gaps, ...gaps] }, isTold ? -1 : batch)
    reported += got.gaps.filter(({ reason }) => reason === GapReason.damaged).length
  }
  if (isShort) return 'the log is short, reported'
  if (mended.size > 0) return 'channels mended, reported'
  if (reported > 0) return 'values lost, reported'
  return warnings.length > 0 ? 'noticed, nothing lost' : 'nothing lost'
}

function mendedChannels(warnings: readonly string[]): ReadonlySet<number> {
  const ids = warnings.flatMap((warning) => / of channels .*\(\d+: ([\d, ]+)/.exec(warning)?.[1]?.split(', ') ?? [])
  return new Set(ids.map(Number))
}
