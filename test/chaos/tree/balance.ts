/** The judge of a tree at its end: what must be equal at every level and over every link, when nothing waits any more. */
import { GapReason } from '../../../protocol/monitor/constants.ts'
import { type DropCause, dropCauses } from '../../../server/kernel/channels/ledger.ts'
import type { ChannelRow, Rows } from './rows.ts'

export interface LevelAccount {
  readonly name: string
  /** What the server said of its channel before it ended, and what its database has after that. */
  readonly ledger: ChannelRow
  readonly rows: Rows
  /** What it consumes, in the last life of its process; undefined for the lowest. */
  readonly upstream?: UpstreamAccount | undefined
}

export interface UpstreamAccount {
  /** The counters of `upstream/NAME`, which begin at 0 with each life. */
  readonly values: number
  readonly repeated: number
  readonly committed: number
  /** Values that its channel had accepted when this life began, by its database. */
  readonly acceptedBefore: number
}

/** What came at the consumer of the uppermost server. */
export interface Came {
  /** Values under different transaction ids. */
  readonly values: number
  /** Those of them that had no yes when they came, nor after it. */
  readonly unanswered: number
  /** By the reason of their GAPs. */
  readonly gaps: ReadonlyMap<number, { readonly gaps: number; readonly values: number }>
}

/** `levels`: from the lowest to the uppermost, each of which has one binding. Says for people what is not equal. */
export function imbalances(levels: readonly LevelAccount[], came: Came, promised: number): string[] {
  return [
    ...levels.flatMap(ofLevel),
    ...levels
      .slice(1)
      .flatMap((above, at) => ofLink(levels[at] as LevelAccount, above, at === 0 ? came.unanswered : 0)),
    ...ofConsumer(levels, came, promised),
  ]
}

function ofLevel({ name, ledger, rows, upstream }: LevelAccount): string[] {
  const { accepted, committed } = rows.channel
  const dropped = dropCauses.reduce((sum, cause) => sum + rows.channel.dropped[cause], 0)
  return [
    ...equal(`${name}: accepted`, accepted, 'committed and dropped', committed + dropped),
    ...equal(`${name}: accepted, it says`, ledger.accepted, 'stored', accepted),
    ...equal(`${name}: committed, it says`, ledger.committed, 'stored', committed),
    ...dropCauses.flatMap((cause) =>
      equal(`${name}: dropped as ${cause}, it says`, ledger.dropped[cause], 'stored', rows.channel.dropped[cause]),
    ),
    ...(upstream === undefined ? [] : ofUpstream(name, accepted, rows.reached, upstream)),
  ]
}

function ofUpstream(name: string, accepted: number, reached: number, upstream: UpstreamAccount): string[] {
  const { values, repeated, committed, acceptedBefore } = upstream
  const isIdle = values + repeated === 0 && committed === 0
  return [
    ...equal(`${name}: values taken in its last life`, values, 'accepted in it', accepted - acceptedBefore),
    ...(isIdle ? [] : equal(`${name}: the last id committed below`, committed, 'the one that is stored', reached)),
  ]
}

/** Causes by which a value can go that waits, also one that was taken above already and whose COMMIT was lost. */
const OF_WAITING: readonly DropCause[] = ['overflow', 'expired', 'purged']

/**
 * A value is committed below once, however often it comes: repeats are not taken, and do not count there. One that was taken, and
 * whose COMMIT was lost, may be dropped below although it has come; where nothing that waits is dropped, there is none.
 */
function ofLink(below: LevelAccount, above: LevelAccount, forgotten: number): string[] {
  const more = above.rows.channel.accepted - below.rows.channel.committed
  if (more >= 0 && more <= waitingDropped(below) + forgotten) return []
  const what = `${below.name} to ${above.name}: committed below`
  return equal(what, below.rows.channel.committed, 'accepted above', above.rows.channel.accepted)
}

function waitingDropped({ rows }: LevelAccount): number {
  return OF_WAITING.reduce((sum, cause) => sum + rows.channel.dropped[cause], 0)
}

/** At most so many values that have come were dropped below, too. */
function takenAndDropped(below: LevelAccount, above: LevelAccount): number {
  return Math.min(waitingDropped(below), above.rows.channel.accepted - below.rows.channel.committed)
}

function ofConsumer(levels: readonly LevelAccount[], { values, gaps }: Came, promised: number): string[] {
  const problems = equal('committed by the consumer', levels.at(-1)?.rows.channel.committed ?? 0, 'came there', values)
  const accepted = levels[0]?.rows.channel.accepted ?? 0
  if (accepted < promised) problems.push(`answered with a yes: ${promised}, accepted by the lowest: ${accepted}`)
  // What has come need not be reported, but may be, with what was dropped beside it.
  const twice = levels.slice(1).reduce((sum, above, at) => sum + takenAndDropped(levels[at] as LevelAccount, above), 0)
  for (const cause of dropCauses) {
    const dropped = levels.reduce((sum, { rows }) => sum + rows.channel.dropped[cause], 0)
    const reported = cause in GapReason ? (gaps.get(GapReason[cause as keyof typeof GapReason])?.values ?? 0) : 0
    const least = OF_WAITING.includes(cause) ? dropped - twice : dropped
    if (reported >= least && reported <= dropped) continue
    problems.push(...equal(`dropped as ${cause} at any level`, dropped, 'reported at the uppermost', reported))
  }
  for (const [reason, { gaps: count, values: lost }] of gaps) {
    // An unclean end is reported, and nothing is lost by it.
    if (reason === GapReason.restart && lost === 0) continue
    if (dropCauses.some((cause) => (GapReason as Readonly<Record<string, number>>)[cause] === reason)) continue
    problems.push(`${count} GAPs of reason ${reason} report ${lost} values that nobody has dropped`)
  }
  return problems
}

function equal(what: string, found: number, other: string, expected: number): string[] {
  return found === expected ? [] : [`${what}: ${found}, ${other}: ${expected}`]
}
