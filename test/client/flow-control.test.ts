import { describe, expect, test } from 'vitest'
import type { ClientClock } from '../../client/clock.ts'
import { FlowControl } from '../../client/flow-control.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { loggedIn } from './fake-producer.ts'
import { response, value, values } from './wire.ts'

async function start() {
  const setting = await loggedIn({ reconnect: false, deadlineMs: 60_000 })
  const closed: unknown[] = []
  setting.consumer.on('closed', (error) => closed.push(error))
  return { ...setting, closed }
}

function listening(slowClock?: ClientClock) {
  const clock = new FakeClock()
  const calls: string[] = []
  const flow = new FlowControl({
    clock: slowClock ?? clock,
    transport: { pause: () => calls.push('pause'), resume: () => calls.push('resume') },
    isResponseDue: () => false,
    probe: () => calls.push('probe'),
    dead: (silenceMs) => calls.push(`dead after ${silenceMs}`),
  })
  return { clock, calls, flow }
}

describe('a silent producer', () => {
  test('after 15 s of silence a NOP is sent; its answer is enough', async () => {
    const { clock, closed, producer } = await start()
    clock.advance(14_999)
    expect(await producer.rest()).toEqual([])
    clock.advance(1)
    const { seq } = await producer.expect('NOP')
    clock.advance(14_999)
    producer.say(response(seq, 0, 0))
    clock.advance(15_000)
    expect(await producer.rest()).toEqual(['NOP'])
    expect(closed).toEqual([])
  })

  test('a producer that lets 15 s more go by is disconnected', async () => {
    const { clock, closed, producer, consumer } = await start()
    const waiting = consumer.query('a').catch((error: unknown) => error)
    clock.advance(29_999)
    expect(producer.isClosed).toBe(false)
    clock.advance(1)
    expect(closed).toEqual([expect.objectContaining({ code: 'SILENT' })])
    expect(await waiting).toMatchObject({ code: 'SILENT' })
    expect(producer.isClosed).toBe(true)
    expect(clock.timers).toBe(0)
  })

  test('anything that arrives postpones the NOP', async () => {
    const { clock, producer } = await start()
    for (let i = 0; i < 10; i++) {
      clock.advance(10_000)
      producer.say(value(7, 0, i))
    }
    clock.advance(14_999)
    expect(await producer.rest()).toEqual([])
    clock.advance(1)
    expect(await producer.rest()).toEqual(['NOP'])
  })

  test('while we do not read, the silence is ours and proves nothing', async () => {
    const { clock, closed, producer, consumer } = await start()
    producer.say(values(7, ...Array.from({ length: 1025 }, (_, i) => i + 1)))
    expect(producer.isPaused).toBe(true)
    // Every 10 s a little may be read, but nothing comes: that is not 15 s of silence.
    clock.advance(600_000)
    expect(closed).toEqual([])
    expect(await producer.rest()).toEqual([])
    let taken = 0
    for await (const _ of consumer) if (++taken === 513) break
    expect(producer.isPaused).toBe(false)
    await producer.rest()
    clock.advance(15_000)
    expect(await producer.rest()).toEqual(['NOP'])
  })

  test('is given another time, and half of that until it is probed', () => {
    const { clock, calls, flow } = listening()
    flow.allowSilence(3_000)
    clock.advance(1_499)
    expect(calls).toEqual([])
    clock.advance(1)
    expect(calls).toEqual(['probe'])
    flow.received(24)
    clock.advance(1_500)
    expect(calls).toEqual(['probe', 'probe'])
    clock.advance(1_499)
    expect(calls).toEqual(['probe', 'probe'])
    clock.advance(1)
    expect(calls).toEqual(['probe', 'probe', 'dead after 3000'])
  })

  test('has that time from when reading is no longer paused', () => {
    const { clock, calls, flow } = listening()
    flow.hold(true, false)
    flow.allowSilence(3_000)
    clock.advance(60_000)
    expect(calls).toEqual(['pause'])
    flow.hold(false, false)
    clock.advance(1_500)
    expect(calls).toEqual(['pause', 'resume', 'probe'])
  })

  test('is not dead if the process was stopped: what came meanwhile is read first', () => {
    // The timers of a process that goes on run before it reads, each once.
    let nowMs = 0
    let timer = () => {}
    const clock = {
      monotonicMs: () => nowMs,
      setTimeout: (callback: () => void) => {
        timer = callback
        return { cancel() {} }
      },
    }
    const { calls, flow } = listening(clock)
    flow.allowSilence(3_000)
    nowMs = 1_500
    timer()
    expect(calls).toEqual(['probe'])
    nowMs = 600_000
    timer()
    flow.received(24)
    timer()
    expect(calls).toEqual(['probe'])
  })

  test('no timer is left of a closed connection', async () => {
    const { clock, consumer } = await start()
    await consumer.close()
    expect(clock.timers).toBe(0)
  })
})

describe('a slow reader', () => {
  const KIB_256 = 256 * 1024

  /** Reading is paused, but a window bounds what comes. */
  function paused() {
    const { clock, calls, flow } = listening()
    flow.hold(true, true)
    expect(calls.splice(0)).toEqual(['pause'])
    return { clock, calls, flow }
  }

  test('reads 256 KiB every 10 s', () => {
    const { clock, calls, flow } = paused()
    clock.advance(9_999)
    expect(calls).toEqual([])
    clock.advance(1)
    expect(calls).toEqual(['resume'])
    flow.received(KIB_256 - 1)
    expect(calls).toEqual(['resume'])
    flow.received(1000)
    expect(calls).toEqual(['resume', 'pause'])
    clock.advance(10_000)
    expect(calls).toEqual(['resume', 'pause', 'resume'])
  })

  test('begins anew after 10 s in which nothing came', () => {
    const { clock, calls, flow } = paused()
    clock.advance(20_000)
    expect(calls).toEqual(['resume', 'pause', 'resume'])
    flow.received(KIB_256)
    expect(calls).toEqual(['resume', 'pause', 'resume', 'pause'])
  })

  test('has what comes during a pause not counted', () => {
    const { clock, calls, flow } = paused()
    flow.received(KIB_256)
    clock.advance(10_000)
    flow.received(1)
    expect(calls).toEqual(['resume'])
  })

  test('leaves no timer when reading resumes for good, but that for silence', () => {
    const { clock, calls, flow } = paused()
    clock.advance(10_000)
    flow.hold(false, true)
    clock.advance(14_999)
    expect(calls).toEqual(['resume'])
    expect(clock.timers).toBe(1)
    flow.end()
    expect(clock.timers).toBe(0)
  })
})
