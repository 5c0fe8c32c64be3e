/** The limits still do what they say. How fast is nobody's business here. */
import { describe, expect, it, vi } from 'vitest'
import type { InPairs, withCommit } from './against.ts'
import { benchBesideLimit, besideIn, besideLimit, limitAgainst } from './limit.ts'
import { shownFigures } from './ratios.ts'

describe('besideIn', () => {
  it('takes --pairs, and leaves the other options to the benchmark', () => {
    const args = ['--values', '10', '--pairs', '2', '--through']
    expect(besideIn('durable', args)).toEqual({ pairs: 2, options: ['--values', '10', '--through'] })
    expect(besideIn('idle', args)).toBeUndefined()
  })

  it('takes one pair by default, and refuses none', () => {
    expect(besideIn('durable', [])).toEqual({ pairs: 1, options: [] })
    expect(() => besideIn('durable', ['--pairs', '0'])).toThrow('--pairs 0: a number of at least 1')
    expect(() => besideIn('durable', ['--pairs'])).toThrow('--pairs true: a number of at least 1')
  })
})

/** The first three have programs of their own as limits, the others differ from one of them in what is measured. */
const WORKLOADS: readonly (readonly [name: string, options: string[], rate: string])[] = [
  ['durable', ['--values', '5000'], 'valuesPerSecond'],
  ['query', ['--queries', '2000', '--alone', '10'], 'measuredPerSecond'],
  ['backlog', ['--values', '20000', '--calm', '100'], 'drainedPerSecond'],
  ['durable', ['--values', '5000', '--write-all'], 'valuesPerSecond'],
  ['fan-out', ['--values', '10000', '--channels', '10'], 'valuesPerSecond'],
  ['client', ['--values', '5000', '--taking', 'handler'], 'handler values/s'],
]

describe('a limit', () => {
  it.each(WORKLOADS)('brings every value of %s %j through, beside the server', async (name, options, rate) => {
    const { limit, ratios } = await besideLimit(name, { pairs: 1, options })
    expect(Number(limit[rate])).toBeGreaterThan(0)
    expect(ratios[rate]?.median).toBeGreaterThan(0)
  })

  it('stands beside the rate, over all pairs', async () => {
    const figures = await benchBesideLimit('fan-out', { pairs: 2, options: ['--values', '1000', '--channels', '5'] })
    const ratio = String.raw`\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)`
    expect(shownFigures(figures).find((line) => line.startsWith('valuesPerSecond'))).toMatch(
      new RegExp(`^valuesPerSecond +\\d+, ${ratio} of the limit$`),
    )
  })

  it('is not there for datagrams on many channels', async () => {
    const options = ['--gmetric', '--values', '100', '--channels', '2']
    expect(await besideLimit('fan-out', { pairs: 1, options })).toMatchObject({ limit: {}, ratios: {} })
  })

  it('is not there for every benchmark', async () => {
    await expect(besideLimit('idle', { pairs: 1, options: [] })).rejects.toThrow(
      'idle has no limit; these have: backlog',
    )
  })
})

describe('limit --against', () => {
  const spread = (median: number) => ({ median, least: 0.9, most: 1.1 })

  function treesThat(inPairs: InPairs): { readonly built: typeof withCommit; readonly commits: string[] } {
    const commits: string[] = []
    const built: typeof withCommit = (commit, measure) => {
      commits.push(commit)
      return measure(inPairs)
    }
    return { built, commits }
  }

  it('runs each workload in pairs on both trees, and prints its medians and spreads', async () => {
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    const runs: string[] = []
    const { built, commits } = treesThat(async (name, options, pairs) => {
      runs.push([name, ...options, pairs].join(' '))
      return { valuesPerSecond: spread(1.01), cpuPerMillion: spread(0.98) }
    })
    const options = ['--only', 'durable,fan-out', '--scale', '0.5']
    const told = await limitAgainst({ commit: 'main', pairs: 7, options }, built)
    const printed = print.mock.calls.join('\n')
    print.mockRestore()
    expect(commits).toEqual(['main'])
    expect(runs).toEqual([
      'durable --values 1500000 7',
      'durable --write-all --values 1000000 7',
      'fan-out --values 4000000 7',
    ])
    expect(printed).toMatch(
      /^fan-out --values 4000000 +1\.010 \(0\.900 to 1\.100\) +0\.980 \(0\.900 to 1\.100\) +\d+\.\d$/m,
    )
    expect(told).toMatchObject({
      against: 'main',
      pairs: 7,
      results: [{ workload: 'durable --values 1500000', ratios: { valuesPerSecond: spread(1.01) } }, {}, {}],
    })
  })

  it('shows a dash for a figure that only one of the trees prints', async () => {
    const print = vi.spyOn(console, 'log').mockImplementation(() => {})
    const { built } = treesThat(async () => ({ cpuPerMillion: spread(1) }))
    await limitAgainst({ commit: 'main', pairs: 1, options: ['--only', 'fan-out'] }, built)
    const printed = print.mock.calls.join('\n')
    print.mockRestore()
    expect(printed).toMatch(/^fan-out --values 8000000 +- +1\.000/m)
  })

  it('refuses what has no limit before it builds', async () => {
    const { built, commits } = treesThat(async () => ({}))
    await expect(limitAgainst({ commit: 'main', pairs: 1, options: ['--only', 'idle'] }, built)).rejects.toThrow(
      'idle has no limit',
    )
    expect(commits).toEqual([])
  })
})
