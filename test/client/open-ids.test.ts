import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OpenIds } from '../../client/open-ids.ts'

/** The same without regard to the time that it takes. */
class PlainIds {
  #ids: number[] = []

  add(id: number): void {
    this.#ids.push(id)
  }

  take(id: number): 'first' | 'later' | undefined {
    const index = this.#ids.indexOf(id)
    if (index < 0) return undefined
    this.#ids.splice(index, 1)
    return index === 0 ? 'first' : 'later'
  }

  takeThrough(last: number): void {
    this.#ids = this.#ids.filter((id) => id > last)
  }
}

test('are taken in any order, and known as long as they are not taken', () => {
  const step = fc.tuple(fc.constantFrom('add', 'add', 'take', 'take', 'takeThrough'), fc.nat({ max: 40 }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120, size: 'max' }), (steps) => {
      const [ids, plain] = [new OpenIds(), new PlainIds()]
      let last = 0
      for (const [name, number] of steps) {
        if (name === 'add') {
          last += 1 + (number % 3)
          ids.add(last)
          plain.add(last)
        } else if (name === 'take') {
          const id = Math.max(0, last - number)
          expect(ids.take(id)).toBe(plain.take(id))
        } else {
          const id = Math.max(0, last - number)
          ids.takeThrough(id)
          plain.takeThrough(id)
        }
      }
      for (let id = 0; id <= last; id++) expect(ids.take(id)).toBe(plain.take(id))
    }),
    { numRuns: 1000 },
  )
})

test('may be a hundred thousand, taken from either end', () => {
  const count = 100_000
  const ids = new OpenIds()
  for (let id = 1; id <= count; id++) ids.add(id)
  const taken = new Map<unknown, number>()
  const take = (id: number): void => {
    const place = ids.take(id)
    taken.set(place, 1 + (taken.get(place) ?? 0))
  }
  for (let id = count; id > count / 2; id--) take(id)
  for (let id = 1; id <= count / 2; id++) take(id)
  expect([...taken]).toEqual([
    ['later', count / 2],
    ['first', count / 2],
  ])
  expect(ids.take(count / 2)).toBeUndefined()
  ids.add(count + 1)
  expect(ids.take(count + 1)).toBe('first')
})
