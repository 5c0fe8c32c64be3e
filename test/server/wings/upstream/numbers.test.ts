/** Values, times and losses of any size from an upstream: each is passed on or refused, and whoever reads can write it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Value, writeTyped } from '../../../../protocol/monitor/value.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import type { RemoteSensor } from '../../../../server/kernel/metrics/metric.ts'
import { LabelledFamily } from '../../../../server/kit/labelled-sensor.ts'
import { unknownMetric } from '../../../../server/wings/upstream/catalogue.ts'
import { readingsOf } from '../../../../server/wings/upstream/readings.ts'
import { UpstreamReport } from '../../../../server/wings/upstream/report.ts'
import { Tap } from '../../../../server/wings/upstream/tap.ts'
import { value } from '../../../protocol/monitor/arbitraries.ts'
import { times } from '../../../support/long.ts'
import { doubles, uint64s } from '../../../support/odd-numbers.ts'
import { lastOf, Readers } from '../../../support/readers.ts'

const { DOUBLE, STRING } = BasicType

/** A payload of a VALUE as it comes: the value in the REC of a series of host h. */
function payload(typed: Value, time: bigint): Uint8Array {
  const writer = new XdrWriter().uint32(7).uint64(1n).uint64(time)
  const value = { name: 'value', ...typed }
  writeTyped(writer, { type: BasicType.REC, value: [{ name: 'host', type: STRING, value: 'h' }, value] })
  return writer.copy()
}

/** An upstream `east` whose values of `test.a` a test brings. */
function eastOf(readers: Readers) {
  const { hub } = readers
  const request = { producer: 'east', name: 'test.a', args: [] }
  const tap = new Tap({ request, isDurable: false, hub, maxSeries: 10, mayAsk: () => true })
  let last: Value = { type: BasicType.VOID, value: null }
  const sensor: RemoteSensor = {
    polled: 'remote',
    family: '',
    owner: { tenant: 'default' },
    producers: () => [{ id: 'e', name: 'east' }],
    metrics: () => [],
    metric: unknownMetric,
    follow(_request, follower) {
      tap.add(follower)
      return { series: tap.series(), end: () => tap.delete(follower) }
    },
    ask: async () => readingsOf(request, false, { value: last, time: readers.clock.microseconds() }, false),
  }
  hub.add(sensor)
  const take = (typed: Value, time: bigint): boolean => {
    const bytes = payload(typed, time)
    try {
      tap.take(bytes, 0, bytes.length, new DataView(bytes.buffer, bytes.byteOffset, bytes.length))
    } catch (error) {
      if (error instanceof ProtocolError) return false
      throw error
    }
    last = typed
    return true
  }
  return take
}

const microseconds = fc.oneof(fc.constantFrom(0n, 1n, 2n ** 53n - 1n, 2n ** 53n), uint64s)
const typed = fc.oneof(
  value(3),
  doubles.map((value): Value => ({ type: DOUBLE, value })),
)

it('are passed on as they came, or end the connection', () =>
  fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(typed, microseconds), { minLength: 1, maxLength: 8 }), async (given) => {
      const readers = new Readers()
      const take = eastOf(readers)
      readers.bind('test.a', [{ name: 'producer', type: STRING, value: 'east' }])
      let taken = 0
      for (const [one, time] of given) {
        const isTaken = take(one, time)
        expect(isTaken).toBe(time < 2n ** 53n)
        if (isTaken) taken++
      }
      expect(await readers.read()).toHaveLength(taken)
      take({ type: DOUBLE, value: 7 }, 7n)
      const [good] = await readers.read()
      expect(good?.value.value).toContainEqual({ name: 'value', type: DOUBLE, value: 7 })
    }),
    { numRuns: times({ short: 15, long: 60 }) },
  ))

/** As a GAP has it: below 2^53. */
const lost = fc.oneof(fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER), fc.maxSafeNat())

it('are counted as lost, as far as can be counted', () =>
  fc.assert(
    fc.asyncProperty(fc.array(lost, { minLength: 1, maxLength: 4 }), async (counts) => {
      const readers = new Readers()
      const { hub, quotas, clock } = readers
      const family = new LabelledFamily({
        family: 'upstream.',
        kind: 'upstreams',
        from: 'a test',
        hub,
        quotas,
        clock,
        keptMs: () => 60_000,
      })
      const log = createLogger('silent')
      const report = new UpstreamReport({
        name: 'east',
        kind: 'upstream',
        tenant: 'default',
        family,
        clock,
        log,
        notice() {},
      })
      readers.bind('upstream.*')
      const status = () => ({ name: 'east', state: '', detail: '', counters: { lost: report.lostValues } })
      const entry = { owner: { tenant: 'default' }, status }
      for (const count of counts) report.lost({ count, reason: 1, transaction: 0 }, 'east')
      const lost = lastOf(await readers.read([entry]), 'upstream.lost')
      const sum = counts.reduce((all, count) => all + BigInt(count), 0n)
      const most = BigInt(Number.MAX_SAFE_INTEGER)
      expect(lost).toBe(sum < most ? sum : most)
      expect(BigInt(report.lostValues)).toBe(lost)
    }),
    { numRuns: times({ short: 15, long: 60 }) },
  ))
