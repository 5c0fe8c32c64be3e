import { expect, test } from 'vitest'
import { valueProblem } from '../../../server/metrics/value-problem.ts'

const [INT32, UINT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, OPAQUE, REC, ARRAY, VOID] = [
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
]
const nested = (depth: number): unknown =>
  depth === 0 ? { type: UINT32, value: 1 } : { type: REC, value: [{ name: 'a', ...(nested(depth - 1) as object) }] }

test.each([
  [INT32, -5],
  [UINT32, 2 ** 32 - 1],
  [INT64, -1n],
  [UINT64, 2n ** 64n - 1n],
  [DOUBLE, Number.NaN],
  [BOOLEAN, false],
  [STRING, ''],
  [STRING, new Uint8Array(2)],
  [OPAQUE, new Uint8Array(0)],
  [REC, [{ name: 'a', type: UINT32, value: 1 }]],
  [ARRAY, { element: REC, items: [[{ name: 'a', type: STRING, value: 'x' }]] }],
  [VOID, null],
])('a value of type %i may be %o', (type, value) => {
  expect(valueProblem({ type, value })).toBeUndefined()
})

test.each([
  [UINT64, 5, 'UINT64: a bigint from 0 to 18446744073709551615 was expected, not the number 5'],
  [UINT64, -1n, 'UINT64: a bigint'],
  [UINT32, 5.5, 'UINT32: an integer from 0 to 4294967295 was expected, not the number 5.5'],
  [INT32, 2 ** 31, 'INT32: an integer'],
  [DOUBLE, '5', 'DOUBLE: a number was expected, not a string'],
  [STRING, 5, 'STRING: a string'],
  [BOOLEAN, 1, 'BOOLEAN: a boolean'],
  [OPAQUE, 'x', 'OPAQUE: a Uint8Array'],
  [VOID, undefined, 'VOID: null was expected, not a undefined'],
  [REC, [{ name: 'a', type: UINT64, value: 5 }], 'field a: UINT64: a bigint'],
  [REC, [{ name: '', type: VOID, value: null }], 'field : an empty name'],
  [REC, [null], 'field undefined: no name'],
  [ARRAY, { element: UINT32, items: [1, 'x'] }, 'item 1: UINT32: an integer'],
  [ARRAY, { element: 99, items: [] }, 'no basic type has the number 99'],
  [99, 1, 'no basic type has the number 99'],
])('a value of type %i may not be %o', (type, value, problem) => {
  expect(valueProblem({ type, value })).toContain(problem)
})

test('values nest four deep', () => {
  expect(valueProblem(nested(4))).toBeUndefined()
  expect(valueProblem(nested(5))).toContain('nested deeper than 4')
  expect(valueProblem(undefined)).toBe('there is no value')
})
