import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { GapReason } from '../../../../protocol/monitor/constants.ts'
import type { QueueSettings } from '../../../../server/kernel/channels/queue-host.ts'
import type { SendBarrier } from '../../../../server/kernel/channels/window.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { times } from '../../../support/long.ts'
import { MemoryStore } from '../../../support/memory-store/store.ts'
import { Random } from '../../../support/random.ts'
import { headOf, ORIGIN, Rig } from './rig.ts'

const METRICS = [7, 8]

function settingsOf(random: Random): Partial<QueueSettings> {
  return {
    durable: random.below(4) > 0,
    window: random.pick([3, 50, 65_536]),
    windowBytes: random.pick([400, 4_000, 1 << 20]),
    maxBytes: random.pick([1_500, 6_000, 1 << 20]),
    maxAgeMs: 5_000,
    overflow: random.pick(['drop-oldest', 'drop-oldest', 'drop-newest', 'keep-latest']),
  }
}

/** One of two queues that are given the same: what it did is compared. */
class Twin {
  readonly rig: Rig
  readonly sent: string[] = []
  #barrier: SendBarrier | undefined
  readonly #isOpen: boolean

  /** `isOpen`: its inlet stays open, as in a turn of the feeds, and its COMMITs come in runs. */
  constructor(settings: Partial<QueueSettings>, isOpen: boolean, limit: number) {
    this.rig = new Rig(settings, new MemoryStore({ manual: true }), { bytes: 0, limit })
    this.#isOpen = isOpen
  }

  /** Does something inside a turn of the feeds: other things than values may come there too. */
  during(act: () => void): void {
    if (this.#isOpen) this.rig.host.inlets.begin()
    act()
    this.rig.host.inlets.end()
  }

  commit(first: number, count: number): boolean[] {
    const { queue } = this.rig
    const done = this.#isOpen ? queue.commitRun(first, count) : 0
    const found = Array.from({ length: done }, () => true)
    for (let id = first + done; id < first + count; id++) found.push(queue.commit(id, false))
    return found
  }

  hold(): void {
    this.#barrier ??= this.rig.queue.holdBack()
  }

  releaseHold(): void {
    this.#barrier?.release()
    this.#barrier = undefined
  }

  look(): object {
    const { rig, sent } = this
    const { host, batches, resultsGone } = rig
    const lanes = [...rig.queue.lanes()].map((lane) => {
      return lane.entries().map(({ first, last, kind }) => [lane.id, kind, first, last])
    })
    const { accepted, unstored, refused, sent: given } = host
    return {
      ...{ lanes, sent, resultsGone, accepted, unstored, refused, given },
      ...{ status: rig.queue.status(), balance: rig.queue.imbalance, used: host.pool.used },
      batches: batches.map(({ number, blocks, channels, reserves }) => ({ number, blocks, channels, reserves })),
    }
  }
}

type Step = (twin: Twin, random: Random) => unknown

/** What may come in a turn of the feeds. */
const inTurn: readonly Step[] = [
  ({ rig }, random) => rig.append(random.pick(METRICS), 1 + random.below(9), { bytes: 60 + 4 * random.below(40) }),
  ({ rig }, random) => rig.append(random.pick(METRICS), 1 + random.below(9)),
  ({ rig }, random) => rig.append(random.pick(METRICS), 1 + random.below(4), { waiting: true }),
  ({ rig }) => rig.queue.lost(0, { reason: GapReason.overflow, metric: 7, count: 2, from: 1, to: 2 }),
  ({ rig }) => rig.queue.addGap('paused'),
  ({ rig }) => rig.queue.appendResult(headOf(9), new Uint8Array(12), 5),
  ({ rig }, random) => rig.queue.release(random.pick(METRICS)),
  ({ rig }, random) => rig.queue.seal(random.pick(METRICS)),
  ({ rig }) => rig.queue.detach(),
  ({ rig }) => rig.queue.attach(),
  ({ rig }) => rig.queue.expire(),
  ({ rig }, random) => {
    rig.queue.settings = { ...rig.queue.settings, maxBytes: random.pick([1_500, 6_000]), window: random.pick([3, 50]) }
  },
  ({ rig, sent }, random) => {
    rig.queue.attach()
    const next = rig.queue.next(100 + random.below(4_000))
    if (next.kind === 'slice') next.chunk?.unhold()
    sent.push(next.kind === 'slice' ? Buffer.from(next.bytes).toString('hex') : next.kind)
  },
  (twin, random) => twin.sent.push(String(twin.commit(ORIGIN + random.below(60), 1 + random.below(30)))),
  ({ rig, sent }) => sent.push(String(rig.queue.commit(ORIGIN + 20, true))),
  (twin) => twin.hold(),
  (twin) => twin.releaseHold(),
  ({ rig, sent }) => sent.push(JSON.stringify([rig.queue.empty, rig.queue.isWaiting(7), rig.queue.counts])),
  ({ rig, sent }) => sent.push(String(rig.queue.endPassedStops())),
  ({ rig }) => rig.persist(),
]

/** What takes a while comes between them, and what changes between turns only. */
const between: readonly Step[] = [
  ({ rig }, random) => {
    rig.host.now += random.pick([700, 5_000])
  },
  ({ rig }, random) => {
    rig.host.refusing = random.pick([undefined, undefined, 'full', 'overflow'])
  },
  async ({ rig, sent }, random) => {
    // Nothing is sent or read back without a connection.
    rig.queue.attach()
    sent.push(...(await rig.send(200 + random.below(6_000))))
  },
  async ({ rig, sent }, random) => sent.push(`${await rig.queue.purge({ metric: random.pick(METRICS) }, rig.read)}`),
  ({ rig }, random) => rig.queue.stop(random.pick(METRICS), rig.read),
  ({ rig }) => rig.journal.atTurnEnd(),
  ({ rig }) => rig.store.complete(),
  ({ rig }) => finish(rig.queue.measure()),
]

async function walk(seed: number): Promise<void> {
  const random = new Random(seed)
  const settings = settingsOf(random)
  const limit = random.pick([2_000, 20_000, Number.POSITIVE_INFINITY])
  const twins = [true, false].map((isOpen) => new Twin(settings, isOpen, limit)) as [Twin, Twin]
  for (const { rig } of twins) {
    await rig.open()
    rig.queue.attach()
  }
  for (let turn = 0; turn < 30; turn++) {
    const steps = Array.from({ length: 1 + random.below(6) }, () => random.pick(inTurn))
    const rest = random.pick(between)
    const stepSeed = random.below(2 ** 31)
    for (const twin of twins) {
      const own = new Random(stepSeed)
      twin.during(() => {
        for (const step of steps) step(twin, own)
      })
      await rest(twin, own)
    }
    const [one, other] = twins.map((twin) => twin.look())
    // toEqual says where two differ, and takes seven times as long.
    if (!isDeepStrictEqual(one, other)) expect(one).toEqual(other)
  }
}

describe('a queue whose inlet stays open, and whose COMMITs come in runs', () => {
  it('does the same as one that counts each value at once, and settles each by itself', async () => {
    for (let seed = 1; seed <= times({ short: 100, long: 300 }); seed++) {
      await walk(seed).catch((error) => {
        throw new Error(`seed ${seed}`, { cause: error })
      })
    }
  })
})
