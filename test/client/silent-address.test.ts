/** Two real listeners: what the first one's kernel accepts is never answered once it has gone silent, as where a machine hangs. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect } from '../../client/index.ts'
import { eventually } from '../support/eventually.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { tc } from './fake-producer.ts'
import { producerPort, type StreamProducer } from './stream-producer.ts'
import { caps, offers, response, value } from './wire.ts'

let ports: Awaited<ReturnType<typeof producerPort>>[]
beforeEach(async () => {
  ports = [await producerPort(), await producerPort()]
})
afterEach(() => {
  for (const port of ports) port.close()
})

/** Admits the consumer that connects to this port. */
async function admits(port: (typeof ports)[number]): Promise<StreamProducer> {
  const producer = await port.next()
  producer.say(caps('password'))
  await producer.grant('AUTH password', 9, offers({ auth: ['password'], generation: ['g'] }))
  return producer
}

test('a server that accepts and answers no more is left within three seconds for the next address', async () => {
  const clock = new FakeClock()
  const [first, second] = ports as [(typeof ports)[0], (typeof ports)[0]]
  const opening = connect([first.url, second.url], tc, { clock })
  const frozen = await admits(first)
  const consumer = await opening
  const lost: string[] = []
  consumer.on('disconnected', ({ code }) => lost.push(code))
  const loop = consumer[Symbol.asyncIterator]()

  clock.advance(1_500)
  const { seq } = await frozen.expect('NOP')
  frozen.say(response(seq, 0, 0), value(7, 1))
  expect((await loop.next()).value?.transaction).toBe(1)
  // From here on it is frozen: its kernel takes the NOP, and would take another connection.
  clock.advance(1_500)
  await frozen.expect('NOP')
  clock.advance(1_500)
  expect(lost).toEqual(['SILENT'])
  await eventually(() => expect(clock.advanceToNext()).toBe(true))
  const other = await admits(second)
  await other.takeUp(9, {}, value(7, 1), value(7, 2))
  expect((await loop.next()).value?.transaction).toBe(2)
  await other.grant('COMMIT 1 through')
  await loop.return?.()
  await consumer.close()
  frozen.hangUp()
  other.hangUp()
})
