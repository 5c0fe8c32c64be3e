import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Phase, TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { isImmediatePending, nextTurn } from '../../../support/immediates.ts'

let isOver = false
let clocks: FakeClock[] = []
beforeEach(() => {
  isOver = false
  clocks = []
})
// Nothing is to run on beside other tests, but within a millisecond of the end of a pause a scheduler looks at its clock in each turn.
afterEach(async () => {
  isOver = true
  for (let turn = 0; turn < 10 && isImmediatePending(); turn++) {
    for (const clock of clocks) clock.advance(1_000)
    await nextTurn()
  }
})

function clockOf(...given: ConstructorParameters<typeof FakeClock>): FakeClock {
  const clock = new FakeClock(...given)
  clocks.push(clock)
  return clock
}

/** Makes tasks that take a millisecond each; the first letter of their name is their tenant. */
function millisecondsOf(clock: FakeClock, ran: string[]) {
  return (name: string) => ({
    tenant: name.charAt(0),
    atTurnEnd: () => {
      ran.push(name)
      clock.advance(1)
    },
  })
}

describe('the end of a turn', () => {
  it('has four phases, whatever the order of entering; each task runs once', async () => {
    const turn = new TurnScheduler(clockOf())
    const ran: Phase[] = []
    const tasks = (['store', 'send', 'answer', 'respond'] as const).map((phase) => {
      const task = { atTurnEnd: () => ran.push(phase) }
      turn.schedule(phase, task)
      turn.schedule(phase, task)
      return task
    })
    expect(ran).toEqual([])
    await nextTurn()
    expect(ran).toEqual(['respond', 'answer', 'send', 'store'])
    expect(tasks).toHaveLength(4)
  })

  it('begins with the work that waits, and what it leads to goes out in the same turn', () => {
    const turn = new TurnScheduler(clockOf())
    const ran: string[] = []
    turn.defer(() => {
      ran.push('work')
      turn.schedule('respond', { atTurnEnd: () => ran.push('respond') })
      turn.defer(() => ran.push('more work'))
    })
    turn.run()
    expect(ran).toEqual(['work', 'respond'])
    turn.run()
    expect(ran).toEqual(['work', 'respond', 'more work'])
  })

  it('sends what is due and goes on with the rest of the work if some of it throws', async () => {
    const turn = new TurnScheduler(clockOf())
    const ran: string[] = []
    turn.schedule('send', { atTurnEnd: () => ran.push('send') })
    turn.defer(() => {
      throw new Error('of nobody')
    })
    turn.defer(() => ran.push('work'))
    expect(() => turn.run()).toThrow('of nobody')
    expect(ran).toEqual(['send'])
    await nextTurn()
    expect(ran).toEqual(['send', 'work'])
  })

  it('goes on to what was entered for a later phase, and leaves the rest to the next turn', async () => {
    const turn = new TurnScheduler(clockOf())
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
    const turn = new TurnScheduler(clockOf())
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
    const turn = new TurnScheduler(clockOf())
    turn.schedule('store', {
      atTurnEnd: () => {
        throw new Error('nobody')
      },
    })
    expect(() => turn.run()).toThrow('nobody')
  })
})

describe('responding and answering', () => {
  it.each(['respond', 'answer'] as const)('(%s) has 3 ms in a turn, of which each tenant has its part', (phase) => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const ran: string[] = []
    const task = millisecondsOf(clock, ran)
    for (let index = 0; index < 1_000; index++) turn.schedule(phase, task(`a${index}`))
    turn.schedule(phase, task('b'))
    turn.run()
    expect(ran).toEqual(['a0', 'b', 'a1'])
    turn.schedule(phase, task('b'))
    turn.run()
    expect(ran.slice(3)).toEqual(['b', 'a2', 'a3'])
    for (let turns = 0; turns < 400; turns++) turn.run()
    expect(ran).toHaveLength(1_002)
  })

  it('has no pause', () => {
    const turn = new TurnScheduler(clockOf())
    let ran = 0
    const tasks = Array.from({ length: 1_000 }, () => ({ atTurnEnd: () => ran++ }))
    for (let turns = 0; turns < 3; turns++) {
      for (const task of tasks) turn.schedule('respond', task)
      turn.run()
    }
    expect(ran).toBe(3_000)
  })
})

