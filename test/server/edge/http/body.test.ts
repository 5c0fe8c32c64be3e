/** Bodies of requests are read within their bounds, and nothing of the pieces that they come in is kept. */
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { beforeEach, expect, it } from 'vitest'
import { type BodyLimits, readBody } from '../../../../server/edge/http/body.ts'
import { MemoryRoom } from '../../../../server/edge/memory-room.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

let clock: FakeClock
let limits: BodyLimits
let request: PassThrough
beforeEach(() => {
  clock = new FakeClock()
  limits = { most: 100_000, lastMs: 9_000, clock, place: new MemoryRoom(1 << 20).enter('acme') }
  request = new PassThrough()
})
const read = () => readBody(request as unknown as IncomingMessage, limits)

it('are copied piece by piece, as a million pieces may make one', async () => {
  const body = read()
  const piece = new Uint8Array(1)
  for (let byte = 0; byte < 1_000; byte++) {
    piece[0] = byte
    request.emit('data', piece)
  }
  request.emit('end')
  const bytes = await body
  expect(bytes).toEqual(Uint8Array.from({ length: 1_000 }, (_, byte) => byte))
  expect((bytes as Uint8Array).buffer.byteLength).toBe(1_000)
})

it('have to come as a whole in time, however fast they come', async () => {
  limits = { ...limits, most: 1_000_000 }
  let outcome: unknown
  void read().then((given) => {
    outcome = given
  })
  for (let second = 1; second <= 9; second++) {
    request.emit('data', new Uint8Array(20_000))
    await new Promise((resolve) => setImmediate(resolve))
    expect(outcome).toBeUndefined()
    clock.advance(1_000)
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(outcome).toBe('slow')
})

it('have to come at a pace: 32 KiB in two seconds', async () => {
  let outcome: unknown
  void read().then((given) => {
    outcome = given
  })
  for (const [bytes, expected] of [
    [32_768, undefined],
    [32_767, 'slow'],
  ] as const) {
    request.emit('data', new Uint8Array(bytes))
    clock.advance(2_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(outcome).toBe(expected)
  }
})

it('may be as long as is allowed, and no byte longer', async () => {
  const body = read()
  request.emit('data', new Uint8Array(100_000))
  request.emit('end')
  expect(await body).toHaveLength(100_000)
  request = new PassThrough()
  const longer = read()
  request.emit('data', new Uint8Array(100_000))
  request.emit('data', new Uint8Array(1))
  expect(await longer).toBe('long')
})
