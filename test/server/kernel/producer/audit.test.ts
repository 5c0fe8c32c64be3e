/** `producer.audit` by itself: what it reads of the log, what it takes as it comes, and who sees what of it. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Identity } from '../../../../auth/permissions.ts'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import type { Metric, ResumePoint } from '../../../../server/kernel/metrics/metric.ts'
import { AuditSensor } from '../../../../server/kernel/producer/audit.ts'
import type { AuditRow } from '../../../../storage/store.ts'

const admin: Identity = { userId: 1, tenant: 'default', name: 'root', role: 'admin' }
const texts = { action: 'execute', actor: 'bob', address: '192.0.2.1', object: 'exec.x', args: '{}', outcome: 'ok' }

function record(number: number): AuditRow {
  const tenant = number % 2 === 0 ? 'acme' : 'default'
  return { ...texts, number, time: 1_000_000 + number, tenant, detail: '', hash: Uint8Array.of(number) }
}

/** A log of which the test says when what is read arrives. */
class HandLog {
  stored = 0
  readonly #listeners = new Set<(rows: readonly AuditRow[]) => void>()
  readonly #answers: (() => void)[] = []
  portion = 3
  fails = false
  /** Records below are gone. */
  first = 1

  follow(listener: (rows: readonly AuditRow[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  read(after: number): Promise<AuditRow[]> {
    const from = Math.max(after + 1, this.first)
    const count = Math.max(0, Math.min(this.portion, this.stored - from + 1))
    const rows = Array.from({ length: count }, (_, index) => record(from + index))
    return new Promise((resolve, reject) =>
      this.#answers.push(() => (this.fails ? reject(new Error('unreadable')) : resolve(rows))),
    )
  }

  async whenStored(): Promise<void> {}

  /** So many records are stored at once. */
  store(count: number): void {
    const rows = Array.from({ length: count }, (_, index) => record(this.stored + 1 + index))
    this.stored += count
    for (const listener of this.#listeners) listener(rows)
  }

  get asked(): number {
    return this.#answers.length
  }

  /** The oldest question is answered with what was there when it was asked. */
  async answer(): Promise<void> {
    this.#answers.shift()?.()
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
}

describe('producer.audit', () => {
  let log: HandLog
  let reached: number[]
  let lines: string[]
  beforeEach(() => {
    log = new HandLog()
    reached = []
    lines = []
  })

  function subscribe(options: { after?: bigint; identity?: Identity; reached?: number; created?: number } = {}): {
    seen: number[]
    end: () => void
  } {
    const sensor = new AuditSensor(
      log,
      createLogger('trace', { write: (line) => void lines.push(line) }),
      () => options.created ?? 0,
    )
    const { after, identity = admin } = options
    const place: ResumePoint = { reached: options.reached, reach: (number) => void reached.push(number) }
    const seen: number[] = []
    const end = sensor.subscribe(
      sensor.metric('producer.audit') as Metric,
      identity,
      ({ time }) => seen.push(time - 1_000_000),
      new Map(after === undefined ? [] : [['after', after]]),
      place,
    )
    return { seen, end }
  }

  test('shows a record as a REC with its time', () => {
    const sensor = new AuditSensor(log, createLogger('silent'), () => 0)
    const shown: unknown[] = []
    const place: ResumePoint = { reached: undefined, reach() {} }
    sensor.subscribe(
      sensor.metric('producer.audit') as Metric,
      admin,
      (event) => shown.push([event.time, valueToJson(event.value)]),
      new Map(),
      place,
    )
    log.store(1)
    const rest = { ...texts, tenant: 'default', detail: '', hash: 'AQ==' }
    expect(shown).toEqual([[1_000_001, { number: 1, time: 1_000_001, ...rest }]])
  })

  test('without `after` it begins with what comes, and a restart knows where that was', () => {
    log.store(4)
    const { seen } = subscribe()
    expect([seen, reached, log.asked]).toEqual([[], [4], 0])
    log.store(2)
    expect([seen, reached]).toEqual([
      [5, 6],
      [4, 6],
    ])
  })

  test('with `after` it reads the log in portions, then takes what comes: no hole, nothing twice', async () => {
    log.store(8)
    const { seen } = subscribe({ after: 1n })
    await log.answer()
    expect(seen).toEqual([2, 3, 4])
    log.store(1)
    await log.answer()
    log.store(1)
    await log.answer()
    // What was stored after its question is asked for once more.
    await log.answer()
    expect([seen, log.asked]).toEqual([[2, 3, 4, 5, 6, 7, 8, 9, 10], 0])
    log.store(2)
    expect(seen.slice(-2)).toEqual([11, 12])
    expect(reached).toEqual([1, 4, 7, 9, 10, 12])
  })

  test('`after` of a number that is to come, however large, waits for it', () => {
    const near = subscribe({ after: 3n })
    const far = subscribe({ after: 2n ** 64n - 1n })
    log.store(2)
    log.store(3)
    expect([near.seen, far.seen]).toEqual([[4, 5], []])
    expect(reached.every(Number.isSafeInteger)).toBe(true)
  })

  test('a binding that comes back goes on where it was, whatever `after` says', async () => {
    log.store(6)
    const { seen } = subscribe({ after: 0n, reached: 4 })
    await log.answer()
    expect([seen, reached]).toEqual([[5, 6], [6]])
  })

  test('records that went because of their age are passed over', async () => {
    log.store(6)
    log.first = 4
    const { seen } = subscribe({ after: 0n })
    await log.answer()
    expect(seen).toEqual([4, 5, 6])
  })

  test('who is not admin sees no record from before it was added: the name may have been another’s', async () => {
    const bob = { userId: 2, tenant: 'acme', name: 'bob', role: 'operator' }
    log.store(6)
    const { seen } = subscribe({ after: 0n, identity: bob, created: 1_000.004 })
    await log.answer()
    await log.answer()
    expect(seen).toEqual([4, 6])
  })

  test('who is not admin sees the records of its tenant, as it is at that moment', async () => {
    log.store(4)
    const bob = { userId: 2, tenant: 'acme', name: 'bob', role: 'operator' }
    const { seen } = subscribe({ after: 0n, identity: bob })
    await log.answer()
    await log.answer()
    log.store(2)
    expect(seen).toEqual([2, 4, 6])
    bob.role = 'admin'
    log.store(1)
    expect(seen).toEqual([2, 4, 6, 7])
    expect(reached.at(-1)).toBe(7)
  })

  test('ends, also while it reads', async () => {
    log.store(9)
    const { seen, end } = subscribe({ after: 0n })
    await log.answer()
    end()
    await log.answer()
    log.store(1)
    expect([seen, log.asked]).toEqual([[1, 2, 3], 0])
  })

  test('a log that cannot be read is reported in the log of the server, and what comes is sent', async () => {
    log.store(3)
    log.fails = true
    const { seen } = subscribe({ after: 0n })
    await log.answer()
    expect(lines.join()).toContain('records are missing from producer.audit')
    log.store(1)
    expect(seen).toEqual([4])
  })

  test('records that somebody deleted keep nobody from what comes', async () => {
    log.store(3)
    log.first = 9
    const { seen } = subscribe({ after: 0n })
    log.store(1)
    await log.answer()
    await log.answer()
    log.store(1)
    expect(seen).toEqual([5])
  })
})
