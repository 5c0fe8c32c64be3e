/** Numbers of any kind in gmetric packets: each becomes a value of its declared type or is refused, and whoever reads can write it. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { GmetricSensor } from '../../../../server/wings/gmetric/sensor.ts'
import { f64, join, u32 } from '../../../support/bytes.ts'
import { times } from '../../../support/long.ts'
import { doubles, numberTexts } from '../../../support/odd-numbers.ts'
import { lastOf, Readers } from '../../../support/readers.ts'
import { CONFIG, metadata, SENDER, text, xdr } from './fixture.ts'

const uint32s = fc.oneof(fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1), fc.nat(2 ** 32 - 1))
const names = fc.constantFrom('a', 'b')
const types = fc.constantFrom(
  'int8',
  'uint8',
  'int16',
  'uint16',
  'int32',
  'uint32',
  'float',
  'double',
  'timestamp',
  'string',
  'odd',
)

function float(value: number): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatBE(value)
  return bytes
}

/** A value in binary, with the number of its kind: 129 ushort, 130 short, 131 int, 132 uint, 134 float, 135 double. */
const binary = fc.oneof(
  fc.tuple(fc.constantFrom(129, 130, 131, 132), uint32s.map(u32)),
  fc.tuple(fc.constant(134), doubles.map(float)),
  fc.tuple(fc.constant(135), doubles.map(f64)),
)
const packets = fc.oneof(
  fc.tuple(names, types, uint32s, uint32s).map(([name, type, tmax, dmax]) => metadata('', name, type, { tmax, dmax })),
  fc.tuple(names, numberTexts).map(([name, number]) => text('', name, number)),
  fc.tuple(names, binary).map(([name, [id, value]]) => join(xdr(id, '', name, 0, '%f'), value)),
)

it('become values of their types, silence nothing, and are counted where they are refused', () =>
  fc.assert(
    fc.asyncProperty(fc.array(packets, { minLength: 1, maxLength: 20 }), async (given) => {
      const readers = new Readers()
      const sensor = new GmetricSensor({ ...CONFIG }, readers.hub, readers.clock)
      readers.hub.add(sensor)
      readers.hub.add(sensor.liveness)
      readers.bind('gmetric.*')
      for (const packet of given) sensor.packet(packet, SENDER)
      await readers.read()
      sensor.packet(text('', 'good', '7'), SENDER)
      readers.clock.advance(1_000)
      finish(sensor.sweep())
      const sent = await readers.read()
      expect(lastOf(sent, 'gmetric.good')).toBe('7')
      const { packets, values, metadata, unparsable } = sensor.status().counters
      expect(values! + metadata! + unparsable!).toBe(packets)
      for (const { value } of sent) expect(value.type).not.toBe(BasicType.VOID)
      expect([...sensor.document('c')].join('')).not.toContain('undefined')
    }),
    { numRuns: times({ short: 20, long: 100 }) },
  ))
