/** What every store has to do with the audit log, over all of them. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AuditRow } from '../../storage/store.ts'
import { frames } from './store-batch.ts'
import { implementations, type Subject } from './store-implementations.ts'

function record(number: number, text = 'ä\0'): AuditRow {
  return {
    number,
    time: 1_700_000_000_000_000 + number,
    action: `execute${text}`,
    actor: 'acme/bob',
    tenant: 'acme',
    address: '192.0.2.1',
    object: 'exec.restart',
    args: '{"unit":"x"}',
    outcome: 'ok',
    detail: '',
    hash: frames(number, 32),
  }
}

describe.each(implementations)('the audit log of a store ($name)', ({ make, stop: stopAll }) => {
  afterAll(stopAll)
  let subject: Subject
  beforeEach(async () => {
    subject = await make()
    await subject.open()
  })
  afterEach(() => subject.end())

  const write = (from: number, to: number): Promise<void> => {
    const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index)
    return subject.write({ changes: numbers.map((number) => ({ put: 'audit', row: record(number) })) })
  }
  async function numbers(after: number, limit: number): Promise<number[]> {
    return (await subject.store.audit(after, limit)).map(({ number }) => number)
  }

  test('records come back as they were', async () => {
    await write(1, 2)
    const rows = await subject.store.audit(0, 10)
    const plain = (row: AuditRow) => ({ ...row, hash: [...row.hash] })
    expect(rows.map(plain)).toEqual([record(1), record(2)].map(plain))
  })

  test('they are read above a number, ascending, and not more than asked for', async () => {
    await write(1, 700)
    expect(await numbers(0, 3)).toEqual([1, 2, 3])
    expect(await numbers(698, 10)).toEqual([699, 700])
    expect(await numbers(700, 10)).toEqual([])
    expect(await numbers(0, 600)).toHaveLength(600)
    expect(await numbers(0, Number.POSITIVE_INFINITY)).toEqual(Array.from({ length: 700 }, (_, index) => index + 1))
  })

  test('a record of a batch that is not durable is not read', async () => {
    await write(1, 1)
    const reading = subject.store.audit(1, 10)
    expect(await reading).toEqual([])
  })

  test('a start receives the last record', async () => {
    expect(subject.recovered?.audited).toBeUndefined()
    await write(1, 3)
    const { audited } = await subject.reopen()
    expect([audited?.number, ...(audited?.hash ?? [])]).toEqual([3, ...frames(3, 32)])
  })

  test('records go from the beginning; the last one that was written is known all the same', async () => {
    await write(1, 5)
    await subject.write({ changes: [{ remove: 'audit', through: 3 }] })
    expect(await numbers(0, 10)).toEqual([4, 5])
    expect((await subject.reopen()).audited?.number).toBe(5)
    await subject.write({ changes: [{ remove: 'audit', through: 9 }] })
    expect(await numbers(0, 10)).toEqual([])
    const { audited, warnings } = await subject.reopen()
    expect([audited?.number, ...(audited?.hash ?? [])]).toEqual([5, ...frames(5, 32)])
    expect(warnings).toBeUndefined()
  })
})
