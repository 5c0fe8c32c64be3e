/**
 * Random sequences of commands by several consumers, over the wire, against a plain model of section 8: what is delivered,
 * with which ids, what is answered, what the ledger says, after every single one. fast-check makes and shrinks them.
 */
import fc from 'fast-check'
import type { Rig, Totals } from '../rig/rig.ts'
import { MemoryStore } from '../support/memory-store/store.ts'
import { NatsServers } from '../support/nats.ts'
import { ClusterBacked } from './commands/cluster-backed.ts'
import { runSequence, sequences } from './commands/sequence.ts'
import { prepareGround } from './commands/stage.ts'
import { type Counts, newCounts } from './commands/walk.ts'

/** Sequences of one run of fast-check: it keeps something of each. */
const RUN = 500

export const commands: Rig = async (options) => {
  return runCommands(options, await prepareGround(new MemoryStore()))
}

/** The same over the store of a cluster: each crash is a takeover. */
export const clusterCommands: Rig = async (options) => {
  const servers = await NatsServers.start(1)
  const store = ClusterBacked.over(servers)
  try {
    return await runCommands(options, await prepareGround(store))
  } finally {
    store.removeAll()
    await servers.stop()
  }
}

/** The same over the store of a ground. Throws with the seed, the path and the shortest sequence that fails. */
export async function runCommands({ seed, count, say }: Parameters<Rig>[0], ground: MemoryStore): Promise<Totals> {
  const counts = newCounts()
  let done = 0
  while (done < count) {
    const numRuns = Math.min(RUN, count - done)
    await runMany(ground, counts, seed + done, numRuns)
    done += numRuns
    say(`${done} of ${count} sequences, ${counts.commands} commands`)
  }
  return { sequences: done, ...counts, lost: 0, unexpected: 0, reused: 0 }
}

async function runMany(ground: MemoryStore, counts: Counts, seed: number, numRuns: number): Promise<void> {
  const property = fc.asyncProperty(sequences, async (list) => {
    await runSequence(ground, counts, (walk) => fc.asyncModelRun(() => ({ model: {}, real: walk }), list))
  })
  const found = await fc.check(property, { seed, numRuns })
  if (!found.failed) return
  const { counterexamplePath, counterexample, errorInstance } = found
  const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance)
  throw new Error(
    `commands: seed ${seed}, path "${counterexamplePath}": ${what}\n` +
      `The sequence, for test/chaos/commands/cases.ts:\n${String(counterexample?.[0])}`,
    { cause: errorInstance },
  )
}
