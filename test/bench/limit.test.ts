/** The limits still do what they say. How fast is nobody's business here. */
import { describe, expect, it } from 'vitest'
import { besideLimit, limitIn } from './limit.ts'

describe('limitIn', () => {
  it('is asked for by --limit, and leaves the other options to the benchmark', () => {
    const args = ['--values', '10', '--limit', '--pairs', '2', '--through']
    expect(limitIn(args)).toEqual({ pairs: 2, options: ['--values', '10', '--through'] })
    expect(limitIn(['--pairs', '3'])).toBeUndefined()
  })

  it('takes three pairs by default, and refuses none', () => {
    expect(limitIn(['--limit'])).toEqual({ pairs: 3, options: [] })
    expect(() => limitIn(['--limit', '--pairs', '0'])).toThrow('--pairs 0: at least 1')
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
    const { limit, ofLimit } = await besideLimit(name, { pairs: 1, options })
    expect(Number(limit[rate])).toBeGreaterThan(0)
    expect(ofLimit[rate]?.median).toBeGreaterThan(0)
  })

  it('is not there for every benchmark', async () => {
    await expect(besideLimit('idle', { pairs: 1, options: [] })).rejects.toThrow(
      'idle has no limit; these have: backlog',
    )
  })
})
