import { describe, expect, it } from 'vitest'
import type { QueueSettings } from '../../../../server/kernel/channels/queue-host.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { MemoryStore } from '../../../support/memory-store/store.ts'
import { Rig } from './rig.ts'

/** Two channels of a tenant that may hold 3,000 bytes together. */
async function two(settings: Partial<QueueSettings> = {}): Promise<[Rig, Rig, { bytes: number }]> {
  const share = { bytes: 0, limit: 3_000 }
  const rigs = [1, 2].map(() => new Rig(settings, new MemoryStore({ manual: true }), share)) as [Rig, Rig]
  for (const rig of rigs) {
    await rig.open()
    rig.queue.attach()
  }
  return [...rigs, share]
}

describe('channels that share a limit', () => {
  it('count together', async () => {
    const [one, other, share] = await two()
    one.append(7, 10)
    other.append(7, 20)
    expect(share.bytes).toBe(3_000)
    expect(one.queue.status().dropped.overflow + other.queue.status().dropped.overflow).toBe(0)
  })

  it('the one that wants more gives up its own oldest, and tells it; the other loses nothing', async () => {
    const [one, other, share] = await two()
    one.append(7, 10)
    other.append(7, 20)
    other.append(7, 1)
    expect(share.bytes).toBeLessThanOrEqual(3_000)
    expect(one.queue.status()).toMatchObject({ accepted: 10, queued: 10, gaps: 0 })
    expect(other.queue.status()).toMatchObject({ accepted: 21, gaps: 1 })
    expect(other.queue.status().dropped.overflow).toBeGreaterThan(0)
    expect(other.queue.imbalance).toBe(0)
  })

  it('one that has nothing to give up drops what arrives, and tells it', async () => {
    const [one, other, share] = await two()
    one.append(7, 30)
    other.append(7, 2)
    expect(other.queue.status()).toMatchObject({ accepted: 2, queued: 0, gaps: 1, dropped: { overflow: 2 } })
    expect(share.bytes).toBe(3_000)
  })

  it('drop-newest drops what arrives', async () => {
    const [one, other] = await two({ overflow: 'drop-newest' })
    one.append(7, 20)
    other.append(7, 11)
    expect(other.queue.status()).toMatchObject({ queued: 10, dropped: { overflow: 1 } })
  })

  it('keep-latest keeps the older value where the tenant has no room for the new one', async () => {
    const [one, other, share] = await two({ overflow: 'keep-latest' })
    other.append(7, 1)
    for (let metric = 10; metric < 39; metric++) one.append(metric, 1)
    other.append(7, 1, { bytes: 104 })
    expect(other.queue.status()).toMatchObject({ queued: 1, gaps: 1, dropped: { superseded: 0, overflow: 1 } })
    other.append(7, 1)
    expect(other.queue.status()).toMatchObject({ queued: 1, gaps: 1, dropped: { superseded: 1, overflow: 1 } })
    expect(share.bytes).toBe(3_000)
  })

  it.each(['commit', 'discard', 'stop'] as const)('%s gives back what it frees', async (how) => {
    const [one, , share] = await two()
    one.append(7, 10)
    one.persist()
    await one.send()
    if (how === 'commit') one.queue.commit(109, true)
    if (how === 'discard') finish(one.queue.discard())
    if (how === 'stop') await one.queue.stop(7, one.read)
    expect(share.bytes).toBe(0)
  })

  it('what waits for GET counts, and what a restart brings back', async () => {
    const [one, , share] = await two()
    one.append(7, 10, { waiting: true })
    one.append(8, 5)
    expect(share.bytes).toBe(1_500)
    one.persist()
    share.bytes = 0
    await one.crash()
    expect(share.bytes).toBe(1_500)
  })
})
