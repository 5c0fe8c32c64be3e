/** Formats that a network may send. What is expected is what C's printf writes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { printfNumber } from '../../../protocol/gmetric/format.ts'
import type { ValueType } from '../../../protocol/gmetric/packet.ts'

test.each<[string, ValueType, number, string]>([
  ['%hu', 'uint16', 2, '2'],
  ['%hd', 'int16', -3, '-3'],
  ['%d', 'int32', -70_000, '-70000'],
  ['%u', 'uint32', 4_294_967_295, '4294967295'],
  ['%5d', 'int32', -7, '   -7'],
  ['%-5d', 'int32', 7, '7    '],
  ['%05d', 'int32', -7, '-0007'],
  ['%.3d', 'int32', 7, '007'],
  ['%+d', 'int32', 7, '+7'],
  ['%.2f', 'float', Math.fround(1.63), '1.63'],
  ['%.3f', 'double', 270.5531, '270.553'],
  ['%f', 'double', 0.5, '0.500000'],
  ['%.0f', 'double', 2.7, '3'],
  ['%08.3f', 'double', -1.5, '-001.500'],
  ['%.2e', 'double', 12_345, '1.23e+04'],
  ['%E', 'double', 0.5, '5.000000E-01'],
  ['%g', 'double', 100_000, '100000'],
  ['%g', 'double', 1_000_000, '1e+06'],
  ['%g', 'double', 1_500_000, '1.5e+06'],
  ['%g', 'double', 0.0001, '0.0001'],
  ['%g', 'double', 0.000_01, '1e-05'],
  ['%.3g', 'double', 2.5, '2.5'],
  ['%lf', 'double', 1, '1.000000'],
  // Halfway it is the even one.
  ['%.0f', 'double', 0.5, '0'],
  ['%.0f', 'double', 1.5, '2'],
  ['%.0f', 'double', 12.5, '12'],
  ['%.2f', 'double', -0.125, '-0.12'],
  ['%.2f', 'double', 0.375, '0.38'],
  ['%.2f', 'double', 1.005, '1.00'],
  ['%.1e', 'double', 0.125, '1.2e-01'],
  ['%.0e', 'double', 25, '2e+01'],
  ['%.0e', 'double', 35, '4e+01'],
  ['%.3g', 'double', 204.5, '204'],
  ['%.1g', 'double', 9.5, '1e+01'],
  // 99 digits after a point that has zeros after it.
  ['%.99g', 'double', 0.0001, '0.000100000000000000004792173602385929598312941379845142364501953125'],
  ['%.1f', 'double', Number.NaN, 'nan'],
  ['%.1f', 'double', Number.NEGATIVE_INFINITY, '-inf'],
])('%s of %s %d', (format, type, value, text) => {
  expect(printfNumber(format, type, value)).toBe(text)
})

test.each(['', '%s', '%n', '%*d', '%.*f', '%x', 'x%d', '%dx', '%d%d', '%100d', '%.100f', '%p', '%', '%1$d', '%%'])(
  'the format %s is passed over',
  (format) => {
    expect(printfNumber(format, 'int32', -42)).toBe('-42')
    expect(printfNumber(format, 'double', 0.1)).toBe('0.1')
  },
)

test('a format for another kind of number is passed over', () => {
  expect(printfNumber('%d', 'double', 1.5)).toBe('1.5')
  expect(printfNumber('%.2f', 'int32', 7)).toBe('7')
  expect(printfNumber('%u', 'int32', -1)).toBe('-1')
  expect(printfNumber('%.2f', 'double', 1e300)).toBe('1e+300')
})

test('a float without a format shows as many digits as it has', () => {
  expect(printfNumber('', 'float', Math.fround(1.63))).toBe('1.63')
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(Math.fround(Number(printfNumber('', 'float', value)))).toBe(Object.is(value, -0) ? 0 : value)
    }),
  )
})

test('no format makes it throw, or makes more than a hundred and some characters of a number', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'%-+ 0#123456789.hljztLdiufFeEgGxXsn*$') })
  fc.assert(
    fc.property(
      fc.oneof(
        letters,
        letters.map((text) => `%${text}f`),
      ),
      fc.double(),
      (format, value) => {
        expect(printfNumber(format, 'double', value).length).toBeLessThan(150)
      },
    ),
  )
})
