import { describe, expect, it } from 'vitest'
import { type Phase, TurnScheduler } from '../../../server/channels/turn-scheduler.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('the end of a turn', () => {
  it('has three phases, whatever the order of entering; each task runs once', async () => {
    const turn = new TurnScheduler()
    const ran: Phase[] = []
    const tasks = (['store', 'send', 'respond'] as const).map((phase) => {
      const task = { atTurnEnd: () => ran.push(phase) }
      turn.schedule(phase, task)
      turn.schedule(phase, task)
      return task
    })
    expect(ran).toEqual([])
    await nextTurn()
    expect(ran).toEqual(['respond', 'send', 'store'])
    expect(tasks).toHaveLength(3)
  })

  it('goes on to what was entered for a later phase, and leaves the rest to the next turn', async () => {
    const turn = new TurnScheduler()
    const ran: string[] = []
    const late = { atTurnEnd: () => ran.push('late') }
    const again = { atTurnEnd: () => ran.push('again') }
    turn.schedule('send', {
      atTurnEnd: () => {
        ran.push('send')
        turn.schedule('store', late)
        turn.schedule('send', again)
      },
    })
    turn.run()
    expect(ran).toEqual(['send', 'late'])
    await nextTurn()
    expect(ran).toEqual(['send', 'late', 'again'])
  })
})

describe('a clock that is read once in a turn', () => {
  it('stands still from its first reading in the turn to the end, and nowhere else', () => {
    const turn = new TurnScheduler()
    let now = 0
    const read = turn.once(() => ++now)
    const task = { atTurnEnd: () => {} }
    expect([read(), read()]).toEqual([1, 2])
    turn.schedule('send', task)
    expect([read(), read()]).toEqual([3, 3])
    turn.schedule('store', task)
    expect(read()).toBe(3)
    turn.run()
    expect([read(), read()]).toEqual([4, 5])
  })
})
