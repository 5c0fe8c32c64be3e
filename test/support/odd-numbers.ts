/** Numbers that sources meet: those that computing gets wrong, at the bounds of every type and beyond them, and any others. */
import fc from 'fast-check'

const ODD_DOUBLES = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  0,
  -0,
  1,
  -1,
  0.5,
  Number.MIN_VALUE,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  Number.MAX_SAFE_INTEGER,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  2 ** 63,
  2 ** 64,
  -(2 ** 63),
]
const ODD_INTEGERS = [0n, 1n, -1n, 127n, 128n, 255n, 256n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n]
const MORE_INTEGERS = [-(2n ** 31n), -(2n ** 63n), 2n ** 64n, 10n ** 20n, -(10n ** 20n)]

export const doubles = fc.oneof(fc.constantFrom(...ODD_DOUBLES), fc.double())
/** Integers of any size, most of which fit 64 bits. */
export const integers = fc.oneof(fc.constantFrom(...ODD_INTEGERS, ...MORE_INTEGERS), fc.bigInt(-(2n ** 66n), 2n ** 66n))
/** What fits 64 bits without a sign. */
export const uint64s = fc.oneof(
  fc.constantFrom(...ODD_INTEGERS.filter((one) => one >= 0n)),
  fc.bigInt(0n, 2n ** 64n - 1n),
)
/** What fits 64 bits with a sign. */
export const int64s = integers.map((integer) => BigInt.asIntN(64, integer))
/** Microseconds since 1970, as the wire has them. */
export const times = fc.oneof(fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER), fc.maxSafeNat())
/** As text, with forms of which one reader or another makes a number. */
export const numberTexts = fc.oneof(
  fc.constantFrom(
    '1e999',
    '-1e999',
    '1e-320',
    '-0',
    '+5',
    '.5',
    '5.',
    'inf',
    '-Infinity',
    'nan',
    '0x10',
    '',
    ' 7',
    '1_0',
  ),
  doubles.map(String),
  integers.map(String),
)
