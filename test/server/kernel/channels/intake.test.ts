/** The mark of a request: when it is a yes, when it waits, and when it says that the values have to come again. */
import { beforeEach, describe, expect, it } from 'vitest'
import { Intake, type IntakeRefusal } from '../../../../server/kernel/channels/intake.ts'
import type { Sensor } from '../../../../server/kernel/metrics/metric.ts'
import { Rig } from './rig.ts'

const sensor = { family: 'otlp.' } as unknown as Sensor
const YES = 'yes'
type Answer = typeof YES | IntakeRefusal['reason']

let rig: Rig
let intake: Intake
let state: 'ok' | 'full' | 'failed'
let isBehind: boolean
let asked: (() => void)[] | undefined
beforeEach(async () => {
  rig = new Rig({ maxBytes: 1_000 })
  await rig.open()
  state = 'ok'
  isBehind = false
  asked = undefined
  intake = intakeOf(rig)
})

function intakeOf({ host, journal }: Rig): Intake {
  return new Intake({
    host,
    journal,
    storage: {
      get state() {
        return state
      },
      isBehind: () => isBehind,
    },
    whenAsked: () => asked && new Promise((resolve) => asked?.push(resolve)),
  })
}

function fill(isFull: boolean): void {
  state = isFull ? 'full' : 'ok'
  rig.store.full = isFull
}

/** What has been answered so far; undefined while the mark is open. */
function markOf(taking = intake.begin(sensor)): { readonly answer: Answer | undefined } {
  const mark: { answer: Answer | undefined } = { answer: undefined }
  void taking.stored().then((refusal) => {
    mark.answer = refusal?.reason ?? YES
  })
  return mark
}

async function soon(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve()
}

/** Appends values as one request. */
function take(count: number, waiting = false): { readonly answer: Answer | undefined } {
  const taking = intake.begin(sensor)
  rig.append(7, count, { waiting })
  return markOf(taking)
}

describe('a mark is a yes', () => {
  it('when the batch with the values is durable, and not before', async () => {
    const mark = take(3)
    await soon()
    expect(mark.answer).toBeUndefined()
    rig.journal.atTurnEnd()
    await soon()
    expect(mark.answer).toBeUndefined()
    expect(intake.waiting).toBe(1)
    rig.store.complete()
    await soon()
    expect(mark.answer).toBe(YES)
    expect(intake.waiting).toBe(0)
  })

  it('for what came while another batch was in flight, with the next one only', async () => {
    const first = take(1)
    rig.journal.atTurnEnd()
    const second = take(1)
    rig.store.complete()
    await soon()
    expect([first.answer, second.answer]).toEqual([YES, undefined])
    rig.persist()
    await soon()
    expect(second.answer).toBe(YES)
  })

  it('for values that wait for GET as for others', async () => {
    const mark = take(3, true)
    await soon()
    expect(mark.answer).toBeUndefined()
    rig.persist()
    await soon()
    expect(mark.answer).toBe(YES)
    expect(await rig.crash()).toBe(false)
    expect(rig.queue.status().queued).toBe(3)
  })

  it('at once if there was nothing to take, or everything is stored already', async () => {
    const nothing = take(0)
    await soon()
    expect(nothing.answer).toBe(YES)
    take(1)
    rig.persist()
    const again = take(0)
    await soon()
    expect(again.answer).toBe(YES)
  })

  it('for a value that was passed over, since it came with an earlier request, when that one is durable', async () => {
    take(1)
    const again = take(0)
    await soon()
    expect(again.answer).toBeUndefined()
    rig.persist()
    await soon()
    expect(again.answer).toBe(YES)
  })

  it('for values that are committed before a batch takes them: they are never written, but that they are gone is', async () => {
    rig.queue.attach()
    // Ids are reserved with the first batch, before any is sent.
    take(1)
    rig.persist()
    await rig.send()
    rig.queue.seal(7)
    const mark = take(3)
    expect(await rig.send()).toHaveLength(3)
    expect(rig.queue.commit(103, true)).toBe(true)
    await soon()
    expect(mark.answer).toBeUndefined()
    rig.persist()
    await soon()
    expect(mark.answer).toBe(YES)
    expect(rig.batches.at(-1)?.blocks).toHaveLength(0)
    await rig.crash()
    expect(rig.queue.status()).toMatchObject({ accepted: 4, committed: 4 })
  })

  it('for values that a channel drops at its own limit: a GAP reports them, and it is on the disk', async () => {
    const mark = take(30)
    rig.persist()
    await soon()
    expect(mark.answer).toBe(YES)
    await rig.crash()
    const { dropped, queued, accepted } = rig.queue.status()
    expect([accepted, dropped.overflow + queued]).toEqual([30, 30])
    expect(dropped.overflow).toBeGreaterThan(0)
  })

  it('for a tenant at its own limit', async () => {
    rig = new Rig({}, undefined, { bytes: 0, limit: 250 })
    await rig.open()
    intake = intakeOf(rig)
    const mark = take(10)
    rig.persist()
    await soon()
    expect(mark.answer).toBe(YES)
    expect(intake.refusal).toBeUndefined()
  })

  it('without waiting, where the channel is not durable', async () => {
    rig = new Rig({ durable: false })
    await rig.open()
    intake = intakeOf(rig)
    const mark = take(3)
    await soon()
    expect(mark.answer).toBe(YES)
  })

  it('when the channel is deleted before a batch takes the values', async () => {
    const mark = take(3)
    rig.journal.forget(rig.queue)
    rig.journal.change({ remove: 'channel', id: 1 })
    for (const _ of rig.queue.discard());
    await soon()
    expect(mark.answer).toBeUndefined()
    rig.persist()
    await soon()
    expect(mark.answer).toBe(YES)
    expect(rig.host.unstored).toBe(0)
  })

  it('only after everybody who wants the new series has their values', async () => {
    asked = []
    const mark = take(1)
    rig.persist()
    await soon()
    expect(mark.answer).toBeUndefined()
    // Those who are asked late get the value now.
    rig.append(8, 1)
    asked[0]?.()
    await soon()
    expect(mark.answer).toBeUndefined()
    rig.persist()
    await soon()
    expect(mark.answer).toBe(YES)
  })
})

