/** Objects of lists come one by one, however the text is cut. */
import { describe, expect, it } from 'vitest'
import { JsonElements } from '../../../../server/edge/query/json-elements.ts'

function read(text: string, length: number, most = 1_000): { elements: unknown[]; rest: unknown } {
  const elements: unknown[] = []
  const reader = new JsonElements(most, (element) => elements.push(element))
  for (let at = 0; at < text.length; at += length) reader.add(text.slice(at, at + length))
  return { elements, rest: reader.rest() }
}

const series = [
  { metric: { a: '{"x":[1,{}]},\\"' }, values: [[1, '2']] },
  { metric: {}, more: [{ deep: [] }] },
]

describe.each([1, 2, 3, 7, 1_000])('in pieces of %i characters', (length) => {
  it.each<[what: string, value: object, rest: object, elements: unknown[]]>([
    [
      'a matrix',
      { status: 'success', data: { resultType: 'matrix', result: series }, warnings: ['a', 'b'] },
      { status: 'success', data: { resultType: 'matrix', result: [] }, warnings: ['a', 'b'] },
      series,
    ],
    ['a list', { data: series, z: [1, { a: 1 }, 2] }, { data: [], z: [1, 2] }, [...series, { a: 1 }]],
    ['a scalar', { data: { result: [1, '{'] } }, { data: { result: [1, '{'] } }, []],
    ['nothing', { data: [] }, { data: [] }, []],
  ])('%s', (_what, value, rest, elements) => {
    expect(read(JSON.stringify(value), length)).toEqual({ elements, rest })
    expect(read(JSON.stringify(value, undefined, 2), length)).toEqual({ elements, rest })
  })

  it('what is no JSON, or cut off, or too long is an error', () => {
    expect(() => read('{"data":[{"a":}]}', length)).toThrow(SyntaxError)
    expect(() => read('{"data":[{"a":1}', length)).toThrow(SyntaxError)
    expect(() => read(JSON.stringify({ data: [{ a: 'x'.repeat(2_000) }] }), length)).toThrow(
      'more than 1000 characters',
    )
  })
})
