/** Random expressions of PromQL whose types are right, over the series of `series.ts`. Each part can be made smaller when one fails. */
import fc from 'fast-check'
import { AGGREGATIONS, ARITHMETIC, COMPARISONS, SET_OPERATORS } from '../../../promql/expression.ts'
import { SIGNATURES } from '../../../promql/signatures.ts'

const SELECTORS = [
  'gauge',
  'requests_total',
  'requests_total{x="1"}',
  'gauge{y!="2"}',
  '{__name__=~"gauge|special"}',
  'special',
  'none',
]
const MODIFIERS = ['', '', '', ' offset 2m', ' offset -90s', ' @ start()', ' @ end() offset 1m']
const RANGES = ['[45s]', '[2m]', '[10m]']
/** Never from a time of any grid on, also inside of another: 2.42 closes ranges on the left. */
const SUBQUERIES = ['[175s250ms:20s]', '[290s250ms:1m]', '[115s250ms:7s] offset 30s']
const GROUPINGS = ['', ' by (x)', ' by (x, y)', ' without (y)', ' without (x, le)']
const SCALARS = ['0', '1', '0.5', '-2', '1e6', 'NaN', 'Inf', 'time()', 'scalar(gauge{x="1",y="1"})', 'pi()']
const MATCHING = [' on (x, y)', ' ignoring (le)', ' on (x) group_left', ' on (x, y) group_right ()']

/** Of Prometheus 3, or written out below, since they take texts. */
const LEFT_OUT = new Set([
  'first_over_time',
  'histogram_quantile',
  'label_join',
  'label_replace',
  'sort_by_label',
  'sort_by_label_desc',
])
const QUANTILES = ['0', '0.5', '0.9', '1', '-1', '2', 'NaN']
/** What takes texts, around an operand. */
const WITH_TEXTS = [
  ['label_replace(', ', "z", "$1-$2", "x", "(.)(.*)")'],
  ['label_replace(', ', "x", "", "y", "1")'],
  ['label_join(', ', "z", "-", "x", "y")'],
] as const

const functions = [...SIGNATURES].filter(([name, { feature }]) => feature === undefined && !LEFT_OUT.has(name))
const selector = fc.tuple(fc.constantFrom(...SELECTORS), fc.constantFrom(...MODIFIERS)).map((parts) => parts.join(''))
const scalar = fc.constantFrom(...SCALARS)

export const expressions = fc.letrec<{ vector: string; matrix: string }>((tie) => ({
  matrix: fc.oneof(
    fc
      .tuple(fc.constantFrom(...SELECTORS), fc.constantFrom(...RANGES), fc.constantFrom(...MODIFIERS))
      .map((parts) => parts.join('')),
    fc.tuple(tie('vector'), fc.constantFrom(...SUBQUERIES)).map(([inside, range]) => `(${inside})${range}`),
  ),
  vector: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    selector,
    fc.constantFrom(...functions).chain(([name, { args, returns }]) => {
      const values = args.map((type) =>
        type === 'vector' ? tie('vector') : type === 'matrix' ? tie('matrix') : scalar,
      )
      return fc.tuple(...values).map((given) => {
        const call = `${name}(${given.join(', ')})`
        return returns === 'scalar' ? `vector(${call})` : call
      })
    }),
    fc
      .tuple(fc.constantFrom(...AGGREGATIONS), fc.constantFrom(...GROUPINGS), tie('vector'))
      .map(([name, by, operand]) => {
        const parameter =
          { topk: '2, ', bottomk: '1, ', quantile: '0.3, ', count_values: '"v", ' }[name as string] ?? ''
        return `${name}${by} (${parameter}${operand})`
      }),
    fc
      .tuple(tie('vector'), fc.constantFrom(...ARITHMETIC), fc.constantFrom(...MATCHING), tie('vector'))
      .map(([left, operator, matching, right]) => `(${left}) ${operator}${matching} (${right})`),
    fc
      .tuple(tie('vector'), fc.constantFrom(...COMPARISONS), fc.constantFrom('', ' bool'), scalar)
      .map(([left, operator, bool, right]) => `(${left}) ${operator}${bool} ${right}`),
    fc
      .tuple(tie('vector'), fc.constantFrom(...SET_OPERATORS), fc.constantFrom(...MATCHING.slice(0, 2)), tie('vector'))
      .map(([left, operator, matching, right]) => `(${left}) ${operator}${matching} (${right})`),
    tie('vector').map((inside) => `-(${inside})`),
    fc
      .tuple(fc.constantFrom(...WITH_TEXTS), tie('vector'))
      .map(([[before, after], operand]) => `${before}${operand}${after}`),
    fc
      .tuple(fc.constantFrom(...QUANTILES), fc.constantFrom('rate', 'increase'), fc.constantFrom(...RANGES))
      .map(([quantile, rate, range]) => `histogram_quantile(${quantile}, ${rate}(latency_bucket${range}))`),
  ),
})).vector