describe('on a full disk', () => {
  it('a mark stays open until the batch finds room', async () => {
    const mark = take(2)
    rig.journal.atTurnEnd()
    fill(true)
    await soon()
    expect(intake.refusal?.reason).toBe('full')
    expect(mark.answer).toBeUndefined()
    fill(false)
    await soon()
    expect(mark.answer).toBe(YES)
    expect(intake.refusal).toBeUndefined()
  })

  it('that becomes full after the first value, the rest is refused and reported, and the answer is no yes', async () => {
    const taking = intake.begin(sensor)
    rig.append(7, 2)
    rig.journal.atTurnEnd()
    fill(true)
    rig.append(7, 3)
    const mark = markOf(taking)
    await soon()
    expect(mark.answer).toBe('full')
    expect(rig.queue.status().dropped.full).toBe(3)
    fill(false)
    rig.persist()
    const after = take(1)
    rig.persist()
    await soon()
    expect(after.answer).toBe(YES)
  })

  it('a refusal is no yes even if there is room again by then', async () => {
    const taking = intake.begin(sensor)
    rig.host.refusing = 'full'
    rig.append(7, 1)
    rig.host.refusing = undefined
    const mark = markOf(taking)
    rig.persist()
    await soon()
    expect(mark.answer).toBe('behind')
  })

  it('nothing is refused to a channel that is not durable', async () => {
    rig = new Rig({ durable: false })
    await rig.open()
    intake = intakeOf(rig)
    const taking = intake.begin(sensor)
    rig.host.refusing = 'full'
    rig.append(7, 1)
    const mark = markOf(taking)
    await soon()
    expect(mark.answer).toBe(YES)
  })
})

describe('the judgement before the first value', () => {
  it('says why, and when to come again', () => {
    expect(intake.refusal).toBeUndefined()
    isBehind = true
    expect(intake.refusal).toEqual({ reason: 'behind', detail: 'too much waits to be stored', retryAfterS: 1 })
    isBehind = false
    for (const refusing of ['overflow', 'full'] as const) {
      rig.host.refusing = refusing
      expect(intake.refusal?.reason).toBe('behind')
    }
    state = 'full'
    expect(intake.refusal).toEqual({ reason: 'full', detail: 'the disk is full', retryAfterS: 30 })
    state = 'failed'
    expect(intake.refusal?.reason).toBe('stopping')
    state = 'ok'
    rig.host.refusing = undefined
    expect(intake.refusal).toBeUndefined()
    intake.stop()
    expect(intake.refusal).toEqual({ reason: 'stopping', detail: 'the server is stopping', retryAfterS: 5 })
  })
})

describe('when the server stops', () => {
  it('marks that were taken before are stored with the last batch', async () => {
    const mark = take(2)
    intake.stop()
    rig.persist()
    await soon()
    intake.end()
    await soon()
    expect(mark.answer).toBe(YES)
  })

  it('no mark is taken any more, and those that are open when all is over are no yes', async () => {
    const open = take(2)
    rig.journal.atTurnEnd()
    intake.stop()
    const late = take(1)
    await soon()
    expect([open.answer, late.answer]).toEqual([undefined, 'stopping'])
    intake.end()
    await soon()
    expect([open.answer, intake.waiting]).toEqual(['stopping', 0])
    rig.store.complete()
    await soon()
    expect(open.answer).toBe('stopping')
  })

  it('those who are asked late have lost their series: the answer is no yes', async () => {
    asked = []
    const mark = take(1)
    intake.stop()
    asked[0]?.()
    rig.persist()
    await soon()
    expect(mark.answer).toBe('stopping')
  })
})
