import { describe, expect, it } from 'vitest'
import { Latencies } from './latencies.ts'

describe('Latencies', () => {
  it('measures each value from the tick that it was sent in', () => {
    const latencies = new Latencies()
    latencies.send(98, 0)
    latencies.send(2, 10)
    latencies.receive(90, 1)
    latencies.receive(9, 15)
    latencies.receive(1, 30)
    expect([latencies.sent, latencies.received]).toEqual([100, 100])
    expect(latencies.within(0.5)).toBe(1)
    expect(latencies.within(0.905)).toBe(5)
    expect(latencies.within(0.98)).toBe(15)
    expect(latencies.within(1)).toBe(20)
  })

  it('has nothing to say before a value has come, nor of values that nobody sent', () => {
    const latencies = new Latencies()
    latencies.receive(3, 1)
    expect([latencies.received, latencies.within(0.5)]).toEqual([0, undefined])
  })
})
