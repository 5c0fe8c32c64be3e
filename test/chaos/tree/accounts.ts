/** Brings a tree to its end and reads what the judge needs: what the servers say, and then what they have stored. */
import { until } from '../../rig/patience.ts'
import type { Json } from '../../support/records.ts'
import type { LevelAccount } from './balance.ts'
import { rowsOf } from './rows.ts'
import { countersAt, type Level, ledgerAt, type Tree } from './servers.ts'

/** Values that the channel of a level had accepted when the last life of its process began; 0 for those not in it. */
export type AcceptedBefore = ReadonlyMap<Level, number>

/** Waits until nothing waits in any channel, reads, and ends the servers. */
export async function accountsOf({ levels }: Tree, acceptedBefore: AcceptedBefore): Promise<LevelAccount[]> {
  await until('nothing waits at any level', async () => {
    for (const level of levels) {
      const { queued, in_flight } = await ledgerAt(level)
      if (queued + in_flight > 0) return false
    }
    return true
  })
  const said: { level: Level; ledger: Json; counters: Json | undefined }[] = []
  for (const level of levels) {
    const counters = level.below === '' ? undefined : await countersAt(level)
    said.push({ level, ledger: await ledgerAt(level), counters })
  }
  // What is stored later than it is said is stored then.
  for (const { server } of levels) await server.end('SIGTERM')
  return said.map(({ level, ledger, counters }) => {
    const upstream = counters && { ...counters, acceptedBefore: acceptedBefore.get(level) ?? 0 }
    return { name: level.name, ledger, rows: rowsOf(level), upstream }
  })
}
