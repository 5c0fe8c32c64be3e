/**
 * S-12: no command with an id that is not the asker's has an effect or tells that there is such an id. Each place of each
 * command is tried with each kind of foreign id, and then both at random; the measure is the answer to an id that never was.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { times } from '../../../../support/long.ts'
import { TestProducer } from '../../../../support/producer.ts'
import { Random } from '../../../../support/random.ts'
import type { Seat } from '../../../../support/seat.ts'
import { type Slot, slotsOf } from './slots.ts'
import { type IdKind, type Ids, makeVictim, picture, type Victim } from './victim.ts'

const PROBES = times({ short: 8_000, long: 100_000 })
const BATCH = 2_000
/** Nobody was ever given these. */
const NEVER: Readonly<Record<IdKind, number>> = { channel: 0x7ffffffe, metric: 0x7ffffffd, transaction: 3 }

let producer: TestProducer
let victims: Victim[]
let seat: Seat
let slots: Slot[]
let own: Ids

beforeAll(async () => {
  // The probes are more than the controls of a minute.
  producer = await TestProducer.start({ config: { quota: { controlsPerMinute: 0 } } })
  victims = [await makeVictim(producer, 'ann', 'default'), await makeVictim(producer, 'bob', 'north')]
  const former = await makeVictim(producer, 'eve', 'default')
  own = [...former.ids.channel, ...former.ids.metric].filter(([what]) => /^(deleted|stopped|id lost)/.test(what))
  seat = await producer.seat('eve')
  await producer.settle()
  for (const victim of victims) victim.seat.rest()
  slots = await slotsOf(seat, await seat.collect('events.thing'))
})
afterAll(() => producer.stop())

const foreign = (kind: IdKind): Ids => victims.flatMap(({ ids }) => ids[kind])
const pictures = () => victims.map((victim) => picture(producer, victim))

interface Answer {
  readonly status: number
  readonly detail: string
  readonly result: number
  /** Turns of the event loop until it was there: another number would be another path. */
  readonly turns: number
  /** What came after it, without ids and times. */
  readonly values: readonly string[]
}

let seqs = 1_000_000

async function answerTo(slot: Slot, id: number): Promise<Answer> {
  const seq = ++seqs
  const { log } = seat.peer
  const from = log.length
  const isIt = (message: (typeof log)[number]): boolean => message.kind === 'response' && message.seq === seq
  seat.peer.send(slot.make(seq, id))
  let turns = 0
  while (!log.slice(from).some(isIt)) {
    if (seat.peer.closed) throw new Error(`${slot.name} ended the connection`)
    await new Promise((resolve) => setImmediate(resolve))
    turns++
  }
  await producer.settle()
  const came = log.slice(from)
  const response = came.find(isIt)
  if (response?.kind !== 'response') throw new Error('there is no response')
  const values = came.flatMap((message) => (message.kind === 'value' ? [message.value.toString('hex')] : []))
  const { status, detail, result } = response
  return { status, detail, result: status === 0 ? 0 : result, turns, values }
}

describe('The matrix', () => {
  it('holds every place for an id that there is', () => {
    expect(slots.map(({ name }) => name)).toEqual([
      'STOP metric',
      'STOP channel',
      'SUBSCRIBE metric',
      'SUBSCRIBE channel',
      'BUFFER metric',
      'BUFFER channel',
      'GET metric',
      'GET channel',
      'SET_CHANNEL channel',
      'DEL_CHANNEL channel',
      'COMMIT transaction',
      'channel.configure channel',
      'channel.delete channel',
      'channel.purge channel',
      'channel.purge metric',
      'producer.bindings channel',
      'producer.channels channel',
      'producer.history.select metric',
      'producer.recent metric',
    ])
  })

  it('each command answers each kind of foreign id as one that never was, on the same path, and without effect', async () => {
    const before = pictures()
    let tried = 0
    for (const slot of slots) {
      const absent = await answerTo(slot, NEVER[slot.kind])
      expect(await answerTo(slot, NEVER[slot.kind])).toEqual(absent)
      const gone = own.filter(([what]) => what.includes('channel') === (slot.kind === 'channel'))
      for (const [what, id] of [...foreign(slot.kind), ...(slot.kind === 'transaction' ? [] : gone)]) {
        expect([slot.name, what, await answerTo(slot, id)]).toEqual([slot.name, what, absent])
        tried++
      }
    }
    expect(tried).toBeGreaterThan(slots.length * 6)
    expect(pictures()).toEqual(before)
    for (const victim of victims) expect(victim.seat.rest()).toEqual([])
  })

  it(`${PROBES} random probes tell nothing and change nothing`, async () => {
    const refused: { slot: Slot; absent: string }[] = []
    for (const slot of slots) {
      const { status, detail, result } = await answerTo(slot, NEVER[slot.kind])
      if (status !== 0) refused.push({ slot, absent: `${status} ${result} ${detail}` })
    }
    expect(refused.length).toBe(slots.length - 5)
    const before = pictures()
    const ids = (['channel', 'metric', 'transaction'] as const).flatMap((kind) => foreign(kind).map(([, id]) => id))
    const random = new Random(1)
    /** A foreign id, one beside it, or any. */
    const anyId = (kind: IdKind): number => {
      const near = Math.max(1, random.pick(ids) + random.below(5) - 2)
      if (kind === 'transaction') return near
      return random.below(4) === 0 ? 1 + random.below(0x7ffffff0) : near % 0x7fffffff
    }
    const leaks: string[] = []
    for (let sent = 0; sent < PROBES; sent += BATCH) {
      const expected = new Map<number, { of: string; absent: string }>()
      const from = seat.peer.log.length
      const frames = Array.from({ length: BATCH }, () => {
        const { slot, absent } = random.pick(refused)
        const id = anyId(slot.kind)
        expected.set(++seqs, { of: `${slot.name} ${id}`, absent })
        return slot.make(seqs, id)
      })
      seat.peer.send(...frames)
      while (seat.peer.log.length < from + BATCH && !seat.peer.closed) await producer.settle()
      for (const message of seat.peer.log.splice(from)) {
        const probe = message.kind === 'response' ? expected.get(message.seq) : undefined
        if (message.kind !== 'response' || probe === undefined) {
          leaks.push(`a ${message.kind} that nobody asked for`)
          continue
        }
        const { status, result, detail } = message
        if (`${status} ${result} ${detail}` !== probe.absent) leaks.push(`${probe.of}: ${status} ${detail}`)
      }
    }
    expect(leaks).toEqual([])
    expect(pictures()).toEqual(before)
    for (const victim of victims) expect(victim.seat.rest()).toEqual([])
  }, 120_000)
})
