import { describe, expect, it } from 'vitest'
import { type Quota, Quotas, type TenantUse } from '../../../../server/kernel/accounts/quotas.ts'
import { StatusError } from '../../../../server/kernel/core/errors.ts'
import { defaultConfig } from '../../../../server/start/config.ts'

const defaults: Quota = { ...defaultConfig().quota, queuedBytes: 0, historyBytes: 1 }

function rig(quota: Partial<Quota>): { use: TenantUse; clock: { now: number }; set(quota: Partial<Quota>): void } {
  const clock = { now: 5_000 }
  let limits = { ...defaults, ...quota }
  const quotas = new Quotas(() => limits, { monotonicMs: () => clock.now })
  return {
    use: quotas.of('acme'),
    clock,
    set: (other) => {
      limits = { ...limits, ...other }
      quotas.changed('acme')
    },
  }
}

function refusal(act: () => void): string {
  try {
    act()
  } catch (error) {
    if (error instanceof StatusError) return `${error.status} ${error.message}`
    throw error
  }
  return 'done'
}

describe('what a tenant may have', () => {
  it('is one account, whoever asks', () => {
    const quotas = new Quotas(() => defaults, { monotonicMs: () => 0 })
    expect(quotas.of('acme')).toBe(quotas.of('acme'))
    expect(quotas.of('acme')).not.toBe(quotas.of('other'))
  })

  it('is counted while it is there, and refused above the limit without being counted', () => {
    const { use } = rig({ connections: 2 })
    use.connections.enter()
    use.connections.enter()
    expect(refusal(() => use.connections.enter())).toBe(
      'QUOTA_EXCEEDED tenant acme: connections: 2 exist and 2 are allowed',
    )
    expect(use.connections.used).toBe(2)
    use.connections.leave()
    expect(refusal(() => use.connections.enter())).toBe('done')
  })

  it('is without limit where the quota is 0', () => {
    const { use } = rig({ channels: 0 })
    expect(use.channels.hasRoom(1_000_000_000)).toBe(true)
    expect(use.queued.limit).toBe(Number.POSITIVE_INFINITY)
  })

  it('a limit that is lowered takes nothing away, and lets nothing more in', () => {
    const { use, set } = rig({ channels: 3 })
    for (let i = 0; i < 3; i++) use.channels.enter()
    set({ channels: 1 })
    expect(use.channels.used).toBe(3)
    expect(use.channels.hasRoom()).toBe(false)
  })
})

describe('queued bytes while the disk is low', () => {
  const quotas = () => new Quotas(() => ({ ...defaults, queuedBytes: 500 }), { monotonicMs: () => 0 })

  it('are an equal share of what all hold and of what is free, or what a tenant held before', () => {
    const all = quotas()
    const [eve, bob] = [all.of('eve').queued, all.of('bob').queued]
    eve.bytes = 480
    bob.bytes = 20
    all.apportion({ sizeBytes: 1_000, freeBytes: 100 }, 4)
    expect([eve.limit, bob.limit]).toEqual([500, 500])
    all.apportion({ sizeBytes: 1_000, freeBytes: 99 }, 4)
    expect([eve.limit, bob.limit]).toEqual([480, 599 / 4])
    expect(all.of('ann').queued.limit).toBe(599 / 4)
  })

  it('come down to the equal share with the last of the space, and are the quota again when there is room', () => {
    const all = quotas()
    const { queued } = all.of('eve')
    queued.bytes = 400
    const limits = [90, 50, 40, 25, 0].map((freeBytes) => {
      all.apportion({ sizeBytes: 1_000, freeBytes }, 4)
      return queued.limit
    })
    expect(limits).toEqual([400, 400, 320, 200, 100])
    all.apportion({ sizeBytes: 1_000, freeBytes: 800 }, 4)
    expect(queued.limit).toBe(500)
  })

  it('never exceed the quota', () => {
    const all = quotas()
    all.apportion({ sizeBytes: 1_000_000, freeBytes: 5_000 }, 2)
    expect(all.of('eve').queued.limit).toBe(500)
  })

  it('are not shared where there is one tenant', () => {
    const all = quotas()
    all.of('eve').queued.bytes = 100
    all.apportion({ sizeBytes: 1_000, freeBytes: 1 }, 1)
    expect(all.of('eve').queued.limit).toBe(500)
  })
})

