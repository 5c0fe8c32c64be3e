/** Readers: few of a tenant are written to at a time, and one that takes nothing holds up nobody. */
import { beforeEach, expect, it } from 'vitest'
import { Readers, type TextReader } from '../../../../../server/edge/http/metrics/readers.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

const AT_ONCE = 8
const WAITING = 1_000
const PATIENCE_MS = 9_500
const TURN_MS = 200
const STALL_MS = 30_000

let clock: FakeClock
let readers: Readers
let refused: number
beforeEach(() => {
  clock = new FakeClock()
  refused = 0
  readers = new Readers(clock, () => refused++)
})

interface Made extends TextReader {
  readonly disconnected: boolean
  /** It has its text, or has gone. */
  readonly end: () => void
}

function make(tenant = 'a'): Made {
  const controller = new AbortController()
  let disconnected = false
  const disconnect = (): void => {
    disconnected = true
    controller.abort()
  }
  const reader = readers.reader({ tenant, gone: controller.signal, disconnect })
  return {
    ...reader,
    get disconnected() {
      return disconnected
    },
    end: () => controller.abort(),
  }
}

const many = (count: number, tenant?: string): Made[] => Array.from({ length: count }, () => make(tenant))
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Those of them that wait, by their places, each with what it was answered so far. */
function asking(some: readonly Made[]): (boolean | undefined)[] {
  const answers: (boolean | undefined)[] = some.map(() => undefined)
  for (const [place, reader] of some.entries()) {
    void reader.inTurn().then((isTurn) => {
      answers[place] = isTurn
    })
  }
  return answers
}

it('are written to in the order in which they came, eight of a tenant at a time', async () => {
  const all = many(10)
  const answers = asking(all)
  const [other] = [asking(many(1, 'b'))]
  await settled()
  expect(answers).toEqual([...Array(AT_ONCE).fill(true), undefined, undefined])
  expect(other).toEqual([true])
  all[3]?.end()
  await settled()
  expect(answers).toEqual([...Array(AT_ONCE).fill(true), true, undefined])
  expect(refused).toBe(0)
})

it('have the turn for as long as it lasts, and then wait for the next one', async () => {
  const all = many(9)
  asking(all)
  await settled()
  clock.advance(TURN_MS - 1)
  expect(await all[0]?.inTurn()).toBe(true)
  clock.advance(1)
  await settled()
  // The ninth has a turn, and seven others have theirs again.
  const again = asking(all.slice(0, AT_ONCE))
  await settled()
  expect(again).toEqual([...Array(AT_ONCE - 1).fill(true), undefined])
  all[8]?.end()
  await settled()
  expect(again).toEqual(Array(AT_ONCE).fill(true))
})

it('that take nothing hold up the others for one turn, and are disconnected', async () => {
  const deaf = many(300)
  const waiting = asking(deaf)
  const [last] = [make()]
  const [answer] = [asking([last])]
  for (let turn = 0; turn < Math.ceil(300 / AT_ONCE); turn++) {
    await settled()
    for (const [place, isTurn] of waiting.entries()) {
      if (isTurn !== true) continue
      deaf[place]?.wrote()
      waiting[place] = undefined
    }
    clock.advance(TURN_MS)
  }
  await settled()
  expect(answer).toEqual([true])
  last?.wrote()
  expect(await last?.inTurn()).toBe(true)
  clock.advance(STALL_MS)
  expect(deaf.filter(({ disconnected }) => disconnected)).toHaveLength(300)
  expect([last?.disconnected, refused]).toEqual([false, 300])
})

it('are not disconnected if they take what was written in time', async () => {
  const [slow] = many(1) as [Made]
  for (let piece = 0; piece < 3; piece++) {
    expect(await slow.inTurn()).toBe(true)
    slow.wrote()
    clock.advance(STALL_MS - 1)
  }
  expect(await slow.inTurn()).toBe(true)
  slow.wrote()
  slow.end()
  clock.advance(STALL_MS)
  expect([slow.disconnected, refused]).toEqual([false, 0])
})

it('are refused if no turn comes in time, and if too many wait', async () => {
  const before = many(AT_ONCE)
  asking(before)
  const waiting = asking(many(WAITING))
  await settled()
  expect(await make().inTurn()).toBe(false)
  expect(await make('b').inTurn()).toBe(true)
  expect(refused).toBe(1)
  for (let passed = 0; passed < PATIENCE_MS; passed += TURN_MS / 2) {
    clock.advance(TURN_MS / 2)
    await settled()
  }
  const served = waiting.filter((isTurn) => isTurn === true).length
  expect(served).toBe(Math.floor(PATIENCE_MS / TURN_MS) * AT_ONCE)
  expect(waiting.filter((isTurn) => isTurn === false)).toHaveLength(WAITING - served)
  expect(refused).toBe(1 + WAITING - served)
})

it('that have begun wait for their next turn for as long as it takes', async () => {
  const before = many(AT_ONCE)
  asking(before)
  await settled()
  clock.advance(TURN_MS)
  const others = many(AT_ONCE)
  asking(others)
  await settled()
  // More wait than may, and all the time others have the turn.
  asking(many(WAITING))
  const again = asking(before.slice(0, 1))
  await settled()
  expect(again).toEqual([undefined])
  for (let passed = 0; passed < PATIENCE_MS; passed += TURN_MS / 2) clock.advance(TURN_MS / 2)
  await settled()
  for (let passed = 0; again[0] === undefined && passed < 3 * PATIENCE_MS; passed += TURN_MS) {
    clock.advance(TURN_MS)
    await settled()
  }
  expect(again).toEqual([true])
})

it('that have gone are not counted, and get no turn', async () => {
  asking(many(AT_ONCE))
  const [gone, next] = many(2) as [Made, Made]
  const answers = asking([gone, next])
  gone.end()
  clock.advance(TURN_MS)
  await settled()
  expect(answers).toEqual([false, true])
  expect(await gone.inTurn()).toBe(false)
  gone.wrote()
  clock.advance(STALL_MS)
  expect([gone.disconnected, refused]).toEqual([false, 0])
})
