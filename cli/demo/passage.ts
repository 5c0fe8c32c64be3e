/** What went into a stage of a demonstration or to its consumer, and what came out there. */
import type { ChannelLedger } from '../ledger.ts'
import { namesOf, type Stage, sum } from './stage.ts'

export interface Passage {
  readonly name: string
  readonly from: string
  readonly sent: number
  readonly arrived: number
  readonly lost: number
  readonly repeated: number
}

/** One to each stage, and one to the consumer at the uppermost. */
export async function passagesOf(stages: readonly Stage[]): Promise<readonly Passage[]> {
  const ledgers = new Map(await Promise.all(stages.map(async (stage) => [stage, await stage.ledger()] as const)))
  const passages = Array.from(ledgers, ([{ name, source, below }, ledger]) => {
    if (source !== undefined) return passageTo(name, 'its source', source.fed, ledger)
    const committed = sum(below, (stage) => ledgers.get(stage)?.committed ?? 0)
    return passageTo(name, namesOf(below), committed, ledger)
  })
  const consumer = {
    name: 'consumer',
    from: 'the sources',
    sent: sum(stages, ({ fed }) => fed),
    arrived: sum(stages, ({ check }) => check.handled),
    lost: sum(stages, ({ fed, check }) => check.lostOf(fed)),
    repeated: sum(stages, ({ check }) => check.repeated),
  }
  return [...passages, consumer]
}

/**
 * What reached a channel. `sent`: by its source, or what was committed below and is not kept there any more. It is exact when nothing
 * is on its way; a loss and a repetition at one place would cancel each other, but not at the consumer, which knows each number.
 */
export function passageTo(name: string, from: string, sent: number, { accepted, dropped }: PassedLedger): Passage {
  const lost = dropped.reduce((sum, { count }) => sum + count, Math.max(0, sent - accepted))
  return { name, from, sent, arrived: accepted, lost, repeated: Math.max(0, accepted - sent) }
}

type PassedLedger = Pick<ChannelLedger, 'accepted' | 'dropped'>

/** Says what was lost or repeated and where, line by line; empty if nothing was. */
export function describeFaults(passages: readonly Passage[]): string {
  const isFaulty = ({ sent, arrived, lost, repeated }: Passage) => lost > 0 || repeated > 0 || sent !== arrived
  return passages
    .filter(isFaulty)
    .map(
      ({ name, from, sent, arrived, lost, repeated }) =>
        `from ${from} to ${name}: ${sent} sent, ${arrived} arrived, ${lost} lost, ${repeated} repeated`,
    )
    .join('\n')
}
