/** Numbers and times of any kind in the samplings of an agent: each is sent as it came, at a time that can be. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MonoSensor } from '../../../../server/wings/mono/sensor.ts'
import { times } from '../../../support/long.ts'
import { doubles, int64s } from '../../../support/odd-numbers.ts'
import { Readers } from '../../../support/readers.ts'
import { CONFIG, hello, le32, le64, samplingAt, TICKS } from './fixture.ts'

const [INT, LONG, WORD, DOUBLE] = [0, 1, 2, 3]
const AGENT = '192.0.2.7'

function le(value: number): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return bytes
}

/** A sample with the number that it has to become. */
const sample = fc.oneof(
  fc.integer().map((value) => [INT, le32(value), value] as const),
  int64s.map((value) => [LONG, le64(value), value] as const),
  int64s.map((value) => [WORD, le64(value), value] as const),
  doubles.map((value) => [DOUBLE, le(value), value] as const),
)
const ticks = fc.oneof(fc.constantFrom(TICKS, 0n, 1n, 621_355_968_000_000_000n, 2n ** 62n), int64s)
const samplings = fc.array(fc.tuple(ticks, fc.uniqueArray(sample, { selector: ([type]) => type })), { maxLength: 8 })

it('are sent as they came', () =>
  fc.assert(
    fc.asyncProperty(samplings, async (given) => {
      const readers = new Readers()
      const sensor = new MonoSensor(CONFIG, readers.hub, readers.clock)
      readers.hub.add(sensor)
      readers.bind('mono.*')
      let isClosed = false
      const close = (): void => {
        isClosed = true
      }
      const feed = sensor.open(AGENT, { dialect: 'gist', agent: undefined }, { write() {}, close })
      feed?.push(hello(...[INT, LONG, WORD, DOUBLE].map((type) => ({ name: `n${type}`, type, index: type }))))
      const numbers: unknown[] = []
      for (const [at, samples] of given) {
        feed?.push(samplingAt(at, ...samples.map(([type, bytes]) => [type, bytes] as const)))
        for (const [type, , number] of samples) numbers.push([`mono.gc.n${type}`, number])
      }
      const sent = await readers.read()
      expect(sent.map(({ name, value }) => [name, value.value])).toEqual(numbers)
      expect(isClosed).toBe(false)
      feed?.end()
      await readers.read()
    }),
    { numRuns: times({ short: 15, long: 60 }) },
  ))
