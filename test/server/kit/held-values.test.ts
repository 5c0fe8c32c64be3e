import { expect, it } from 'vitest'
import { HeldValues } from '../../../server/kit/held-values.ts'

class FakeQueue {
  held = 0
  holdBack(): { release(): void } {
    this.held++
    return { release: () => void this.held-- }
  }
}

const append = (): void => {}

it('holds back a queue once in each batch, until that batch is stored', () => {
  let touched = 0
  const values = new HeldValues({ touch: () => void touched++ })
  const [one, other] = [new FakeQueue(), new FakeQueue()]
  values.hold(one)
  values.hold(one)
  values.hold(other)
  expect([touched, one.held, other.held]).toEqual([1, 1, 1])
  const { round } = values
  values.submit()
  expect(values.round).not.toBe(round)
  values.hold(one)
  expect([touched, one.held]).toEqual([2, 2])
  values.durable()
  expect([one.held, other.held]).toEqual([1, 0])
  values.submit()
  values.durable()
  expect(one.held).toBe(0)
})

it('holds back the durable channels of a series, and no others', () => {
  const values = new HeldValues({ touch() {} })
  const [durable, other] = [new FakeQueue(), new FakeQueue()]
  const sinks = [
    { append, isDurable: true, queue: durable },
    { append, isDurable: false, queue: other },
    { append, isDurable: true },
  ]
  values.holdSeries({
    subscriptions: sinks.map((sink, at) => ({ framePrefix: new Uint8Array(0), sink, at })),
  })
  expect([durable.held, other.held]).toEqual([1, 0])
})
