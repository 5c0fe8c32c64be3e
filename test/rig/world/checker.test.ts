import { describe, expect, it } from 'vitest'
import { Checker } from './checker.ts'
import { type History, keyOf } from './history.ts'

const A = 1
const B = 2

/** A channel bound to A and B from the start, with `count` values of A sent and given ids from 101 on. */
function fed(count: number, policy: 'keep' | 'overflow' | 'latest' = 'keep'): { checker: Checker; history: History } {
  const checker = new Checker(7)
  const history = checker.channel(1, policy)
  history.stored(100)
  history.bind(A)
  for (let i = 0; i < count; i++) checker.next(A)
  history.connect()
  return { checker, history }
}

function come(history: History, from: number, to: number): void {
  for (let counter = from; counter <= to; counter++) history.value(100 + counter, A, counter)
}

describe('the checker finds nothing', () => {
  it('where everything came once', () => {
    const { checker, history } = fed(3)
    come(history, 1, 3)
    history.stored(103)
    expect(() => checker.judge()).not.toThrow()
    expect(checker.totals()).toMatchObject({ sent: 3, stored: 3, delivered: 3, lost: 0, unexpected: 0, reused: 0 })
  })

  it('where uncommitted values come again under their ids, and what a crash took was never stored', () => {
    const { checker, history } = fed(5)
    come(history, 1, 5)
    history.stored(103)
    history.solid(new Map([[A, 3]]))
    const ids = history.committing(102, true)
    history.committed(ids)
    checker.died()
    history.stored(1000)
    history.connect()
    history.value(103, A, 3)
    history.gap(1000, 0, 5)
    history.value(1001, A, checker.next(A))
    expect(() => checker.judge()).not.toThrow()
    expect(checker.totals()).toMatchObject({ delivered: 6, repeated: 1, restartGaps: 1 })
  })

  it('where a GAP tells what was dropped', () => {
    const { checker, history } = fed(6, 'overflow')
    come(history, 1, 2)
    history.gap(104, 2, 1)
    come(history, 5, 6)
    history.stored(106)
    expect(() => checker.judge()).not.toThrow()
  })

  it('where a channel of the latest values comes with the newest', () => {
    const { checker, history } = fed(9, 'latest')
    history.value(109, A, 9)
    expect(() => checker.judge()).not.toThrow()
  })
})

describe('the checker finds', () => {
  it.each([
    [
      'a stored id that never came',
      /lost.*1 ids were stored/,
      ({ checker, history }: ReturnType<typeof fed>) => {
        come(history, 1, 2)
        history.stored(103)
        checker.died()
        history.stored(1000)
        history.connect()
        come(history, 1, 2)
      },
    ],
    [
      'a hole within a life',
      /lost.*1-3 to 1-3/,
      ({ history }: ReturnType<typeof fed>) => {
        come(history, 1, 2)
        history.value(103, A, 4)
        history.value(104, A, 5)
      },
    ],
    [
      'a stored value that waits for a GET and is gone after the crash',
      /lost.*1-1 to 1-5/,
      ({ checker, history }: ReturnType<typeof fed>) => {
        history.solid(new Map([[A, 5]]))
        checker.died()
        history.value(101, A, checker.next(A))
      },
    ],
    [
      'the end of what was sent',
      /lost.*1-4 to 1-5/,
      ({ history }: ReturnType<typeof fed>) => {
        come(history, 1, 3)
      },
    ],
    [
      'an uncommitted value that does not come again',
      /lost.*did not come again.*id 103/,
      ({ checker, history }: ReturnType<typeof fed>) => {
        come(history, 1, 5)
        history.stored(105)
        checker.died()
        history.stored(1000)
        history.connect()
        for (const counter of [1, 2, 4, 5]) history.value(100 + counter, A, counter)
      },
    ],
    [
      'an owed copy that never came',
      /lost.*value 2-7 was owed/,
      ({ history }: ReturnType<typeof fed>) => {
        history.owe([keyOf(B, 7)])
        come(history, 1, 5)
      },
    ],
    [
      'a value that nobody sent',
      /unexpected.*2-1/,
      ({ history }: ReturnType<typeof fed>) => {
        come(history, 1, 5)
        history.value(106, B, 1)
      },
    ],
    [
      'a value under a second id',
      /duplicate.*ids 105 and 106/,
      ({ history }: ReturnType<typeof fed>) => {
        come(history, 1, 5)
        history.value(106, A, 5)
      },
    ],
    [
      'an id given to a second value',
      /reused.*id 105/,
      ({ checker, history }: ReturnType<typeof fed>) => {
        come(history, 1, 5)
        checker.died()
        history.connect()
        history.value(105, A, checker.next(A))
      },
    ],
    [
      'an id given to a value and to a GAP',
      /reused.*id 105/,
      ({ checker, history }: ReturnType<typeof fed>) => {
        come(history, 1, 5)
        checker.died()
        history.connect()
        history.gap(105, 0, 5)
      },
    ],
    [
      'a value whose COMMIT was answered',
      /committed.*id 102/,
      ({ history }: ReturnType<typeof fed>) => {
        come(history, 1, 5)
        history.committed(history.committing(102, false))
        history.connect()
        come(history, 1, 5)
      },
    ],
    [
      'ids that do not ascend',
      /order.*id 101 after id 102/,
      ({ history }: ReturnType<typeof fed>) => {
        history.value(102, A, 2)
        history.value(101, A, 1)
      },
    ],
  ])('%s', (_, message, happen) => {
    const all = fed(5)
    happen(all)
    expect(() => all.checker.judge()).toThrow(message)
    expect(() => all.checker.judge()).toThrow('seed 7')
  })

  it('more dropped than a GAP tells', () => {
    const { checker, history } = fed(6, 'overflow')
    come(history, 1, 2)
    history.gap(104, 1, 1)
    come(history, 5, 6)
    expect(() => checker.judge()).toThrow(/lost.*1-3 to 1-4/)
  })

  it('the newest missing where only the latest count', () => {
    const { checker, history } = fed(9, 'latest')
    come(history, 1, 8)
    expect(() => checker.judge()).toThrow(/lost.*1-9/)
  })
})
