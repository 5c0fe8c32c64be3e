/**
 * What the store holds when it is opened. Rows that do not match their checksums are not believed, and keep nobody from
 * starting: a block is set aside as a damaged one, and each channel that may miss something else has to say so. What was
 * mended is written before anything is served; without room for that it is found again at the next start.
 */
import { BLOCK_WIDTH, type Recovered } from '../../store.ts'
import { BLOCK_ORDER, type BlocksFound, type SettledFound } from '../blocks.ts'
import type { OpenDatabase } from '../database.ts'
import { isNoRoom, isUnreadable } from '../errors.ts'
import { isFirst, type NumbersFound } from '../numbers.ts'
import { GAP_ORDER, type GapsFound } from '../state.ts'
import type { Tables } from '../tables.ts'
import type { LogFinding } from './log.ts'
import { channelsOfMissing, isIndexed, type Ordered } from './order.ts'
import { repairNumbers } from './repair.ts'

interface Found {
  readonly numbers: NumbersFound
  readonly directory: BlocksFound
  readonly settled: SettledFound
  readonly gaps: GapsFound
  /** Whose index is not what the table says. */
  readonly stale: readonly Ordered[]
}

/** Ids that a warning names. */
const MAX_NAMED = 10

export function recover(opened: OpenDatabase, tables: Tables): Recovered {
  const { users, state } = tables
  const { warnings: ofRights, ...rights } = tables.rights.recover()
  const { warnings: ofAudit, audited } = tables.audit.recover()
  const kept = { ...users.recover(), ...rights, audited, ...state.recover() }
  const found = read(opened, tables)
  const { numbers, directory, settled, gaps } = found
  const sound = { ...kept, numbers, blocks: directory.blocks, settled: settled.sound, gaps: gaps.sound }
  const channels = channelsWithLosses(opened, found)
  const mended = repairNumbers(sound, { channels, bitmaps: settled.damaged.length > 0 })
  for (const row of mended) numbers.sound.set(row[0]!, row)
  write(opened, tables, found, mended)
  const rows = [...numbers.sound.values()].filter((row) => !isFirst(row)).sort((a, b) => a[0]! - b[0]!)
  const warnings = [...aboutLog(opened.log), ...aboutRows(found, mended), ...ofRights, ...ofAudit]
  return { ...sound, numbers: Float64Array.from(rows.flat()), ...(warnings.length > 0 && { warnings }) }
}

function read({ database }: OpenDatabase, { blocks, state }: Tables): Found {
  const [directory, gaps] = [blocks.directory(), state.gaps()]
  const stale: Ordered[] = []
  if (!isIndexed(database, directory.blocks, BLOCK_ORDER)) stale.push(BLOCK_ORDER)
  if (!isIndexed(database, gaps.sound, GAP_ORDER)) stale.push(GAP_ORDER)
  return { numbers: state.numbers.read(), directory, settled: blocks.settled(), gaps, stale }
}

/** Of GAPs and bitmaps. Whose GAP it was, row and index may say differently. */
function channelsWithLosses({ database }: OpenDatabase, { directory, settled, gaps, stale }: Found): Set<number> {
  const channels = new Set(gaps.damaged.map((row) => row[1]!))
  if (stale.includes(GAP_ORDER)) {
    for (const channel of channelsOfMissing(database, gaps.sound, GAP_ORDER)) channels.add(channel)
  }
  const { blocks } = directory
  for (let at = 0; settled.damaged.length > 0 && at < blocks.length; at += BLOCK_WIDTH) {
    if (settled.damaged.includes(blocks[at]!)) channels.add(blocks[at + 1]!)
  }
  return channels
}

function write({ database }: OpenDatabase, { blocks, state }: Tables, found: Found, mended: number[][]): void {
  const { numbers, directory, settled, gaps, stale } = found
  const isNumbers = numbers.damaged.size + mended.length > 0
  const all = database.transaction(() => {
    for (const { table } of stale) database.exec(`reindex ${table}_order`)
    state.setAsideGaps(gaps.damaged.map(([id]) => id!))
    if (settled.damaged.length > 0) blocks.replaceSettled(settled.sound)
    if (isNumbers) state.numbers.replace(numbers.sound.values())
    blocks.setAside(directory.damaged)
  })
  if (!isNumbers && stale.length + directory.damaged.length + settled.damaged.length + gaps.damaged.length === 0) return
  try {
    all.immediate()
  } catch (error) {
    if (!isNoRoom(error) && !isUnreadable(error)) throw error
    blocks.neglect(directory.damaged)
  }
}

function aboutLog({ short, kept }: LogFinding): string[] {
  const where = kept === undefined ? 'and nothing of it is left' : `and is kept as ${kept}`
  if (short) return [`the log of the database was damaged ${where}: durable channels tell that values may be missing`]
  return kept === undefined
    ? []
    : [`the log of the database was damaged ${where}: all of it was in the database already`]
}

function aboutRows({ numbers, directory, settled, gaps, stale }: Found, mended: readonly number[][]): string[] {
  const gapIds = gaps.damaged.map(([id]) => id!)
  const channels = mended.map(([channel]) => channel!)
  const strays = [...numbers.damaged.keys()].filter((channel) => !channels.includes(channel))
  return [
    ...about('blocks', directory.damaged, 'their values are told as lost'),
    ...about('GAPs', gapIds, 'their channels tell it'),
    ...about('bitmaps of blocks', settled.damaged, 'what was committed in them comes again'),
    ...about('numbers of unknown channels', strays, 'they are removed'),
    ...about(
      'numbers, GAPs or bitmaps of channels',
      channels,
      'ids are skipped, and it is told that values may be missing',
    ),
    ...stale.map(({ table }) => `the index of the table ${table} was damaged and is made again`),
  ]
}

function about(what: string, ids: readonly number[], therefore: string): string[] {
  if (ids.length === 0) return []
  const named = `${ids.slice(0, MAX_NAMED).join(', ')}${ids.length > MAX_NAMED ? ' ...' : ''}`
  return [`${what} do not match their checksums (${ids.length}: ${named}): ${therefore}; see docs/storage.md`]
}
