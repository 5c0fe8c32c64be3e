/** Numbers of any kind in streams of smon: each is sent as it came, and whoever reads can write it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SmonEncoder } from '../../../../protocol/smon/encode.ts'
import { SmonSensor } from '../../../../server/wings/smon/sensor.ts'
import { times } from '../../../support/long.ts'
import { numberTexts, uint64s } from '../../../support/odd-numbers.ts'
import { Readers } from '../../../support/readers.ts'
import { CONFIG } from './fixture.ts'

const NAMES = ['aaaa', 'bbbb', 'cccc']
/** Which token gets which number; every third token is text. */
const steps = fc.array(fc.tuple(fc.nat(2), uint64s, numberTexts), { minLength: 1, maxLength: 30 })

it('are sent as they came, in the order in which they came', () =>
  fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const readers = new Readers()
      const { hub, clock } = readers
      const sensor = new SmonSensor({ ...CONFIG }, hub, clock, { run: (sensor, steps) => hub.run(sensor, steps) })
      hub.add(sensor)
      readers.bind('smon.*')
      const encoder = new SmonEncoder()
      const numbers: unknown[] = []
      const tokens = NAMES.map((name, at) => encoder.define(Buffer.from(name), at === 2 ? Buffer.from('x') : 0n))
      for (const [at, number, text] of given) {
        encoder.value(tokens[at] as number, at === 2 ? Buffer.from(text) : number)
        numbers.push([`smon.${NAMES[at]}`, at === 2 ? text : number])
      }
      const feed = sensor.open('192.0.2.7', 1)
      const bytes = encoder.take()
      for (let taken = 0; taken < bytes.length; ) taken += feed?.push(bytes.subarray(taken)) ?? bytes.length
      const sent = await readers.read()
      expect(sent.slice(NAMES.length).map(({ name, value }) => [name, value.value])).toEqual(numbers)
      feed?.end()
      await readers.read()
    }),
    { numRuns: times({ short: 15, long: 60 }) },
  ))
