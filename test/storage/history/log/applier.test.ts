/** What is done with records that do not follow what a history has, and with series that nobody has asked for in hours. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { History } from '../../../../storage/history/history.ts'
import { HistoryApplier } from '../../../../storage/history/log/applier.ts'
import { LoggedHistory } from '../../../../storage/history/log/logged-history.ts'
import { encodeHistoryRecord, type HistoryOperation } from '../../../../storage/history/log/record.ts'
import { type LogPlace, NO_RECORD_HASH } from '../../../../storage/replicated/place.ts'
import { recordHash } from '../../../../storage/replicated/record.ts'

const NOW = 1_700_000_000_000
const HOUR = 3_600_000
const EVER = { fromMs: 0, toMs: 1e14 }
const MISSED = 'records of the cluster that this node has missed, or cannot read'
const SERIES = { tenant: 'acme', name: 'load', labels: [], native: 'test.load' } as const

let directory: string
let history: History
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-history-applier-'))
  const limits = { keepMs: 1e12, keepRollupsMs: 1e12, maxBytes: 2 ** 40, quotas: new Map() }
  history = History.open({ directory, limits, clock: () => NOW + 10 * HOUR })
})
afterEach(() => {
  history.close()
  rmSync(directory, { recursive: true })
})

const timesIn = (): number[] => {
  const times: number[] = []
  for (const one of history.select({ tenant: 'acme', matchers: [], ...EVER })) times.push(...(one?.times ?? []))
  return times.map((time) => time - NOW)
}

/** Records of one sample each; those at `broken` follow no other. */
function recordsOf(count: number, broken: readonly number[]) {
  let before: Uint8Array = NO_RECORD_HASH
  return Array.from({ length: count }, (_, index) => {
    const sequence = index + 1
    const previous = broken.includes(sequence) ? new Uint8Array(32).fill(sequence) : before
    const position = { generation: 'g 1', channel: 1, transaction: sequence, committed: 0, takenMs: NOW + sequence }
    const operation: HistoryOperation = {
      kind: 'append',
      tenant: 'acme',
      position,
      losses: [],
      texts: [JSON.stringify(['test.load', 'load', 'unknown', []])],
      series: Uint32Array.of(0),
      times: Float64Array.of(NOW + sequence),
      values: Float64Array.of(sequence),
    }
    const bytes = encodeHistoryRecord({ previous, wallMs: NOW + sequence, base: undefined, operations: [operation] })
    before = recordHash(bytes)
    return { kind: 'batch', epoch: 1, node: 'a', sequence, bytes } as const
  })
}

it('goes on after a record that follows none in the log, and states a loss', async () => {
  const records = recordsOf(6, [3, 5])
  const bounds = { log: 1, first: 1, last: records.length }
  const applier = new HistoryApplier(history, () => NOW, new AbortController().signal)
  let after = applier.begin(bounds)
  let begun = 0
  for (let at = after; at < records.length; ) {
    if (await applier.apply(records[at] as (typeof records)[number])) at++
    else {
      expect(++begun).toBeLessThan(5)
      after = applier.beginAgain(bounds)
      at = after
    }
  }
  expect(begun).toBeGreaterThan(0)
  expect(timesIn()).toEqual([1, 2, 3, 4, 5, 6])
  expect(history.log.place).toMatchObject({ log: 1, sequence: 6 })
  const losses = history.losses({ tenant: 'acme', ...EVER })
  expect(losses.length).toBeGreaterThanOrEqual(2)
  expect(new Set(losses.map(({ reason }) => reason))).toEqual(new Set([MISSED]))
})

it.each([
  ['a record that is cut short', (bytes: Uint8Array) => bytes.subarray(0, bytes.length - 3)],
  [
    'a record with a text that is no series',
    (bytes: Uint8Array) =>
      Buffer.from(Buffer.from(bytes).toString('latin1').replace('["test.load"', '{"test.load"'), 'latin1'),
  ],
])('goes on after %s, and states a loss', async (_, spoilt) => {
  const records = recordsOf(2, [])
  const applier = new HistoryApplier(history, () => NOW + HOUR, new AbortController().signal)
  applier.begin({ log: 1, first: 1, last: 4 })
  for (const record of records) expect(await applier.apply(record)).toBe(true)
  const third = { ...(recordsOf(3, [])[2] as (typeof records)[number]), sequence: 3 }
  const bytes = spoilt(third.bytes)
  expect(Buffer.compare(bytes, third.bytes)).not.toBe(0)
  expect(await applier.apply({ ...third, bytes })).toBe(true)
  const operations: HistoryOperation[] = [
    {
      kind: 'append',
      tenant: 'acme',
      position: undefined,
      losses: [],
      texts: [JSON.stringify(['test.load', 'load', 'unknown', []])],
      series: Uint32Array.of(0),
      times: Float64Array.of(NOW + 4),
      values: Float64Array.of(4),
    },
  ]
  const fourth = encodeHistoryRecord({ previous: recordHash(bytes), wallMs: NOW + 4, base: undefined, operations })
  expect(await applier.apply({ kind: 'batch', epoch: 1, node: 'a', sequence: 4, bytes: fourth })).toBe(true)
  expect(timesIn()).toEqual([1, 2, 4])
  expect(history.log.place).toMatchObject({ log: 1, sequence: 4 })
  const losses = history.losses({ tenant: 'acme', ...EVER })
  expect(losses.map(({ reason }) => reason)).toEqual([MISSED])
})

it('records that a series has ended of which nothing has come for hours', async () => {
  let wallMs = NOW
  let sequence = 0
  const append = async (operations: readonly HistoryOperation[]): Promise<LogPlace> => {
    appended.push(...operations)
    return { log: 1, epoch: 1, sequence: ++sequence, hash: NO_RECORD_HASH }
  }
  const appended: HistoryOperation[] = []
  const parts = { history, log: { append }, wallMs: () => wallMs, logged: () => {}, failed: () => {} }
  const logged = new LoggedHistory(parts)
  const reference = logged.seriesOf(SERIES) as number
  const take = async (series: number): Promise<void> => {
    const columns = { series: Uint32Array.of(series), times: Float64Array.of(wallMs), values: Float64Array.of(1) }
    logged.append({ tenant: 'acme', position: undefined, ...columns, length: 1, losses: [] })
    while (!logged.commit()) await turn()
  }
  await take(reference)
  const other = logged.seriesOf({ ...SERIES, name: 'other' }) as number
  for (let hour = 1; hour <= 3; hour++) {
    wallMs = NOW + hour * HOUR
    logged.seriesOf({ ...SERIES, name: 'other' })
    await take(other)
  }
  await take(reference)
  expect(appended.at(-1)).toMatchObject({ texts: [JSON.stringify(['test.load', 'load', 'unknown', []])] })
  await expect(take(reference + 100)).rejects.toThrow('nobody has asked for that')
})
