import { expect, test } from 'vitest'
import {
  labelsProblem,
  metricProblem,
  statusProblem,
  valueProblem,
} from '../../../../server/kernel/metrics/value-problem.ts'

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

const TEXT = 'text of at most 4096 characters'
const parameter = (name: string) => ({ name, type: 7, description: '' })
const metric = { name: 'a.one', kind: 'continuous', type: 5, unit: '', description: '', parameters: [] }

test.each<[object, string | undefined]>([
  [{}, undefined],
  [{ type: undefined, kind: 'event' }, undefined],
  [{ parameters: [{ name: 'host', type: 7, description: '' }] }, undefined],
  [{ name: 'b.one' }, 'the name of a metric has to begin with "a.", unlike b.one'],
  [{ name: 7 }, 'the name of a metric has to begin with "a.", unlike 7'],
  [{ name: 'a.\n' }, 'a name with a control character'],
  [{ kind: 'often' }, 'a.one: `kind` is "continuous" or "event"'],
  [{ type: 99 }, 'a.one: no basic type has the number 99'],
  [{ unit: undefined }, `a.one: each of \`unit\` and \`description\` is a ${TEXT}`],
  [{ description: 'x'.repeat(4096) }, undefined],
  [{ description: 'x'.repeat(4097) }, `a.one: each of \`unit\` and \`description\` is a ${TEXT}`],
  [{ parameters: undefined }, 'a.one: `parameters` is a list of parameters'],
  [{ details: () => [{ name: 'x', type: 2, value: 1 }] }, undefined],
  [
    { details: () => [{ name: 'x', type: 2, value: -1 }] },
    'a.one: details: field x: UINT32: an integer from 0 to 4294967295 was expected, not the number -1',
  ],
  [{ parameters: [null] }, 'a.one: a parameter has no name'],
  [{ parameters: [parameter('x'.repeat(256))] }, 'a.one: a parameter has a name of more than 255 bytes'],
  [{ parameters: [{ ...parameter('x'), type: 99 }] }, 'a.one: parameter x: no basic type has the number 99'],
  [
    { parameters: [{ ...parameter('x'), description: 'x'.repeat(4097) }] },
    `a.one: parameter x: \`description\` is a ${TEXT}`,
  ],
  [{ parameters: Array.from({ length: 33 }, (_, i) => parameter(`p${i}`)) }, 'a.one: 33 parameters; there may be 32'],
  [{ parameters: [{ ...parameter('mount'), selects: 'part' }] }, undefined],
  [
    { parameters: [{ ...parameter('agent'), selects: 'part' }] },
    'a.one: a parameter that selects a part is cpu, mount, device, interface, not agent',
  ],
  [
    { details: () => [{ name: 'x', type: 7, value: 'x'.repeat(70_000) }] },
    'a.one: details: 70024 bytes; there may be 65536',
  ],
])('a metric, case %#', (changed, problem) => {
  expect(metricProblem({ ...metric, ...changed } as never, 'a.')).toBe(problem)
})

test('no metric at all is a problem, too', () => {
  expect(metricProblem(undefined as never, 'a.')).toMatch(/unlike undefined/)
})

test.each<[unknown, string | undefined]>([
  [{ name: 'a.one', host: 'n1', index: '' }, undefined],
  [undefined, 'there are no labels'],
  [{ host: 7 }, 'label host: a number'],
  [{ source: 'x'.repeat(256) }, 'label source: a name of more than 255 bytes'],
])('labels, case %#', (labels, problem) => {
  expect(labelsProblem(labels as never)).toBe(problem)
})

test.each<[object, string | undefined]>([
  [{}, undefined],
  [{ detail: undefined }, `each of \`name\`, \`state\` and \`detail\` of a status is a ${TEXT}`],
  [{ detail: 'x'.repeat(4097) }, `each of \`name\`, \`state\` and \`detail\` of a status is a ${TEXT}`],
  [{ counters: { ['x'.repeat(256)]: 1 } }, 'a counter has a name of more than 255 bytes'],
  [
    { counters: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`c${i}`, 1])) },
    '101 counters; there may be 100',
  ],
  [{ counters: { bad: Number.NaN } }, 'the counters of a status are whole numbers from 0 on'],
  [{ counters: { bad: -1 } }, 'the counters of a status are whole numbers from 0 on'],
])('a status, case %#', (changed, problem) => {
  const status = { name: 'a', state: 'measuring', detail: '', counters: { good: 1 }, ...changed }
  expect(statusProblem(status as never)).toBe(problem)
})
