import { describe, expect, it } from 'vitest'
import { comparisonIn } from './against.ts'

describe('comparisonIn', () => {
  it('is asked for by --against, and leaves the other options to the benchmark', () => {
    const args = ['--values', '10', '--against', 'e5d482e', '--through', '--pairs=3', '--dir', '/d']
    expect(comparisonIn(args)).toEqual({
      commit: 'e5d482e',
      pairs: 3,
      options: ['--values', '10', '--through', '--dir', '/d'],
    })
    expect(comparisonIn(['--pairs', '3'])).toBeUndefined()
  })

  it('takes five pairs by default', () => {
    expect(comparisonIn(['--against=main'])).toEqual({ commit: 'main', pairs: 5, options: [] })
  })

  it.each([
    [['--against'], 'the name of a commit is missing'],
    [['--against', 'main', '--pairs', '0'], '--pairs 0: a number of at least 1'],
    [['--against', 'main', '--pairs', 'x'], '--pairs x: a number of at least 1'],
  ])('refuses %j', (args, message) => {
    expect(() => comparisonIn(args)).toThrow(message)
  })
})
