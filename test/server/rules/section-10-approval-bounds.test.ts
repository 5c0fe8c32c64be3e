/** Section 10.1: how many EXECUTEs wait, for how long whoever has asked may be waited for, and by which rule that is. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Control, ok } from '../../../server/kernel/controls/control.ts'
import { askFor, done, newToken, run, tokenSeat } from '../../support/administration.ts'
import { args, status, str, type } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

const HOUR_MS = 3_600_000

let ran: number
const control: Control = {
  name: 'exec.note',
  description: 'Notes a word.',
  parameters: [{ name: 'word', type: BasicType.STRING, optional: true, description: 'A word.' }],
  prepare: () => () => {
    ran++
    return ok()
  },
}

let producer: TestProducer
let root: Seat
let op: Seat
let lead: Seat

beforeEach(async () => {
  ran = 0
  producer = await TestProducer.start()
  producer.server.parts.producer.executor.add([control])
  for (const [name, role] of Object.entries({ root: 'admin', op: 'operator', lead: 'lead' }))
    await producer.addUser(name, { role })
  root = await producer.seat('root')
  op = await producer.seat('op')
  lead = await producer.seat('lead')
  await done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'exec.*', approval: 'lead' })
})
afterEach(() => producer.stop())

const waiting = async (of = root): Promise<Json[]> => decoded(await of.query('producer.approvals'))
const refused = async (): Promise<number> => decoded(await root.query('producer.stats')).refused_approvals
async function ask(seat: Seat, times = 1): Promise<void> {
  for (let count = 0; count < times; count++)
    expect(await askFor(seat, 'exec.note')).toMatchObject({ status: status.OK })
}

it('whoever asks has 20 places, so that nobody takes all of a tenant', async () => {
  await ask(op, 20)
  const answer = await askFor(op, 'exec.note')
  expect(answer).toMatchObject({
    status: status.BUSY,
    detail: expect.stringContaining('20 EXECUTEs of yours wait for approval, which is the maximum'),
  })
  await producer.addUser('second', { role: 'operator' })
  await ask(await producer.seat('second'))
  expect(await refused()).toBe(1)
  const [first] = await waiting(op)
  await done(op, 'control.refuse', { id: first?.id, reason: 'a mistake' })
  await ask(op)
})

it('a tenant has 100, which keep out nobody else', async () => {
  const seats: Seat[] = []
  for (let user = 0; user < 5; user++) {
    await producer.addUser(`op${user}`, { role: 'operator' })
    seats.push(await producer.seat(`op${user}`))
  }
  for (const seat of seats) await ask(seat, 20)
  expect(await askFor(op, 'exec.note')).toMatchObject({
    status: status.BUSY,
    detail: expect.not.stringContaining('100'),
  })
  expect(await refused()).toBe(1)
  await producer.addUser('op', { tenant: 'acme', role: 'operator' })
  await ask(await producer.seat('op', 'acme'))
  await done(lead, 'control.refuse', { id: (await waiting(lead))[0]?.id, reason: 'too many' })
  await ask(op)
})

it('nothing waits longer than the token is good for with which it was asked for', async () => {
  const { token, hash } = newToken()
  await done(root, 'token.add', { user: 'op', hash, expires_in_s: 600n })
  await ask(await tokenSeat(producer, token))
  await ask(op)
  const [short, long] = await waiting(lead)
  expect(Number(long?.until) - Number(long?.asked)).toBe(HOUR_MS * 1000)
  expect(Number(short?.until) - Number(short?.asked)).toBeLessThanOrEqual(600_000_000)
  producer.clock.advance(600_000)
  // Before any sweep.
  expect(await askFor(lead, 'control.approve', { id: short?.id })).toMatchObject({ status: status.INVALID_ARGUMENT })
  await producer.settle()
  expect(await waiting(lead)).toMatchObject([{ id: long?.id }])
  expect(ran).toBe(0)
})

it('a token that has expired by the clock of the wall is expired, though the time has not passed', async () => {
  const { token, hash } = newToken()
  await done(root, 'token.add', { user: 'op', hash, expires_in_s: 7_200n })
  await ask(await tokenSeat(producer, token))
  const [shown] = await waiting(lead)
  producer.clock.jumpWall(2 * HOUR_MS)
  await producer.settle()
  expect(await run(lead, 'control.approve', { id: shown?.id })).toMatchObject({
    outcome: 'failed',
    detail: 'the token with which it was asked for is revoked, or has expired',
  })
  expect(ran).toBe(0)
})

it('the rule stands with what waits, also after a restart', async () => {
  await ask(op)
  const rule = 'rule 1: allow EXECUTE exec.* if lead approves'
  expect(await waiting(lead)).toMatchObject([{ role: 'lead', rule }])
  producer = await producer.restart()
  producer.server.parts.producer.executor.add([control])
  expect(await waiting(await producer.seat('lead'))).toMatchObject([{ role: 'lead', rule }])
})

it('the catalogue says whose approval a control may need, with some arguments; a rule for consumers to approve is refused', async () => {
  const shown = async (of: Seat): Promise<unknown> =>
    decoded(await of.query('producer.controls', args(['match', type.string, str('exec.note')])))[0]?.approval
  expect([await shown(op), await shown(root)]).toEqual(['lead', undefined])
  const rule = { role: 'operator', command: 'EXECUTE', object: 'exec.note' }
  await done(root, 'role.allow', { ...rule, where: 'word=x*', approval: 'chief' })
  expect(await shown(op)).toBe('chief\nlead')
  // What is more specific, and holds with any arguments, decides in the place of the pattern.
  await done(root, 'role.allow', rule)
  expect(await shown(op)).toBe('chief')
  const answer = await askFor(root, 'role.allow', { ...rule, approval: 'consumer' })
  expect(answer).toMatchObject({
    status: status.INVALID_ARGUMENT,
    detail: expect.stringMatching(
      /consumer is the role of all users who have no other.*the roles with rules are operator$/,
    ),
  })
})
