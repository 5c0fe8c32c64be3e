/** When a log has to be founded, and by whom. */
import { describe, expect, test } from 'vitest'
import { comparePlaces, founderOf, mayLackRecords, needsFounding } from '../../../server/cluster/founding.ts'
import type { LogPlace } from '../../../storage/replicated/place.ts'

const at = (log: number, epoch: number, sequence: number): LogPlace => ({
  log,
  epoch,
  sequence,
  hash: new Uint8Array(32),
})
const node = (name: string, place: LogPlace) => ({ node: name, place })

test('a place is further by its log, then by its epoch, then by its sequence', () => {
  const places = [at(2, 1, 1), at(1, 3, 1), at(0, 0, 1), at(1, 2, 9), at(0, 0, 0), at(1, 3, 0)]
  const sorted = places.toSorted(comparePlaces).map(({ log, epoch, sequence }) => [log, epoch, sequence])
  expect(sorted).toEqual([
    [0, 0, 0],
    [0, 0, 1],
    [1, 2, 9],
    [1, 3, 0],
    [1, 3, 1],
    [2, 1, 1],
  ])
})

test.each([
  ['there is no log', { log: 0, last: 0 }, [at(0, 0, 0)], true],
  ['all databases are in it', { log: 1, last: 9 }, [at(1, 1, 9), at(1, 1, 3)], false],
  ['one is ahead of it', { log: 1, last: 9 }, [at(1, 1, 3), at(1, 1, 10)], true],
  ['one is in a later one', { log: 1, last: 9 }, [at(2, 1, 1)], true],
  ['one was ahead of an earlier one', { log: 2, last: 1 }, [at(1, 1, 10)], false],
  ['one is in none', { log: 1, last: 9 }, [at(0, 0, 1)], false],
])('a log is needed or not: %s', (_, end, places, expected) => {
  expect(needsFounding(end, places)).toBe(expected)
})

describe('it is founded', () => {
  const nodes = ['n1', 'n2', 'n3']

  test.each([
    ['by the first of empty ones', [at(0, 0, 0), at(0, 0, 0), at(0, 0, 0)], 'n1'],
    ['by the one with content', [at(0, 0, 0), at(0, 0, 1), at(0, 0, 0)], 'n2'],
    ['by the most advanced', [at(1, 4, 7), at(1, 4, 8), at(1, 3, 9)], 'n2'],
    ['by one in a log rather than one in none', [at(0, 0, 1), at(0, 0, 1), at(1, 1, 1)], 'n3'],
  ])('%s', (_, places, by) => {
    const heard = places.map((place, index) => node(`n${index + 1}`, place))
    expect(founderOf(heard, nodes)).toEqual({ by })
    expect(founderOf(heard.toReversed(), nodes)).toEqual({ by })
  })

  test('by nobody while a node is missing', () => {
    const { wait } = founderOf([node('n2', at(1, 1, 1))], nodes)
    expect(wait).toBe('the log of the cluster has to be founded, and n1 and n3 are not heard')
  })

  test('by nobody if several databases with content are in no log', () => {
    const heard = [node('n1', at(0, 0, 1)), node('n2', at(0, 0, 0)), node('n3', at(0, 0, 1))]
    expect(founderOf(heard, nodes).wait).toMatch(/^n1 and n3 have databases that are in no log: /)
  })

  test.each([
    ['all databases are beyond what is left of it', [at(1, 4, 12), at(1, 4, 12), at(1, 4, 11)], false],
    ['one has no record', [at(1, 4, 12), at(0, 0, 0), at(1, 4, 12)], true],
    ['one has only what is left', [at(1, 4, 12), at(1, 4, 10), at(1, 4, 12)], true],
    ['one is not there', [at(1, 4, 12), at(1, 4, 12)], true],
  ])('with a database that may lack records or not: %s', (_, places, expected) => {
    const heard = places.map((place, index) => node(`n${index + 1}`, place))
    expect(mayLackRecords(at(1, 4, 12), { log: 1, last: 10 }, heard, nodes)).toBe(expected)
  })

  test('never by a node that is not configured', () => {
    const heard = [...nodes.map((name) => node(name, at(1, 1, 1))), node('n9', at(5, 5, 5))]
    expect(founderOf(heard, nodes)).toEqual({ by: 'n1' })
  })
})
