/** `control.pending` on a durable channel: nobody reads of something that may not have happened after a crash. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { askFor, done } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat, ValueMessage } from '../../../support/seat.ts'

let producer: TestProducer

beforeEach(async () => {
  producer = await TestProducer.start()
  for (const [name, role] of Object.entries({ root: 'admin', op: 'operator', lead: 'lead' })) {
    await producer.addUser(name, { role })
  }
})
afterEach(() => producer.stop())

/** The states that have come to a seat. */
async function statesOf(seat: Seat): Promise<string[]> {
  await producer.settle()
  const values = seat.rest().filter((message): message is ValueMessage => message.kind === 'value')
  return values.map(decoded).flatMap(({ state }: Json) => state ?? [])
}

it('is sent when it is stored that a wait has ended', async () => {
  const [root, op, lead] = [await producer.seat('root'), await producer.seat('op'), await producer.seat('lead')]
  await done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'user.list', approval: 'lead' })
  await lead.setChannel(await lead.defChannel())
  const id = await lead.collect('control.pending')
  await lead.ok((seq) => command.subscribe(seq, id))
  await askFor(op, 'user.list')
  expect(await statesOf(lead)).toEqual(['waiting'])
  const [waiting] = decoded(await root.query('producer.approvals')) as Json[]
  producer.store.manual = true
  root.send((seq) =>
    command.execute(
      seq,
      'control.refuse',
      args(['id', type.string, str(waiting.id)], ['reason', type.string, str('no')]),
    ),
  )
  await producer.settle()
  // The refusal is stored before it has an effect.
  for (const expected of [[], []]) {
    expect(await statesOf(lead)).toEqual(expected)
    producer.store.complete()
  }
  expect(await statesOf(lead)).toEqual(['refused'])
})
