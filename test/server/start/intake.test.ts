/** What a request that brings values gets from the whole server: a refusal before the first, or a yes once all are durable. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Intake } from '../../../server/kernel/channels/intake.ts'
import type { Sensor } from '../../../server/kernel/metrics/metric.ts'
import { StorageError } from '../../../storage/store.ts'
import { command } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { Seat } from '../../support/seat.ts'

const EPOCH = 1_700_000_000_000_000

let producer: TestProducer
let seat: Seat
let channel: number
let isStopped = false
beforeEach(async () => {
  producer = await TestProducer.start()
  isStopped = false
  seat = await producer.seat()
  channel = await seat.defChannel()
  const metric = await seat.collect('test.*')
  await seat.ok((seq) => command.subscribe(seq, metric, channel))
  await producer.settle()
  producer.store.manual = true
})
afterEach(async () => {
  if (!isStopped) await producer.stop()
})

const intake = (): Intake => producer.server.parts.producer.intake
const sensor = (): Sensor => producer.server.parts.hub.sensors.find(({ family }) => family === 'test.') as Sensor

/** Takes values as one request; what it is answered, `yes` or a reason, and undefined until then. */
function take(values: number, name = 'test.a', bytes = 10): { answer: string | undefined } {
  const taking = intake().begin(sensor())
  const value = { type: BasicType.STRING, value: 'x'.repeat(bytes) } as const
  for (let at = 0; at < values; at++) producer.push.push(name, value, EPOCH + at)
  const mark: { answer: string | undefined } = { answer: undefined }
  void taking.stored().then((refusal) => {
    mark.answer = refusal?.reason ?? 'yes'
  })
  return mark
}

/** Everything that is under way is stored. */
async function store(): Promise<void> {
  for (let batch = 0; batch < 4; batch++) {
    await producer.settle()
    producer.store.complete()
  }
  await producer.settle()
}

describe('a request', () => {
  it('is answered when its values are durable: after a crash they are there', async () => {
    const mark = take(5)
    await producer.settle()
    expect(mark.answer).toBeUndefined()
    await store()
    expect(mark.answer).toBe('yes')
    producer = await producer.crash()
    const again = await producer.seat()
    expect((await again.ledger(channel))['queued']).toBe(5)
  })

  it('is answered only when very many bindings have the values of a new series too', async () => {
    producer.store.manual = false
    const most = await producer.seat('most')
    const metrics = await Promise.all(Array.from({ length: 600 }, () => most.collect('test.*')))
    const last = await most.defChannel()
    for (const metric of metrics) await most.ok((seq) => command.subscribe(seq, metric, last))
    await producer.settle()
    producer.store.manual = true
    // Looks at the clock make it later: little is done in one turn.
    let nowMs = producer.clock.monotonicMs()
    producer.clock.monotonicMs = () => nowMs++
    const mark = take(1, 'test.born')
    for (let batches = 0; mark.answer === undefined; batches++) {
      expect(batches).toBeLessThan(10_000)
      await new Promise((resolve) => setImmediate(resolve))
      producer.store.complete()
    }
    expect(mark.answer).toBe('yes')
    producer = await producer.crash()
    const again = await producer.seat('most')
    expect((await again.ledger(last))['queued']).toBe(600)
  })

  it('is answered when its channel is deleted, and that is durable', async () => {
    const mark = take(5)
    const deleted = seat.send((seq) => command.delChannel(seq, channel))
    await producer.settle()
    expect(mark.answer).toBeUndefined()
    await store()
    expect((await seat.response(deleted)).status).toBe(0)
    expect(mark.answer).toBe('yes')
  })

  it('is refused while more than 16 MiB wait to be stored, and taken afterwards', async () => {
    expect(intake().refusal).toBeUndefined()
    const mark = take(170, 'test.a', 100 << 10)
    expect(intake().refusal).toEqual({ reason: 'behind', detail: 'too much waits to be stored', retryAfterS: 1 })
    await store()
    expect([mark.answer, intake().refusal]).toEqual(['yes', undefined])
  })

  it('is refused on a full disk, and one that has begun gets no yes for what was dropped', async () => {
    const begun = intake().begin(sensor())
    producer.store.low = true
    expect(intake().refusal).toMatchObject({ reason: 'full', retryAfterS: 30 })
    producer.push.push('test.a', { type: BasicType.UINT32, value: 1 }, EPOCH)
    expect(await begun.stored()).toMatchObject({ reason: 'full' })
    producer.store.low = false
    expect(intake().refusal).toBeUndefined()
  })
})

describe('when the server ends', () => {
  it('cleanly, what was taken is stored and answered; nothing more is taken', async () => {
    const mark = take(5)
    const late = intake().begin(sensor())
    const stopping = producer.stop()
    isStopped = true
    expect(intake().refusal?.reason).toBe('stopping')
    expect(await late.stored()).toMatchObject({ reason: 'stopping' })
    await stopping
    expect(mark.answer).toBe('yes')
  })

  it('with a full disk, what is not stored is refused', async () => {
    producer.store.full = true
    const mark = take(5)
    await producer.settle()
    expect(mark.answer).toBeUndefined()
    const stopping = producer.server.stop()
    await producer.settle()
    expect(mark.answer).toBe('stopping')
    await stopping
    isStopped = true
  })

  it('because storing failed, or by an error of its own', async () => {
    const mark = take(5)
    await producer.settle()
    producer.store.fail(new StorageError('IO', 'the disk is broken'))
    await producer.settle()
    expect(mark.answer).toBe('stopping')
    expect(intake().refusal?.reason).toBe('stopping')
    producer = await producer.crash()
    producer.store.manual = true
    const other = take(5)
    await producer.server.abort()
    await producer.settle()
    expect(other.answer).toBe('stopping')
    producer = await producer.crash()
  })
})
