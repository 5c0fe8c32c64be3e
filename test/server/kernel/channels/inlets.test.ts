/** Inlets stay open during turns and steps, of which one may be within another. */
import { expect, it } from 'vitest'
import { Inlets } from '../../../../server/kernel/channels/inlets.ts'

class Inlet {
  closed = 0

  close(): void {
    this.closed++
  }
}

it('an inlet stays open until the end of the outermost turn', () => {
  const inlets = new Inlets()
  const [first, second] = [new Inlet(), new Inlet()]
  inlets.begin()
  expect(inlets.keep(first)).toBe(true)
  inlets.begin()
  expect(inlets.keep(second)).toBe(true)
  inlets.end()
  expect([first.closed, second.closed]).toEqual([0, 0])
  inlets.end()
  expect([first.closed, second.closed]).toEqual([1, 1])
})

it('outside of turns none stays open', () => {
  const inlets = new Inlets()
  expect(inlets.keep(new Inlet())).toBe(false)
  inlets.begin()
  inlets.end()
  expect(inlets.keep(new Inlet())).toBe(false)
})