describe('controls in a minute', () => {
  it('are as many as allowed within any minute, and the refusal says when again', () => {
    const { use, clock } = rig({ controlsPerMinute: 2 })
    use.controls.take()
    clock.now += 50_000
    use.controls.take()
    clock.now += 9_999
    expect(refusal(() => use.controls.take())).toContain('again in 1 s')
    clock.now += 1
    expect(refusal(() => use.controls.take())).toBe('done')
    clock.now += 1
    expect(refusal(() => use.controls.take())).toContain('QUOTA_EXCEEDED')
    expect(use.controls.used).toBe(2)
  })

  it('wait for the one that makes room after the limit was lowered', () => {
    const { use, clock, set } = rig({ controlsPerMinute: 3 })
    for (let i = 0; i < 3; i++) {
      use.controls.take()
      clock.now += 10_000
    }
    set({ controlsPerMinute: 1 })
    expect(use.controls.waitMs).toBe(50_000)
  })
})

describe('bytes of the audit log in a day', () => {
  it('are refused above the limit, and come back evenly', () => {
    const { use, clock, set } = rig({ auditBytesPerDay: 1_000 })
    use.audited.take(600)
    expect(use.audited.hasRoom).toBe(true)
    use.audited.take(600)
    expect(refusal(() => use.audited.needsRoom())).toMatch(
      /^QUOTA_EXCEEDED tenant acme: bytes of the audit log in a day: 1000/,
    )
    clock.now += 86_400_000 / 4
    expect([use.audited.used, use.audited.hasRoom]).toEqual([950, true])
    clock.now += 86_400_000 * 10
    expect(use.audited.used).toBe(0)
    use.audited.take(1_000)
    set({ auditBytesPerDay: 0 })
    expect([use.audited.used, use.audited.hasRoom]).toEqual([0, true])
  })
})

describe('by default', () => {
  it('3 million matches of patterns fit: 1,000 hosts, 30 metrics each, 100 consumers of all', () => {
    expect(rig({}).use.instances.hasRoom(1_000 * 30 * 100)).toBe(true)
  })

  it('nothing that a tenant may use is without a limit', () => {
    const { queued: _, history: __, historyLimits, ...all } = rig({}).use
    for (const [name, { limit }] of Object.entries(all)) expect([name, Number.isFinite(limit)]).toEqual([name, true])
    for (const limit of Object.values(historyLimits)) expect(limit).toBeLessThan(Number.POSITIVE_INFINITY)
  })
})

describe('values in a second', () => {
  it('are as many as allowed, however they are spread', () => {
    const { use, clock } = rig({ valuesPerSecond: 10 })
    let taken = 0
    for (let i = 0; i < 10_000; i++) {
      if (use.values.take()) taken++
      clock.now += 1
    }
    expect(taken).toBe(100)
    expect(use.values.refused).toBe(9_900)
  })

  it('a quiet second saves nothing up', () => {
    const { use, clock } = rig({ valuesPerSecond: 10 })
    use.values.take()
    clock.now += 5_000
    const taken = Array.from({ length: 30 }, () => use.values.take()).filter(Boolean)
    expect(taken).toHaveLength(10)
    expect(use.values.waitMs).toBe(1_000)
    clock.now += 400
    expect(use.values.waitMs).toBe(600)
  })

  it('are counted in portions of a large limit, and the limit holds', () => {
    const { use, clock } = rig({ valuesPerSecond: 1_000_000 })
    const taken = () => Array.from({ length: 1_000_500 }, () => use.values.take()).filter(Boolean).length
    expect(taken()).toBe(1_000_000)
    clock.now += 1_000
    expect(taken()).toBe(1_000_000)
  })

  it('a limit set while values stream is noticed within a thousand of them', () => {
    const { use, set } = rig({ valuesPerSecond: 0 })
    for (let i = 0; i < 500; i++) use.values.take()
    set({ valuesPerSecond: 5 })
    const taken = Array.from({ length: 2_000 }, () => use.values.take()).filter(Boolean)
    expect(taken.length).toBeLessThanOrEqual(1_005)
  })
})
