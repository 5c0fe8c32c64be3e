import { describe, expect, it } from 'vitest'
import { figuresIn, ratiosOf, spreadsOf } from './ratios.ts'

describe('figuresIn', () => {
  it('takes the last line of JSON of the benchmark, whatever stands around it', () => {
    const output = [
      'cinnabar: 1200000 values/s',
      '{"bench":"durable","valuesPerSecond":1}',
      'valuesPerSecond         1200000',
      '{"bench":"durable","options":"--runs 1","valuesPerSecond":1200000,"cpuPerMillion":"0.570"}',
      '{"bench":"queue","valuesPerSecond":5}',
      '{not JSON',
      '',
    ].join('\n')
    expect(figuresIn('durable', output)).toMatchObject({ valuesPerSecond: 1_200_000, cpuPerMillion: '0.570' })
  })

  it('says what was printed where there is no such line', () => {
    expect(() => figuresIn('durable', 'the server ended\n{"bench":"queue"}')).toThrow(/durable .*\n.*the server ended/)
  })
})

describe('ratiosOf', () => {
  it('is above 1 where this tree does more in a second, or the same with less CPU', () => {
    const ours = { valuesPerSecond: 300, pushedCpuPerMillion: '0.400', 'handler values/s': 20, 'loop CPU s/million': 3 }
    const theirs = {
      valuesPerSecond: 200,
      pushedCpuPerMillion: '0.500',
      'handler values/s': 40,
      'loop CPU s/million': 2,
    }
    expect(ratiosOf(ours, theirs)).toEqual({
      valuesPerSecond: 1.5,
      pushedCpuPerMillion: 1.25,
      'handler values/s': 0.5,
      'loop CPU s/million': 2 / 3,
    })
  })

  it('leaves out what is neither a rate nor a cost, and what one tree does not print', () => {
    const ours = {
      bench: 'queue',
      values: 7,
      peakRssMiB: 90,
      idleBytesPerSecond: 9,
      aPerSecond: 5,
      bPerSecond: 0,
      endsCpuPerMillion: [1, 2],
    }
    const theirs = {
      bench: 'queue',
      values: 7,
      peakRssMiB: 80,
      bPerSecond: 4,
      cPerSecond: 3,
      endsCpuPerMillion: [1, 2],
    }
    expect(ratiosOf(ours, theirs)).toEqual({})
  })
})

describe('spreadsOf', () => {
  it('gives the median, the least and the most of each figure', () => {
    const pairs = [1.02, 0.9, 1.3, 0.98, 1.01].map((rate, at) => ({ rate, cost: at + 1 }))
    expect(spreadsOf(pairs)).toEqual({
      rate: { median: 1.01, least: 0.9, most: 1.3 },
      cost: { median: 3, least: 1, most: 5 },
    })
  })

  it('takes the mean of the two in the middle of an even number of pairs', () => {
    expect(spreadsOf([{ rate: 4 }, { rate: 1 }, { rate: 2 }, { rate: 8 }])).toEqual({
      rate: { median: 3, least: 1, most: 8 },
    })
  })
})
