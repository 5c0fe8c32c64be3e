/** Takeovers that no fault has caused: the judge does not take the ids that they skip for lost. */
import { expect, test } from 'vitest'
import { Checker } from '../../rig/world/checker.ts'
import type { History } from '../../rig/world/history.ts'
import { Takeovers } from './takeovers.ts'

const SOURCE = 1
/** A leader that takes over after an unclean end begins after all ids that the one before had reserved. */
const SKIPPED = 1 << 21
const RESTART = 5

function led(version?: string): { checker: Checker; takeovers: Takeovers; history: History } {
  const checker = new Checker(7)
  const takeovers = new Takeovers(checker)
  takeovers.serves(1, 'n1', version)
  const history = checker.channel(1, 'keep')
  history.stored(100)
  history.bind(SOURCE)
  history.connect()
  history.value(101, SOURCE, checker.next(SOURCE))
  history.stored(101)
  return { checker, takeovers, history }
}

/** The first look at the next leader, its GAP, and a value. */
function goOn(history: History, checker: Checker): void {
  history.connect()
  history.stored(101 + SKIPPED)
  history.value(101, SOURCE, 1)
  history.gap(101 + SKIPPED, 0, RESTART)
  history.value(102 + SKIPPED, SOURCE, checker.next(SOURCE))
  history.stored(102 + SKIPPED)
}

test.each(['n1', 'n2'])('%s takes over unasked: the ids that it skips were never stored', (node) => {
  const { checker, takeovers, history } = led()
  takeovers.serves(2, node)
  goOn(history, checker)
  expect(() => checker.judge()).not.toThrow()
  expect(checker.totals()).toMatchObject({ delivered: 2, repeated: 1, restartGaps: 1, lost: 0 })
  expect(takeovers.totals()).toMatchObject({ takeovers: 1, 'takeovers without a fault': 1 })
})

test('a GAP of a restart is counted for the version that led before it, whenever it comes', () => {
  const { checker, takeovers, history } = led('the earlier version')
  takeovers.serves(2, 'n2')
  history.stored(101 + SKIPPED)
  takeovers.serves(3, 'n3')
  goOn(history, checker)
  expect(takeovers.totals()).toMatchObject({ 'restartGaps after the earlier version led': 1 })
  expect(takeovers.totals()).not.toHaveProperty('restartGaps after this version led')
})

test('the same leader over another connection begins no other life: ids that it skipped would be lost', () => {
  const { checker, takeovers, history } = led()
  takeovers.serves(1, 'n1')
  goOn(history, checker)
  expect(() => checker.judge()).toThrow(/lost.*ids were stored and never came.*0 reported/)
  expect(takeovers.count).toBe(0)
})
