/** The limits still do what they say. How fast is nobody's business here. */
import { describe, expect, it } from 'vitest'
import { benchBesideLimit, besideIn, besideLimit } from './limit.ts'
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

describe('a limit', () => {
  it.each([
    ['durable', ['--values', '5000'], 'valuesPerSecond'],
    ['durable', ['--values', '5000', '--write-all'], 'valuesPerSecond'],
    ['fan-out', ['--values', '10000', '--channels', '10'], 'valuesPerSecond'],
    ['query', ['--queries', '2000', '--alone', '10'], 'measuredPerSecond'],
    ['backlog', ['--values', '20000'], 'drainedPerSecond'],
    ['client', ['--values', '5000', '--taking', 'handler'], 'handler values/s'],
  ])('brings every value of %s %j through, beside the server', async (name, options, rate) => {
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
