import { beforeEach, describe, expect, test } from 'vitest'
import { AuthFailures } from '../../../../../server/kernel/accounts/audit/failures.ts'
import type { AuditEntry } from '../../../../../server/kernel/accounts/audit/log.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

const guess = { identity: 'acme/bob', address: '192.0.2.7', method: 'password', throttled: false }
const refused = { ...guess, throttled: true }

describe('AUTH failures', () => {
  let records: AuditEntry[]
  let waiting: number
  let clock: FakeClock
  let failures: AuthFailures
  beforeEach(() => {
    records = []
    waiting = 0
    clock = new FakeClock()
    failures = new AuthFailures(
      {
        record: (entry) => void records.push(entry),
        get waiting() {
          return waiting
        },
      },
      clock,
    )
  })

  test('that were judged are a record each, at once', () => {
    failures.failed(guess)
    const entry = { action: 'auth', actor: 'acme/bob', address: '192.0.2.7', object: 'password', outcome: 'failed' }
    expect(records).toEqual([entry])
  })

  test('beyond sixty of a network in a minute, or six hundred of all, are counted', () => {
    const nobody = { ...guess, identity: '', method: 'token' }
    for (let count = 0; count < 600; count++) failures.failed({ ...nobody, address: `192.0.2.${count % 256}` })
    expect(records).toHaveLength(60)
    for (let count = 0; count < 1000; count++) failures.failed({ ...nobody, address: `198.51.${count % 100}.1` })
    expect(records).toHaveLength(600)
    clock.advance(60_000)
    failures.sweep()
    const counted = records.slice(600).map(({ args }) => (args as { count: number }).count)
    expect(counted.reduce((sum, count) => sum + count, 0)).toBe(1_000)
    failures.failed(nobody)
    expect(records.at(-1)).toMatchObject({ object: 'token', outcome: 'failed' })
  })

  test('that were refused unseen are counted, and one record a minute', () => {
    for (let count = 0; count < 1000; count++) failures.failed({ ...refused, address: `192.0.2.${count % 256}` })
    clock.advance(59_999)
    failures.sweep()
    expect(records).toEqual([])
    clock.advance(1)
    failures.sweep()
    failures.sweep()
    const entry = { action: 'auth', actor: 'acme/bob', address: '192.0.2.0/24', object: 'password' }
    expect(records).toEqual([{ ...entry, args: { count: 1000 }, outcome: 'throttled', detail: '' }])
    failures.failed(refused)
    clock.advance(60_000)
    failures.sweep()
    expect(records.map(({ args }) => args)).toEqual([{ count: 1000 }, { count: 1 }])
  })

  test('are told apart by identity and network', () => {
    failures.failed(refused)
    failures.failed({ ...refused, identity: 'eve' })
    failures.failed({ ...refused, address: '198.51.100.1' })
    failures.flush()
    expect(records.map(({ actor, address }) => [actor, address])).toEqual([
      ['acme/bob', '192.0.2.0/24'],
      ['eve', '192.0.2.0/24'],
      ['acme/bob', '198.51.100.0/24'],
    ])
  })

  test('of ever new identities are a bounded number of records, and none is lost in the count', () => {
    for (let count = 0; count < 5000; count++) failures.failed({ ...refused, identity: `guess${count}` })
    clock.advance(60_000)
    failures.sweep()
    expect(records).toHaveLength(65)
    expect(records.reduce((sum, { args }) => sum + (args?.['count'] as number), 0)).toBe(5000)
    expect(records.at(-1)?.detail).toBe('of many identities and addresses')
  })

  test('are counted while records cannot be stored, and recorded when they can', () => {
    waiting = 256
    for (let count = 0; count < 9; count++) failures.failed(guess)
    clock.advance(60_000)
    failures.sweep()
    expect(records).toEqual([])
    waiting = 0
    failures.sweep()
    expect(records).toMatchObject([{ actor: 'acme/bob', args: { count: 9 }, outcome: 'failed' }])
  })

  test('of an identity that is no name are recorded cut', () => {
    failures.failed({ ...guess, identity: 'x'.repeat(10_000) })
    failures.failed({ ...refused, identity: 'x'.repeat(10_000) })
    failures.flush()
    for (const { actor } of records) expect(actor?.length).toBeLessThan(250)
    expect(records).toHaveLength(2)
  })

  test('that wait for their minute are recorded when the server stops', () => {
    failures.failed(refused)
    failures.flush()
    failures.flush()
    expect(records).toHaveLength(1)
  })
})