describe('sending', () => {
  it('has 3 ms in a turn; those that are left over are the first of the next one', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const ran: string[] = []
    const send = (name: string) => ({
      atTurnEnd: () => {
        ran.push(name)
        clock.advance(1)
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

  it('is the turn of each tenant in turn, a task each, and goes on where it stopped', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const ran: string[] = []
    const send = millisecondsOf(clock, ran)
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2']) turn.schedule('send', send(name))
    turn.run()
    expect(ran).toEqual(['a1', 'b1', 'a2'])
    turn.run()
    expect(ran.slice(3)).toEqual(['b2', 'a3', 'a4'])
  })
})

describe('the pause after a round of writes', () => {
  /** Connections that have something to send until the test ends, each for `tookMs`, and how often each was written to. */
  function busyConnections(
    turn: TurnScheduler,
    clock: FakeClock,
    count: number,
    tookMs = 0,
    tenant = 'acme',
  ): number[] {
    const written = new Array<number>(count).fill(0)
    for (const index of written.keys()) {
      const task = {
        tenant,
        atTurnEnd: () => {
          written[index] = (written[index] as number) + 1
          clock.advance(tookMs)
          if (!isOver) turn.schedule('send', task)
        },
      }
      turn.schedule('send', task)
    }
    return written
  }
  const times = (count: number, written: number) => new Array<number>(count).fill(written)

  it('is none if 20 were written to, however long it took', () => {
    for (const [count, tookMs] of [
      [20, 0.125],
      [1, 60],
    ] as const) {
      const clock = clockOf()
      const turn = new TurnScheduler(clock)
      const written = busyConnections(turn, clock, count, tookMs)
      for (let n = 0; n < 3; n++) turn.run()
      expect(written).toEqual(times(count, 3))
    }
  })

  it('is 0.2 ms for each of the others, and ends by itself', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const written = busyConnections(turn, clock, 60)
    for (let n = 0; n < 3; n++) turn.run()
    expect(written).toEqual(times(60, 1))
    clock.advance(7)
    await nextTurn()
    expect(written).toEqual(times(60, 1))
    clock.advance(1)
    await nextTurn()
    expect(written).toEqual(times(60, 2))
  })

  it('comes after everybody was written to, in however many turns', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const written = busyConnections(turn, clock, 24, 0.25)
    turn.run()
    expect(written).toEqual([...times(12, 1), ...times(12, 0)])
    turn.run()
    turn.run()
    expect(written).toEqual(times(24, 1))
    clock.advance(0.8)
    turn.run()
    expect(written).toEqual([...times(12, 2), ...times(12, 1)])
  })

  it('is 200 ms at most', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const written = busyConnections(turn, clock, 5000)
    turn.run()
    clock.advance(199)
    await nextTurn()
    expect(written).toEqual(times(5000, 1))
    clock.advance(1)
    await nextTurn()
    expect(written).toEqual(times(5000, 2))
  })

  it('does not hold up who was not written to', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const written = busyConnections(turn, clock, 60)
    turn.run()
    let isWritten = false
    turn.schedule('send', { tenant: 'acme', atTurnEnd: () => (isWritten = true) })
    await nextTurn()
    expect(isWritten).toBe(true)
    expect(written).toEqual(times(60, 1))
  })

  it('is followed by those who were not in the round, before all others', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const written = busyConnections(turn, clock, 36, 0.25)
    for (let n = 0; n < 3; n++) turn.run()
    clock.advance(3.2)
    turn.run()
    expect(written).toEqual([...times(12, 2), ...times(24, 1)])
    let isWritten = false
    turn.schedule('send', {
      tenant: 'acme',
      atTurnEnd: () => {
        isWritten = true
        clock.advance(0.25)
      },
    })
    turn.run()
    expect(isWritten).toBe(true)
    expect(written).toEqual([...times(23, 2), ...times(13, 1)])
  })

  it('holds up only the tenant whose connections were many', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    const many = busyConnections(turn, clock, 1000)
    const one = busyConnections(turn, clock, 1, 0, 'globex')
    for (let n = 0; n < 5; n++) turn.run()
    expect(many).toEqual(times(1000, 1))
    expect(one).toEqual([5])
  })

  it('holds up no answer', async () => {
    const clock = clockOf()
    const turn = new TurnScheduler(clock)
    busyConnections(turn, clock, 1000)
    turn.run()
    let answered = 0
    for (let n = 0; n < 3; n++) {
      turn.schedule('answer', { atTurnEnd: () => answered++ })
      await nextTurn()
    }
    expect(answered).toBe(3)
  })

  it('is the same for the channels of a batch', async () => {
    for (const [channels, pauseMs] of [
      [20, 0],
      [220, 40],
      [5000, 200],
    ] as const) {
      const clock = clockOf()
      const turn = new TurnScheduler(clock)
      let batches = 0
      const store = { channelsWritten: channels, atTurnEnd: () => batches++ }
      turn.schedule('store', store)
      turn.run()
      turn.schedule('store', store)
      if (pauseMs > 0) {
        turn.run()
        clock.advance(pauseMs - 1)
        await nextTurn()
        expect(batches).toBe(1)
        clock.advance(1)
      }
      await nextTurn()
      expect(batches).toBe(2)
    }
  })
})

describe('a clock that is read once in a turn', () => {
  it('stands still from its first reading in the turn to the end, and nowhere else', () => {
    const turn = new TurnScheduler(clockOf())
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
