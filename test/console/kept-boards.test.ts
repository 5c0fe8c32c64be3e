/** The boards of the server, as the view shows them. */
import { expect, it } from 'vitest'
import { type ChartSpec, chartsText } from '../../console/board.ts'
import { inOrder, isKeptAs, keptBoardOf, openedBoardOf } from '../../console/kept-boards.ts'

const LOAD: ChartSpec = { lines: [{ metric: 'gmetric.load_one', args: { host: 'web1' } }] }
const record = { board: 7, owner: 'ann', own: true, name: 'Night', shared: false, version: 3, saved: 1 }

it('has its charts only if they were asked for', () => {
  expect(keptBoardOf(record)).toEqual({
    board: 7,
    owner: 'ann',
    isOwn: true,
    name: 'Night',
    isShared: false,
    version: 3,
  })
  expect(openedBoardOf({ ...record, charts: chartsText([LOAD]) }).charts).toEqual([LOAD])
  expect(openedBoardOf(record).charts).toEqual([])
})

it("lists one's own first, then those of others, by name", () => {
  const boards = [
    { ...record, board: 1, name: 'b', own: false },
    { ...record, board: 2, name: 'b' },
    { ...record, board: 3, name: 'a', own: false },
    { ...record, board: 4, name: 'a' },
  ]
  expect(inOrder(boards.map(keptBoardOf)).map(({ board }) => board)).toEqual([4, 2, 3, 1])
})

it('is what is shown only with the same name and charts', () => {
  const kept = openedBoardOf({ ...record, charts: chartsText([LOAD]) })
  expect(isKeptAs(kept, [LOAD], 'Night')).toBe(true)
  expect(isKeptAs(kept, [LOAD], 'Day')).toBe(false)
  expect(isKeptAs(kept, [LOAD, LOAD], 'Night')).toBe(false)
})
