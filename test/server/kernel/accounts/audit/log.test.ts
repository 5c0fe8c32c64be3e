import { beforeEach, describe, expect, test } from 'vitest'
import { AuditLog } from '../../../../../server/kernel/accounts/audit/log.ts'
import { hashOf, NO_HASH } from '../../../../../server/kernel/accounts/audit/record.ts'
import { Journal } from '../../../../../server/kernel/channels/journal.ts'
import { TurnScheduler } from '../../../../../server/kernel/channels/turn-scheduler.ts'
import type { AuditRow } from '../../../../../storage/store.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'
import { MemoryStore } from '../../../../support/memory-store/store.ts'

const bob = { tenant: 'acme', name: 'bob' }
const entry = { action: 'execute', identity: bob, address: '192.0.2.1', object: 'exec.restart', outcome: 'ok' }

describe('the audit log', () => {
  let store: MemoryStore
  let clock: FakeClock
  let audit: AuditLog
  let journal: Journal
  beforeEach(async () => {
    clock = new FakeClock()
    await open(new MemoryStore())
  })

  async function open(on: MemoryStore): Promise<void> {
    store = on
    const recovered = await store.open({
      onDurable: (n) => journal.onDurable(n),
      onFull() {},
      onFailed() {},
      onRoom() {},
    })
    journal = new Journal(store, new TurnScheduler(clock), {
      age: () => clock.monotonicMs(),
      wallMs: () => clock.wallMs(),
    })
    audit = new AuditLog({ journal, clock, store, audited: recovered.audited })
  }

  async function rows(): Promise<AuditRow[]> {
    await journal.whenStored()
    return store.audit(0, 1000)
  }

  async function expectChain(): Promise<void> {
    let before = NO_HASH
    for (const [index, { hash, ...row }] of (await rows()).entries()) {
      expect(row.number).toBe(index + 1)
      expect(Buffer.from(hash).toString('hex')).toBe(Buffer.from(hashOf(row, before)).toString('hex'))
      before = hash
    }
  }

  test('a record has who, what, from where, and what came of it', async () => {
    audit.record({ ...entry, args: { unit: 'x', password: 'canary' }, detail: 'done' })
    const [row] = await rows()
    expect(row).toMatchObject({
      number: 1,
      time: clock.microseconds(),
      action: 'execute',
      actor: 'acme/bob',
      tenant: 'acme',
      address: '192.0.2.1',
      object: 'exec.restart',
      args: '{"unit":"x","password":"***"}',
      outcome: 'ok',
      detail: 'done',
    })
  })

  test('where nobody is known the actor is what is said, and of no tenant', async () => {
    audit.record({ action: 'auth', actor: 'eve', address: 'a', object: 'password', outcome: 'failed' })
    audit.record({ action: 'dial', address: 'a', object: 'o', outcome: 'ok' })
    expect((await rows()).map(({ actor, tenant, args }) => [actor, tenant, args])).toEqual([
      ['eve', '', '{}'],
      ['', '', '{}'],
    ])
  })

  test('records are numbered and chained, over restarts too', async () => {
    for (let count = 0; count < 3; count++) audit.record(entry)
    await journal.whenStored()
    await open(store.crash())
    expect(audit.stored).toBe(3)
    audit.record(entry)
    await expectChain()
    expect(audit.stored).toBe(4)
  })

  test('texts that are too long are cut, and the chain is over what is stored', async () => {
    audit.record({ ...entry, object: `\ud800${'x'.repeat(5000)}`, detail: 'y'.repeat(5000) })
    await expectChain()
    const [row] = await rows()
    expect([row?.object.length, row?.detail.length]).toEqual([1044, 2068])
  })

  test('whoever follows is told of a record when it is stored, not before, and once', async () => {
    const reported: number[] = []
    const end = audit.follow((stored) => reported.push(...stored.map(({ number }) => number)))
    store.manual = true
    audit.record(entry)
    await new Promise((resolve) => setImmediate(resolve))
    // The first is on its way; the second waits for the next batch.
    audit.record(entry)
    await new Promise((resolve) => setImmediate(resolve))
    expect([reported, audit.stored]).toEqual([[], 0])
    store.complete()
    expect([reported, audit.stored]).toEqual([[1], 1])
    await new Promise((resolve) => setImmediate(resolve))
    store.complete()
    expect(reported).toEqual([1, 2])
    end()
    audit.record(entry)
    await new Promise((resolve) => setImmediate(resolve))
    store.complete()
    expect(reported).toEqual([1, 2])
  })

  test('what is too old goes from the beginning, and never the last record', async () => {
    for (let count = 0; count < 200; count++) audit.record(entry)
    clock.advance(1000)
    for (let count = 0; count < 5; count++) audit.record(entry)
    await journal.whenStored()
    expect(await audit.prune(2000)).toBe(0)
    expect(await audit.prune(999)).toBe(200)
    expect((await rows()).map(({ number }) => number)).toEqual([201, 202, 203, 204, 205])
    clock.advance(5000)
    expect(await audit.prune(1000)).toBe(4)
    expect(await audit.prune(1000)).toBe(0)
    audit.record(entry)
    expect((await rows()).map(({ number }) => number)).toEqual([205, 206])
  })
})
