import { describe, expect, it } from 'vitest'
import { type Phase, TurnScheduler } from '../../../server/channels/turn-scheduler.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('the end of a turn', () => {
  it('has three phases, whatever the order of entering; each task runs once', async () => {
    const turn = new TurnScheduler(new FakeClock())
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
    const turn = new TurnScheduler(new FakeClock())
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

describe('a task that throws', () => {
  it('costs its owner: the other tasks of the turn run, and the next turn does', async () => {
    const turn = new TurnScheduler(new FakeClock())
    const ran: unknown[] = []
    const bad = {
      atTurnEnd: () => {
        throw new Error('broken')
      },
      failed: (error: unknown) => ran.push((error as Error).message),
    }
    turn.schedule('send', bad)
    turn.schedule('send', { atTurnEnd: () => ran.push('send') })
    turn.schedule('store', { atTurnEnd: () => ran.push('store') })
    await nextTurn()
    expect(ran).toEqual(['broken', 'send', 'store'])
    turn.schedule('send', { atTurnEnd: () => ran.push('next') })
    await nextTurn()
    expect(ran.at(-1)).toBe('next')
  })

  it('is not caught if nobody takes what it throws', () => {
    const turn = new TurnScheduler(new FakeClock())
    turn.schedule('store', {
      atTurnEnd: () => {
        throw new Error('nobody')
      },
    })
    expect(() => turn.run()).toThrow('nobody')
  })
})

describe('sending', () => {
  it('has a twentieth of that while feeds have more to process', async () => {
    const clock = new FakeClock()
    let isFeeding = true
    const turn = new TurnScheduler(clock, () => isFeeding)
    let sent = 0
    const send = () => ({
      atTurnEnd: () => {
        sent++
        clock.advance(0.125)
      },
    })
    for (let n = 0; n < 10; n++) turn.schedule('send', send())
    turn.run()
    expect(sent).toBe(2)
    turn.run()
    expect(sent).toBe(4)
    isFeeding = false
    turn.run()
    expect(sent).toBe(10)
  })

  it('has 5 ms in a turn; those that are left over are the first of the next one', async () => {
    const clock = new FakeClock()
    const turn = new TurnScheduler(clock)
    const ran: string[] = []
    const send = (name: string) => ({
      atTurnEnd: () => {
        ran.push(name)
        clock.advance(2)
      },
    })
    for (const name of ['a', 'b', 'c', 'd']) turn.schedule('send', send(name))
    turn.schedule('store', { atTurnEnd: () => ran.push('store') })
    turn.run()
    expect(ran).toEqual(['a', 'b', 'c', 'store'])
    turn.schedule('send', send('e'))
    await nextTurn()
    expect(ran.slice(4)).toEqual(['d', 'e'])
  })
})

describe('a clock that is read once in a turn', () => {
  it('stands still from its first reading in the turn to the end, and nowhere else', () => {
    const turn = new TurnScheduler(new FakeClock())
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
