/** The runner of Prometheus' cases: that it reads their scripts, and that it finds what is wrong. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../promql/memory-source.ts'
import { HISTOGRAM } from '../../../promql/parse/series-notation.ts'
import { judge } from './judge.ts'
import { type Evaluation, parseScript } from './script.ts'

const source = new MemorySource()
for (const command of parseScript('load 1m\n  x{a="1"} 0+1x5\n  x{a="2"} 5 _ stale 2-1x1 NaN')) {
  if (command.kind !== 'load') continue
  for (const { labels, values } of command.series) {
    const samples = values.map((value, minute) => [minute * 60_000, value] as const)
    source.add(
      labels,
      samples.flatMap(([ms, value]) => (typeof value === 'number' || value === 'stale' ? [[ms, value] as const] : [])),
    )
  }
}

function problemOf(script: string): string | undefined {
  const [evaluation] = parseScript(script)
  if (evaluation?.kind !== 'eval') throw new Error('no evaluation')
  return judge(evaluation, source)
}

describe('scripts', () => {
  it('have loads, clears and evaluations', () => {
    const commands = parseScript(
      '# comment\nload_with_nhcb 30s\n  h{le="}"} {{sum:1 count:2}}x1 _x2 1x1\n\nclear\neval instant at 1m x',
    )
    expect(commands).toMatchObject([
      { kind: 'load', stepMs: 30_000, hasNativeTwins: true },
      { kind: 'clear' },
      { kind: 'eval', line: 6, text: 'x', startMs: 60_000, stepMs: undefined },
    ])
    const [load] = commands
    expect(load?.kind === 'load' && load.series[0]?.values).toEqual([HISTOGRAM, HISTOGRAM, undefined, undefined, 1, 1])
  })

  it('expect failures, remarks, an order and texts', () => {
    const [evaluation] = parseScript(
      'eval range from 0 to 2m step 30s rate(x[1m])\n  expect warn msg: a b\n  expect no_info\n  expect ordered\n  {} 1 2x1',
    ) as Evaluation[]
    expect(evaluation).toMatchObject({
      stepMs: 30_000,
      endMs: 120_000,
      isOrdered: true,
      isWithoutInfo: true,
      text: 'rate(x[1m])',
    })
    expect(evaluation?.expectations[0]?.matches('a b')).toBe(true)
    expect(evaluation?.expectations[0]?.matches('a b c')).toBe(false)
    expect(evaluation?.series[0]?.values).toEqual([1, 2, 2])
  })
})

describe('a result', () => {
  it.each([
    'eval instant at 1m x\n  x{a="1"} 1\n  x{a="2"} 5',
    'eval instant at 1m sum(x)\n  {} 6.000001',
    'eval instant at 1m topk(2, x)\n  expect ordered\n  x{a="2"} 5\n  x{a="1"} 1',
    'eval instant at 2m x{a="2"}',
    'eval range from 0 to 5m step 1m x{a="2"}\n  x{a="2"} 5 5 _ 2 1 NaN',
    'eval instant at 3m x{a="1"}[2m]\n  expect range vector from 2m to 3m step 1m\n  x{a="1"} 2 3',
    'eval instant at 1m 1 + 1\n  2',
    'eval instant at 1m "a"\n  expect string `a`',
    'eval_fail instant at 1m x + on() x',
    'eval instant at 1m topk(NaN, x)\n  expect fail msg: Parameter value is NaN',
    'eval instant at 5m rate(x{a="1"}[5m])\n  expect info\n  expect no_warn\n  {a="1"} 0.0166666666',
  ])('that is right: %s', (script) => {
    expect(problemOf(script)).toBeUndefined()
  })

  it.each([
    'eval instant at 1m x\n  x{a="1"} 1',
    'eval instant at 1m x\n  x{a="1"} 1\n  x{a="2"} 4',
    'eval instant at 1m x\n  x{a="1"} 1\n  x{a="2"} 5\n  x{a="3"} 5',
    'eval instant at 1m topk(2, x)\n  expect ordered\n  x{a="1"} 1\n  x{a="2"} 5',
    'eval range from 0 to 5m step 1m x{a="2"}\n  x{a="2"} 5 5 5 2 1 NaN',
    'eval range from 0 to 5m step 1m x{a="1"}',
    'eval instant at 3m x{a="1"}[2m]\n  expect range vector from 1m to 2m step 1m\n  x{a="1"} 2 3',
    'eval instant at 1m 1 + 1\n  3',
    'eval instant at 1m "a"\n  expect string `b`',
    'eval instant at 1m x + x\n  expect fail',
    'eval instant at 1m x + on() x\n  {} 1',
    'eval instant at 1m topk(NaN, x)\n  expect fail msg: another',
    'eval instant at 5m rate(x{a="1"}[5m])\n  expect warn\n  {a="1"} 0.0166666666',
    'eval instant at 5m rate(x{a="1"}[5m])\n  expect no_info\n  {a="1"} 0.0166666666',
  ])('that is wrong: %s', (script) => {
    expect(problemOf(script)).toEqual(expect.any(String))
  })
})
