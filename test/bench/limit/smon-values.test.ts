import { describe, expect, it } from 'vitest'
import { definitions, roundsOf, SERIES } from '../durable-stream.ts'
import { SmonFeed } from '../smon-feed.ts'
import { SmonValues } from './smon-values.ts'

const ROUNDS = 3
const stream = Buffer.concat([definitions(), roundsOf(ROUNDS)])

describe('SmonValues', () => {
  it.each([1, 2, 3, 7, 1_000, stream.length])('counts a stream that comes in pieces of %i bytes', (piece) => {
    const values = new SmonValues({ bytes: definitions().length, values: SERIES })
    let count = 0
    for (let at = 0; at < stream.length; at += piece) count += values.count(stream.subarray(at, at + piece))
    expect(count).toBe(SERIES * (1 + ROUNDS))
  })

  it('counts pairs of one series', () => {
    const values = new SmonValues({ bytes: SmonFeed.definition('load').length, values: 1 })
    expect(values.count(SmonFeed.definition('load'))).toBe(1)
    expect(values.count(Uint8Array.from([0, 1, 0, 1, 0]))).toBe(3)
    expect(values.count(Uint8Array.from([1, 0, 1]))).toBe(1)
  })
})
