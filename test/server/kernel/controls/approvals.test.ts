/** When what waits can be decided. */
import { expect, it } from 'vitest'
import { Approvals, type WaitingExecute } from '../../../../server/kernel/controls/approvals.ts'

const ASKER = { userId: 1, tenant: 'default', name: 'op', role: 'operator' }
const LEAD = { userId: 2, tenant: 'default', name: 'lead', role: 'lead' }

it('nothing is decided after its time, though no sweep has ended it yet', () => {
  let age = 1_000
  const approvals = new Approvals({ change() {}, clock: { microseconds: () => 0 }, age: () => age })
  const row = { id: 'a', user: 1, role: 'lead', age, timeout: 60_000 }
  const waiting = { identity: ASKER, args: [], row } as unknown as WaitingExecute
  approvals.add(waiting)
  age += 59_999
  expect(approvals.approvable('a', { identity: LEAD })).toBe(waiting)
  expect(approvals.overdue()).toEqual([])
  age += 1
  expect(() => approvals.approvable('a', { identity: LEAD })).toThrow('it may have ended')
  expect(() => approvals.refusable('a', ASKER)).toThrow('it may have ended')
  expect(approvals.overdue()).toEqual([waiting])
})
