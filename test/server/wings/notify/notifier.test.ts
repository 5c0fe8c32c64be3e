/** A notifier with a channel and a receiver of its own: what waits for something to be told waits without work. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { writeValueMessage } from '../../../../protocol/monitor/message.ts'
import type { Field } from '../../../../protocol/monitor/value.ts'
import { noneTold } from '../../../../server/wings/notify/counts.ts'
import { NotifyGroups } from '../../../../server/wings/notify/groups.ts'
import { Notifier } from '../../../../server/wings/notify/notifier.ts'

const START = 1_700_000_000_000
const text = (name: string, value: string): Field => ({ name, type: BasicType.STRING, value })
const count = (name: string, value: number): Field => ({ name, type: BasicType.UINT64, value: BigInt(value) })

function transition(transaction: number, state: 'firing' | 'inactive'): Uint8Array {
  const writer = new XdrWriter()
  const said = [text('state', state), count('fired', START * 1_000), text('fingerprint', 'f')]
  const value: Field[] = [text('alertname', 'Down'), { name: 'value', type: BasicType.REC, value: said }]
  writeValueMessage(writer, { metric: 1, transaction, time: START, value: { type: BasicType.REC, value } })
  return writer.copy()
}

function drained(steps: Generator<unknown, unknown, void>): unknown {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

it('tells each transition in order, and does nothing until the first may be told', async () => {
  let nowMs = START
  let works = 0
  let timers: (() => void)[] = []
  const committed: number[] = []
  const sent: string[] = []
  const groups = new NotifyGroups({
    notifier: 'default/n',
    rules: {
      groupBy: ['alertname'],
      groupWaitMs: 30_000,
      groupIntervalMs: 0,
      repeatIntervalMs: 3_600_000,
      sendResolved: true,
      repeatsMuted: false,
      repeatsEndedMs: 0,
    },
    journal: { change: () => {} },
    wallMs: () => nowMs,
    groups: [],
    alerts: [],
    saidOf: () => undefined,
    mayTell: () => true,
    isMuted: function* () {
      yield
      return false
    },
    isHeld: () => false,
  })
  const selection = { name: 'alert', args: [], carriesLabels: () => true }
  const notifier = new Notifier({
    channel: {
      owner: { tenant: 'default' },
      bindings: new Map([[1, { instance: { selection } }]]),
      queue: { commit: (transaction: number) => committed.push(transaction) },
      outbox: {
        drained: () => {},
        failed: (error: unknown) => {
          throw error
        },
      },
    } as never,
    groups,
    queryOf: () => undefined,
    destination: {
      send: async ({ alerts }) => {
        sent.push(alerts.map(({ state }) => state).join())
        return { verdict: 'taken', detail: '204', waitMs: 0 }
      },
      close: () => {},
    },
    clock: {
      wallMs: () => nowMs,
      setTimeout: (act: () => void) => {
        timers.push(act)
        return { cancel: () => {} }
      },
      clear: () => {},
    } as never,
    work: (async (_: unknown, steps: Generator<unknown, unknown, void>) => {
      works++
      await turn()
      return drained(steps)
    }) as never,
    journal: { whenStored: () => Promise.resolve() },
    random: () => 0.5,
    isWanted: () => true,
    counts: noneTold(),
    ended: () => {},
    state: () => {},
    lost: function* () {
      yield
    },
    left: () => {},
  })
  notifier.start()
  let written = 0
  notifier.writeValues(Buffer.concat([transition(1, 'firing'), transition(2, 'inactive')]), () => written++)
  for (let turns = 0; turns < 20; turns++) await turn()
  // The frames are read, the first transition is taken, and the second one waits.
  expect([committed, sent, written]).toEqual([[1], [], 0])
  const worksBefore = works
  for (let turns = 0; turns < 100; turns++) await turn()
  expect(works).toBe(worksBefore)
  const fire = async (): Promise<void> => {
    for (const act of timers.splice(0)) act()
    for (let turns = 0; turns < 20; turns++) await turn()
  }
  nowMs += 30_000
  await fire()
  await fire()
  expect([committed, sent, written]).toEqual([[1, 2], ['firing', 'resolved'], 1])
  timers = []
  notifier.end()
})
