/** Whatever is written and whatever is there: a query gives a result, or throws the one error that it may throw. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { PromqlError } from '../../promql/errors.ts'
import { AGGREGATIONS, ARITHMETIC, COMPARISONS, SET_OPERATORS } from '../../promql/expression.ts'
import { finished } from '../../promql/memory-source.ts'
import { PreparedQuery } from '../../promql/query.ts'
import { SIGNATURES } from '../../promql/signatures.ts'
import { isLong } from '../support/long.ts'
import { minutely } from './evaluated.ts'

const RUNS = isLong ? 20_000 : 300

const source = minutely(
  [
    'a{x="1", y="1"} 0 1 2 stale 4 5',
    'a{x="2", y="1"} 5 4 NaN 2 1 0',
    'b{x="1"} Inf 1 -Inf 0 1e308 1e308',
    'c_bucket{le="1"} 1 2 3 4 5 6',
    'c_bucket{le="+Inf"} 2 1 3 8 5 7',
  ].join('\n'),
)

const words = [
  ...SIGNATURES.keys(),
  ...AGGREGATIONS,
  ...ARITHMETIC,
  ...COMPARISONS,
  ...SET_OPERATORS,
  ...'a b c_bucket x y by without on ignoring group_left group_right bool offset @ start() end() ( ) { } [ ] , = =~ !~ : 5m 1 0.5 NaN Inf "x" \'1|2\' `.*` # \n " -'.split(
    ' ',
  ),
]
const tokens = fc.array(fc.constantFrom(...words), { maxLength: 14 }).map((some) => some.join(' '))

const selector = fc.constantFrom(
  'a',
  'b',
  'a{x="1"}',
  '{x=~"1|2"}',
  'c_bucket',
  'none',
  'a offset 2m',
  'b @ 120',
  'a @ end()',
)
const range = fc.constantFrom('a[3m]', 'b[10m] offset -1m', 'c_bucket[2m] @ 60', 'a[4m:30s]', '(a + 1)[3m:] @ start()')
const scalar = fc.constantFrom('1', '0.5', 'NaN', '-Inf', 'time()', 'scalar(b)', '2 ^ 0.5', '3')
const quotedText = fc.constantFrom('"x"', '"y"', '"le"', '"$1"', '"(.*)"', '""')

/** Expressions whose types are right, most of them. */
const { vector } = fc.letrec<{ vector: string }>((tie) => ({
  vector: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    selector,
    fc.constantFrom(...SIGNATURES.entries()).chain(([name, { args, returns }]) => {
      const values = args.map((type) =>
        type === 'vector' ? tie('vector') : type === 'matrix' ? range : type === 'scalar' ? scalar : quotedText,
      )
      return fc.tuple(...values).map((given) => {
        const call = `${name}(${given.join(', ')})`
        return returns === 'scalar' ? `vector(${call})` : call
      })
    }),
    fc
      .tuple(fc.constantFrom(...AGGREGATIONS), fc.constantFrom('', ' by (x)', ' without (y)'), scalar, tie('vector'))
      .map(([name, by, parameter, operand]) => {
        const takesOne = name === 'topk' || name === 'bottomk' || name === 'quantile'
        const first = name === 'count_values' ? '"v", ' : takesOne ? `${parameter}, ` : ''
        return `${name}${by} (${first}${operand})`
      }),
    fc
      .tuple(
        tie('vector'),
        fc.constantFrom(...ARITHMETIC, ...COMPARISONS, ...SET_OPERATORS),
        fc.constantFrom('', ' on(x)', ' ignoring(y)', ' on() group_left', ' bool', ' on(x) group_right(y)'),
        fc.oneof(tie('vector'), scalar),
      )
      .map(([left, operator, matching, right]) => `(${left}) ${operator}${matching} (${right})`),
    tie('vector').map((inside) => `-(${inside})`),
  ),
}))

function check(text: string): 'a result' | 'an error' {
  try {
    const query = new PreparedQuery(text)
    expect(new PreparedQuery(query.printed).printed).toBe(query.printed)
    finished(query.instant(source, 240_000))
    finished(query.range(source, 0, 360_000, 45_000))
    return 'a result'
  } catch (error) {
    if (error instanceof PromqlError) return 'an error'
    throw new Error(`${text}: ${error instanceof Error ? error.stack : error}`)
  }
}

it('texts of any words', () => {
  fc.assert(
    fc.property(tokens, (text) => check(text) !== undefined),
    { numRuns: RUNS },
  )
})

it('texts of any characters', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => check(text) !== undefined),
    { numRuns: RUNS },
  )
})

it('expressions of the right types, of which many have a result', () => {
  let results = 0
  fc.assert(
    fc.property(vector, (text) => {
      if (check(text) === 'a result') results++
    }),
    { numRuns: RUNS },
  )
  expect(results).toBeGreaterThan(RUNS / 10)
})
