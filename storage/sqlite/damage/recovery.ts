/**
 * Reads the content of a store when it is opened. Rows that do not match their checksums are not trusted, but do not prevent the
 * start: a damaged block is set aside, and each channel that may miss something else must report it. Repairs are written
 * before anything is served; without space for them the damage is found again at the next start.
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
  /** Tables whose index differs from the rows. */
  readonly stale: readonly Ordered[]
}

/** The number of ids in a warning. */
const MAX_NAMED = 10

export function recover(opened: OpenDatabase, tables: Tables): Recovered {
  const { warnings: ofState, ...state } = tables.state.recover()
  const { warnings: ofAudit, audited } = tables.audit.recover()
  const kept = { ...state, audited }
  const found = read(opened, tables)
  const { numbers, directory, settled, gaps } = found
  const sound = { ...kept, numbers, blocks: directory.blocks, settled: settled.sound, gaps: gaps.sound }
  const channels = channelsWithLosses(opened, found)
  const repaired = repairNumbers(sound, { channels, bitmaps: settled.damaged.length > 0 })
  for (const row of repaired) numbers.sound.set(row[0]!, row)
  write(opened, tables, found, repaired)
  const rows = [...numbers.sound.values()].filter((row) => !isFirst(row)).sort((a, b) => a[0]! - b[0]!)
  const warnings = [
    ...aboutGeneration(opened),
    ...aboutLog(opened.log),
    ...aboutRows(found, repaired),
    ...ofState,
    ...ofAudit,
  ]
  const restored = opened.generation.reason !== undefined
  return { ...sound, restored, numbers: Float64Array.from(rows.flat()), ...(warnings.length > 0 && { warnings }) }
}

function read({ database }: OpenDatabase, { blocks, state }: Tables): Found {
  const [directory, gaps] = [blocks.directory(), state.gaps()]
  const stale: Ordered[] = []
  if (!isIndexed(database, directory.blocks, BLOCK_ORDER)) stale.push(BLOCK_ORDER)
  if (!isIndexed(database, gaps.sound, GAP_ORDER)) stale.push(GAP_ORDER)
  return { numbers: state.numbers.read(), directory, settled: blocks.settled(), gaps, stale }
}

/** The channels that have lost GAPs or bitmaps. Row and index of a GAP may name different channels: both count. */
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

function write({ database }: OpenDatabase, { blocks, state }: Tables, found: Found, repaired: number[][]): void {
  const { numbers, directory, settled, gaps, stale } = found
  const isNumbers = numbers.damaged.size + repaired.length > 0
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

function aboutGeneration({ generation: { reason } }: OpenDatabase): string[] {
  if (reason === undefined) return []
  return [
    `the database counts as restored (${reason}): durable channels report it by a GAP, and transaction ids that may have been ` +
      'given since are skipped; see docs/storage.md',
  ]
}

function aboutLog({ short, kept }: LogFinding): string[] {
  const where = kept === undefined ? 'and nothing is left of it' : `and was kept as ${kept}`
  if (short) {
    return [
      `the log of the database was damaged ${where}: durable channels report that values may be missing. Users, passwords, roles, ` +
        'rules, tokens and channels that were made or changed last may be lost, and those that were removed last may be there ' +
        'again: compare `cinnabar user list`, `cinnabar role list` and `cinnabar token list` with what you expect',
    ]
  }
  return kept === undefined
    ? []
    : [`the log of the database was damaged ${where}: all of its content was already in the database`]
}

function aboutRows({ numbers, directory, settled, gaps, stale }: Found, repaired: readonly number[][]): string[] {
  const gapIds = gaps.damaged.map(([id]) => id!)
  const channels = repaired.map(([channel]) => channel!)
  const strays = [...numbers.damaged.keys()].filter((channel) => !channels.includes(channel))
  return [
    ...about('blocks', directory.damaged, 'their values are reported as lost'),
    ...about('GAPs', gapIds, 'their channels report it'),
    ...about('bitmaps of blocks', settled.damaged, 'values committed in them are sent again'),
    ...about('numbers of unknown channels', strays, 'they were removed'),
    ...about(
      'numbers, GAPs or bitmaps of channels',
      channels,
      'transaction ids are skipped, and the channels report that values may be missing',
    ),
    ...stale.map(({ table }) => `the index of the table ${table} was damaged and has been rebuilt`),
  ]
}

function about(what: string, ids: readonly number[], therefore: string): string[] {
  if (ids.length === 0) return []
  const named = `${ids.slice(0, MAX_NAMED).join(', ')}${ids.length > MAX_NAMED ? ' ...' : ''}`
  return [`${what} do not match their checksums (${ids.length}: ${named}): ${therefore}; see docs/storage.md`]
}
