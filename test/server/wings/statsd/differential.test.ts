/**
 * Random lines, over TCP through flushes to what a consumer gets, beside a model that was written from docs/sources/statsd.md:
 * each metric has the values that its good lines add up to, and none of what is bad has any effect.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { command } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { times } from '../../../support/long.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { Random } from '../../../support/random.ts'
import { decoded } from '../../../support/records.ts'

const FLUSH_MS = 10_000
const LINES = 60
/** A double has more, but each addition may change the last. */
const DIGITS = 11
const BOUNDS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000]

let producer: TestProducer | undefined
afterEach(() => producer?.stop())

/** What the good lines of one metric are in an interval: each a value with how many it stands for. */
type Interval = { readonly value: number | string; readonly weight: number; readonly sign: boolean }[]

/** A line, and what it adds to which metric; undefined if it is to have no effect. */
interface Sent {
  readonly text: string
  readonly metric?: string
  readonly values?: Interval
}

const numbers = ['0', '1', '2.5', '.5', '7.', '1e3', '+4', '320', '99999', '3e-9', '60000.5', '1e15']
const negative = ['-1', '-0.25', '-1e6']
const noNumbers = ['', '0x10', 'NaN', 'inf', '1e999', '-1e309', '1,5', ' 1', '1 ', '--1', '１', '1e']
const rates = ['1', '0.1', '0.3', '0.7', '.5', '1e-6', '0.25']
const badRates = ['0', '-0.5', '2', '1e-7', '1e-320', 'NaN', '', '0x1']
const members = ['a', 'b', '::1', '10.0.0.1:8080', '', 'é', 'null', '-5']
const garbage = [
  '',
  ':',
  '|',
  'x',
  ':1|c',
  'g0:1',
  'g0|g',
  'g0:1|',
  'g0:1|q',
  'c0:1|C',
  '\0',
  'g0:1|g\0',
  '_e{1,1}:a|b',
  '_sc|g0|0',
]

function randomLine(random: Random): Sent {
  if (random.below(8) === 0) return { text: random.pick(garbage) }
  const kind = random.pick(['c', 'g', 'ms', 's'])
  const [name, text] = [`${kind}${random.below(2)}`, random.pick(['', 'x', 'y:z'])]
  const named = random.pick([
    { head: name, tail: text === '' ? '' : `|#t:${text},` },
    { head: name, tail: text === '' ? '|c:abc|T1656581400' : `|##t:old,#t:${text}` },
    { head: text === '' ? name : `${name};t=${text}`.replace(':z', ''), tail: '' },
  ])
  const metric = `statsd.${name} ${named.tail === '' ? text.replace(':z', '') : text.trim()}`
  const count = kind === 's' || random.below(2) === 0 ? 1 : 1 + random.below(4)
  const isBad = random.below(6) === 0
  const pool = kind === 's' ? members : kind === 'c' ? numbers : [...numbers, ...negative]
  const texts = Array.from({ length: count }, () => random.pick(pool))
  let rate = random.below(3) === 0 ? random.pick(rates) : undefined
  if (isBad && (kind === 's' || random.below(2) === 0)) rate = random.pick(badRates)
  else if (isBad) texts[random.below(count)] = random.pick(kind === 'c' ? [...noNumbers, ...negative] : noNumbers)
  const line = `${named.head}:${texts.join(':')}|${kind}${rate === undefined ? '' : `|@${rate}`}${named.tail}`
  if (isBad) return { text: line }
  const weight = rate === undefined ? 1 : 1 / Number(rate)
  const values = texts.map((text) => {
    return { value: kind === 's' ? text : Number(text), weight, sign: /^[+-]/.test(text) }
  })
  return { text: line, metric, values }
}

/** What a metric shows after an interval; `before`: the number that it had. */
function shown(name: string, interval: Interval, before: number): unknown {
  const all = interval.map(({ value }) => Number(value))
  if (name.startsWith('statsd.s')) return new Set(interval.map(({ value }) => value)).size
  if (name.startsWith('statsd.g')) {
    return interval.reduce((sum, { value, sign }) => (sign ? sum : 0) + Number(value), before)
  }
  const total = interval.reduce((sum, { value, weight }) => sum + Number(value) * weight, 0)
  if (name.startsWith('statsd.c')) return before + total
  const upTo = (bound: number) => {
    const below = interval.filter(({ value }) => Number(value) <= bound)
    return Math.round(below.reduce((sum, { weight }) => sum + weight, 0))
  }
  const cumulative = [...BOUNDS, Number.POSITIVE_INFINITY].map(upTo)
  const counts = cumulative.map((count, index) => count - (cumulative[index - 1] ?? 0))
  return { count: cumulative.at(-1), sum: total, min: Math.min(...all), max: Math.max(...all), bounds: BOUNDS, counts }
}

/** The same numbers, but for the order in which they were added up. */
function near(expected: unknown): unknown {
  if (typeof expected === 'number') {
    const digits = DIGITS - Math.ceil(Math.log10(Math.max(1, Math.abs(expected))))
    return expect.closeTo(expected, digits)
  }
  const { sum, ...fields } = expected as { sum: number }
  return expect.objectContaining({ ...fields, sum: near(sum) })
}

it.each(Array.from({ length: times({ short: 4, long: 30 }) }, (_, seed) => seed))('seed %i', async (seed) => {
  const random = new Random(seed)
  producer = await TestProducer.start({
    config: {
      statsd: [
        {
          udp: undefined,
          tcp: { host: '127.0.0.1', port: 0 },
          tenant: 'default',
          allow: [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }],
          flushMs: FLUSH_MS,
          keepMs: 600_000,
          maxMetrics: 100,
        },
      ],
    },
  })
  const { clock, server } = producer
  const seat = await producer.seat()
  const id = await seat.collect('statsd.*')
  await seat.ok((seq) => command.subscribe(seq, id))
  await producer.addUser('root', { role: 'admin' })
  const root = await producer.seat('root')
  const socket = connect(boundTo(server, 'statsd[0].tcp')?.port ?? 0, '127.0.0.1')
  await once(socket, 'connect')
  const numbersOf = new Map<string, number>()
  let good = 0
  for (let flush = 0; flush < 5; flush++) {
    const sent = Array.from({ length: LINES }, () => randomLine(random))
    const intervals = new Map<string, Interval>()
    for (const { metric, values } of sent) {
      if (metric === undefined || values === undefined) continue
      good++
      intervals.set(metric, [...(intervals.get(metric) ?? []), ...values])
    }
    socket.write(sent.map(({ text }) => `${text}\n`).join(''))
    socket.write('mark:1|c\n')
    good++
    await eventually(async () => {
      const sensors = decoded(await root.query('producer.sensors')) as { name: string; counters: object }[]
      const feed = sensors.find(({ name }) => name === 'statsd-feed/default')
      expect(feed?.counters).toMatchObject({ lines: good })
    })
    clock.advance(FLUSH_MS)
    await producer.settle()
    const got = new Map<string, unknown>()
    for (const message of await seat.values(intervals.size + 1)) {
      const { name, t = '', value } = decoded(message)
      got.set(`${name} ${t}`, value)
    }
    const expected = new Map<string, unknown>([['statsd.mark ', near(flush + 1)]])
    for (const [metric, interval] of intervals) {
      const value = shown(metric, interval, numbersOf.get(metric) ?? 0)
      if (typeof value === 'number') numbersOf.set(metric, value)
      expected.set(metric, near(value))
    }
    expect(new Map([...got].sort())).toEqual(new Map([...expected].sort()))
    expect(seat.rest()).toEqual([])
  }
  socket.destroy()
})
