/** How long keys are kept, what they take, and what becomes of who waits for one; on the wire: section-10-execute.test.ts. */
import { describe, expect, it } from 'vitest'
import { Executions, type IdempotencyKey } from '../../../../server/kernel/controls/executions.ts'
import { ageClock } from '../../../../server/kernel/core/clock.ts'
import type { Change } from '../../../../storage/store.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const DAY_MS = 86_400_000
const USER = 7
const RESULT = new Uint8Array(8)
const LARGE = new Uint8Array(1 << 20)

function keyed(key: string): IdempotencyKey {
  return { key, digest: new Uint8Array(32), proof: '' }
}

function made(): { executions: Executions; clock: FakeClock; changes: Change[] } {
  const clock = new FakeClock()
  const changes: Change[] = []
  const age = ageClock(clock, { age: 0, wall: 0 })
  const executions = new Executions({ rows: [], change: (change) => void changes.push(change), age })
  return { executions, clock, changes }
}

describe('a key', () => {
  it('is kept for a day whatever is done to the wall clock, and no longer', () => {
    const { executions, clock, changes } = made()
    const begun = executions.begin(USER, 'c', keyed('k'))
    clock.jumpWall(400 * DAY_MS)
    executions.sweep()
    executions.end(begun, RESULT)
    clock.jumpWall(-800 * DAY_MS)
    clock.advance(DAY_MS)
    executions.sweep()
    expect(executions.find(USER, 'c', keyed('k'))).toBe(begun)
    expect(changes.map((change) => Object.keys(change)[0])).toEqual(['put', 'put'])
    clock.advance(1)
    expect(executions.find(USER, 'c', keyed('k'))).toBeUndefined()
    clock.advance(60_000)
    executions.sweep()
    expect(changes.at(-1)).toEqual({ remove: 'execution', before: 60_001 })
  })

  it('that is used again after a day takes no more room than before', () => {
    const { executions, clock } = made()
    for (let day = 0; day < 20; day++) {
      executions.needsRoom(USER)
      executions.end(executions.begin(USER, 'c', keyed('daily')), LARGE)
      clock.advance(DAY_MS + 1)
    }
  })

  it('that comes back from the store is refused with other arguments, though what was secret is not known any more', () => {
    const { digest } = keyed('k')
    const row = { user: USER, control: 'c', key: 'k', digest, at: 0, result: RESULT }
    const executions = new Executions({ rows: [row], change: () => {}, age: () => 0 })
    expect(executions.find(USER, 'c', { ...keyed('k'), proof: 'another' })?.result).toBe(RESULT)
    const other = { ...keyed('k'), digest: new Uint8Array(32).fill(1) }
    expect(() => executions.find(USER, 'c', other)).toThrow('was used with other arguments')
    for (const [user, control] of [
      [USER + 1, 'c'],
      [USER, 'd'],
    ] as const) {
      expect(executions.find(user, control, keyed('k'))).toBeUndefined()
    }
  })

  it('whose control was refused after all is free, and who waited for its result gets one', () => {
    const { executions, changes } = made()
    const begun = executions.begin(USER, 'c', keyed('k'))
    const known = executions.find(USER, 'c', keyed('k'))
    const got: Uint8Array[] = []
    known?.waiting.push((result) => got.push(result))
    executions.cancel(begun, RESULT)
    expect(got).toEqual([RESULT])
    // Whoever was promised it and asks only now.
    expect(known?.result).toEqual(RESULT)
    expect(changes.at(-1)).toMatchObject({ put: 'execution', row: { key: 'k', result: new Uint8Array(0) } })
    expect(executions.find(USER, 'c', keyed('k'))).toBeUndefined()
  })
})
