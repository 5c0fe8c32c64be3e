/** Expressions as Prometheus' own translate_ast.go has them, by the forms of its user interface. */
import { describe, expect, it } from 'vitest'
import { PreparedQuery } from '../../../../../promql/query.ts'
import { syntaxTree } from '../../../../../server/edge/http/query/syntax-tree.ts'

const tree = (text: string): unknown => JSON.parse(JSON.stringify(syntaxTree(new PreparedQuery(text).expression)))

const place = { offset: 0, timestamp: null, startOrEnd: null }
const plain = { anchored: false, smoothed: false }
const selector = (name: string, more: object = {}) => ({
  type: 'vectorSelector',
  name,
  matchers: [{ name: '__name__', value: name, type: '=' }],
  ...place,
  ...plain,
  ...more,
})
const call = (name: string, argTypes: string[], variadic: number, args: unknown[], returnType = 'vector') => ({
  type: 'call',
  func: { name, argTypes, variadic, returnType },
  args,
})
const number = (val: string) => ({ type: 'numberLiteral', val })
const matching = { card: 'one-to-one', labels: [], on: false, include: [], fillValues: { lhs: null, rhs: null } }

describe('the tree of an expression', () => {
  it.each<[text: string, expected: object]>([
    ['1e21', number('1000000000000000000000')],
    ['-Inf', number('-Inf')],
    ['5m', number('300')],
    ['"a\\n"', { type: 'stringLiteral', val: 'a\n' }],
    ['(up)', { type: 'parenExpr', expr: selector('up') }],
    ['-up', { type: 'unaryExpr', op: '-', expr: selector('up') }],
    [
      'up{job!~"a.*"} offset -1m',
      selector('up', {
        matchers: [
          { name: 'job', value: 'a.*', type: '!~' },
          { name: '__name__', value: 'up', type: '=' },
        ],
        offset: -60_000,
      }),
    ],
    ['{"a b"}', { ...selector('a b'), name: '' }],
    ['up @ 1.5', selector('up', { timestamp: 1_500 })],
    ['up @ end()', selector('up', { startOrEnd: 'end' })],
    ['rate(up[5m])', call('rate', ['matrix'], 0, [{ ...selector('up'), type: 'matrixSelector', range: 300_000 }])],
    ['time()', call('time', [], 0, [], 'scalar')],
    [
      'label_join(up, "a", "-")',
      call('label_join', ['vector', 'string', 'string', 'string'], -1, [
        selector('up'),
        { type: 'stringLiteral', val: 'a' },
        { type: 'stringLiteral', val: '-' },
      ]),
    ],
    [
      'up[1h:] @ start()',
      { type: 'subquery', expr: selector('up'), range: 3_600_000, step: 0, ...place, startOrEnd: 'start' },
    ],
    [
      'up[1h:1m] offset 5m',
      { type: 'subquery', expr: selector('up'), range: 3_600_000, step: 60_000, ...place, offset: 300_000 },
    ],
    [
      'topk without(a) (3, up)',
      { type: 'aggregation', op: 'topk', expr: selector('up'), param: number('3'), grouping: ['a'], without: true },
    ],
    ['sum(up)', { type: 'aggregation', op: 'sum', expr: selector('up'), param: null, grouping: [], without: false }],
    ['up + a', { type: 'binaryExpr', op: '+', lhs: selector('up'), rhs: selector('a'), matching, bool: false }],
    ['up > bool 1', { type: 'binaryExpr', op: '>', lhs: selector('up'), rhs: number('1'), matching: null, bool: true }],
    [
      'up / on(a) group_left(b) c',
      {
        type: 'binaryExpr',
        op: '/',
        lhs: selector('up'),
        rhs: selector('c'),
        matching: { ...matching, card: 'many-to-one', labels: ['a'], on: true, include: ['b'] },
        bool: false,
      },
    ],
    [
      'up unless a',
      {
        type: 'binaryExpr',
        op: 'unless',
        lhs: selector('up'),
        rhs: selector('a'),
        matching: { ...matching, card: 'many-to-many' },
        bool: false,
      },
    ],
  ])('%s', (text, expected) => {
    expect(tree(text)).toEqual(expected)
  })
})
