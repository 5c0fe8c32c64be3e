/** A feed alone: a metric that cannot be flushed, or numbers beyond what a value can be, cost no other metric its value. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Value, writeTyped } from '../../../../protocol/monitor/value.ts'
import { type Quota, Quotas } from '../../../../server/kernel/accounts/quotas.ts'
import type { Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { Series } from '../../../../server/kernel/metrics/metric.ts'
import { LabelledFamily } from '../../../../server/kit/labelled-sensor.ts'
import { StatsdFeed } from '../../../../server/wings/statsd/feed.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const FLUSH_MS = 10_000
const NO_LIMIT = {
  connections: 0,
  channels: 0,
  queuedBytes: 0,
  instances: 0,
  valuesPerSecond: 0,
  controlsPerMinute: 0,
  auditBytesPerDay: 0,
  dialsPerMinute: 0,
  series: 0,
  historyBytes: 0,
  historySeries: 0,
  rules: 0,
  notifiers: 0,
  ruleSecondsPerHour: 0,
} satisfies Quota

/** A feed of its own, its clock, what it has emitted, and its faults. `isFaulty`: the names of series that throw. */
function feedOf(isFaulty: (name: string) => boolean = () => false) {
  const clock = new FakeClock()
  const emitted: { readonly name: string; readonly value: Value }[] = []
  const writer = new XdrWriter()
  const hub = {
    add() {},
    born: () => undefined,
    died() {},
    emit({ name }: Series, value: Value) {
      if (isFaulty(name)) throw new Error('not this one')
      writeTyped(writer.clear(), value)
      emitted.push({ name, value })
    },
    emitEncoded() {
      throw new Error('statsd sends values')
    },
    emitNumber() {
      throw new Error('statsd sends values')
    },
  }
  const quotas = new Quotas(() => NO_LIMIT, clock)
  const keptMs = () => 60_000
  const family = new LabelledFamily({ family: 'statsd.', kind: 'statsd', from: 'a test', hub, quotas, clock, keptMs })
  const faults: unknown[] = []
  const feed = new StatsdFeed({
    tenant: 'default',
    allow: [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }],
    flushMs: FLUSH_MS,
    keepMs: 60_000,
    maxMetrics: 100,
    sensor: family.of('default'),
    node: undefined,
    clock,
    run: (steps: Steps<void>) => void [...steps],
    failed: (error) => faults.push(error),
  })
  const send = (text: string): void => void [...(feed.datagram(Buffer.from(text), '127.0.0.1') ?? [])]
  const flush = (): void => {
    clock.advance(FLUSH_MS)
    feed.sweep()
  }
  return { feed, emitted, faults, send, flush }
}

it('reports the fault of a metric, and flushes those after it', () => {
  const { emitted, faults, send, flush } = feedOf((name) => name === 'statsd.evil')
  for (let round = 1; round <= 2; round++) {
    send(`before:${round}|g\nevil:1|g\nafter:${round}|g`)
    flush()
  }
  const names = emitted.map(({ name }) => name)
  expect(names).toEqual(['statsd.before', 'statsd.after', 'statsd.before', 'statsd.after'])
  expect(faults).toEqual([new Error('not this one'), new Error('not this one')])
})

const numbers = fc.oneof(
  fc.constantFrom('1e999', '-1e999', '1e308', '-1e308', '1e-320', '-0', '+5', '-7', '18446744073709551616'),
  fc.double({ noNaN: true }).map(String),
)
const rates = fc.constantFrom('', '|@1', '|@0.5', '|@0.7', '|@1e-6', '|@1e-7', '|@1e-320', '|@0')
/** Few names, so that the same metric comes again and again in one interval. */
const lines = fc
  .tuple(
    fc.constantFrom('a', 'b', 'counter'),
    fc.array(numbers, { minLength: 1, maxLength: 3 }),
    fc.constantFrom('c', 'g', 'ms', 's'),
    rates,
  )
  .map(([name, values, type, rate]) => `${name}:${values.join(':')}|${name === 'counter' ? 'c' : type}${rate}`)

it('makes values of whatever numbers come, silences nothing, and counts what it refuses', () => {
  fc.assert(
    fc.property(fc.array(fc.array(lines, { maxLength: 20 }), { minLength: 1, maxLength: 3 }), (rounds) => {
      const { feed, emitted, faults, send, flush } = feedOf()
      for (const [round, sent] of rounds.entries()) {
        send([...sent, `good:${round}|g`].join('\n'))
        flush()
      }
      expect(faults).toEqual([])
      const good = emitted.filter(({ name }) => name === 'statsd.good').map(({ value }) => value.value)
      expect(good).toEqual(rounds.map((_, round) => round))
      const sums = new Map<string, number>()
      for (const { name, value } of emitted) {
        if (name === 'statsd.counter' && value.type === BasicType.DOUBLE) {
          expect(value.value).toBeGreaterThanOrEqual(sums.get(name) ?? 0)
          sums.set(name, value.value)
        }
        const parts = value.type === BasicType.REC ? value.value : [value]
        for (const part of parts) {
          if (part.type === BasicType.DOUBLE) expect(part.value).toSatisfy(Number.isFinite)
          if (part.type === BasicType.UINT64) expect(part.value < 2n ** 64n && part.value >= 0n).toBe(true)
        }
      }
      const { lines = 0, badLines = 0 } = feed.status().counters
      expect(lines + badLines).toBe(rounds.flat().length + rounds.length)
    }),
  )
})

it('keeps of a datagram only what it needs: names, tags and members are copies', () => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const { send } = feedOf()
  const rest = `\n${'x'.repeat(99)}`.repeat(600)
  const heldBy = (count: number, lineOf: (index: number) => string): number => {
    collect()
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < count; index++) send(lineOf(index) + rest)
    collect()
    return process.memoryUsage().heapUsed - before
  }
  // With their datagrams, of 60 kB each, they would take 5.4 and 60 MB.
  expect(heldBy(90, (index) => `the.name.of.a.metric.${index}:1|c|#environment-name:production-${index}`)).toBeLessThan(
    3e6,
  )
  expect(heldBy(1_000, (index) => `set:a.member.of.a.set.${index}|s`)).toBeLessThan(3e6)
})

it('sums up the same of lines that are known by their bytes, and of those that are read', () => {
  const sent = fc.array(fc.array(lines, { minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(sent, (rounds) => {
      const [all, alone] = [feedOf(), feedOf()]
      for (const round of rounds) {
        // A tag that is empty is none, and makes a line that was not seen.
        all.send(round.join('\n'))
        for (const [at, line] of round.entries()) alone.send(line.replace(/$/, `|#${','.repeat(at + 1)}`))
        all.flush()
        alone.flush()
      }
      expect(all.emitted).toEqual(alone.emitted)
      expect(all.feed.status().counters).toMatchObject({
        lines: alone.feed.status().counters['lines'],
        badLines: alone.feed.status().counters['badLines'],
      })
    }),
  )
})

it('a metric that was forgotten begins anew, though its lines are known', () => {
  const { emitted, send, flush } = feedOf()
  send('a:5|c')
  send('a:6|c')
  for (let flushed = 0; flushed < 8; flushed++) flush()
  send('a:7|c')
  flush()
  expect(emitted.map(({ value }) => value.value)).toEqual([11, 7])
})
