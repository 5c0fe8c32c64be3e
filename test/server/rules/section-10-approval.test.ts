/** Section 10.1: an EXECUTE that a rule has wait runs once when somebody of another role approves it, and otherwise not at all. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Control, type ControlRun, ok } from '../../../server/kernel/controls/control.ts'
import { type Arguments, askFor, done, newToken, run, tokenSeat } from '../../support/administration.ts'
import { args, command, status, str, type } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Seat, ValueMessage } from '../../support/seat.ts'

const HOUR_MS = 3_600_000

/** What ran, in this process of the server and the ones before. */
let ran: string[]
let finish: (() => void) | undefined

/** Notes what it was given; `held` runs until the test ends it. */
function noting(name: string, definition = 'first'): Control {
  return {
    name,
    description: 'Notes a word.',
    definition,
    parameters: [{ name: 'word', type: BasicType.STRING, optional: true, description: 'A word.' }],
    maxRunning: 1,
    prepare(given): ControlRun {
      const word = String(given.get('word') ?? '')
      return async () => {
        ran.push(`${name} ${word}`)
        if (word === 'held') await new Promise<void>((resolve) => (finish = resolve))
        return ok(`noted ${word}`)
      }
    },
  }
}

let producer: TestProducer
let root: Seat
let op: Seat
let lead: Seat

/** Their seats, and the control that the server itself does not have. */
async function open(): Promise<void> {
  producer.server.parts.producer.executor.add([noting('exec.note')])
  root = await producer.seat('root')
  op = await producer.seat('op')
  lead = await producer.seat('lead')
}

beforeEach(async () => {
  ran = []
  finish = undefined
  producer = await TestProducer.start()
  for (const [name, role] of Object.entries({ root: 'admin', op: 'operator', lead: 'lead', second: 'operator' })) {
    await producer.addUser(name, { role })
  }
  await open()
  await allow({ approval: 'lead' })
})
afterEach(() => producer.stop())

const allow = (more: Arguments = {}) =>
  done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'exec.note', ...more })
const waiting = async (of: Seat): Promise<Json[]> => decoded(await of.query('producer.approvals'))
const idOf = async (of = lead): Promise<string> => (await waiting(of)).at(-1)?.id ?? ''

/** Asks for a run that waits; gives the id of its result. */
const asked = async (word = 'x', of = op, more: Arguments = {}): Promise<number> => {
  const response = await askFor(of, 'exec.note', { word, ...more })
  expect(response.status).toBe(status.OK)
  return response.result
}
/** The result of an EXECUTE that has come to a seat; undefined if none has. */
async function resultOf(id: number, of = op): Promise<Json> {
  await producer.settle()
  const values = of.rest().filter((message): message is ValueMessage => message.kind === 'value')
  const found = values.filter(({ metric }) => metric === id)
  expect(found.length).toBeLessThanOrEqual(1)
  return found[0] && decoded(found[0])
}
async function audited(): Promise<string[]> {
  await producer.settle()
  return (await producer.store.audit(0, 1000))
    .filter(({ object, action }) => object.startsWith('exec.') && action !== 'admin')
    .map(({ action, actor, object, outcome }) => `${action} ${object} by ${actor}: ${outcome}`)
}

describe('an EXECUTE that has to be approved', () => {
  it('is answered OK, and neither runs nor has a result until it is approved; then it runs once', async () => {
    const id = await asked('hi')
    expect(await resultOf(id)).toBeUndefined()
    expect(ran).toEqual([])
    await done(lead, 'control.approve', { id: await idOf() })
    expect(await resultOf(id)).toMatchObject({ outcome: 'ok', detail: 'noted hi' })
    expect(ran).toEqual(['exec.note hi'])
    expect(await waiting(lead)).toEqual([])
    expect(await audited()).toEqual([
      'ask exec.note by op: waiting',
      'approval exec.note by lead: approved',
      'execute exec.note by op: started',
      'outcome exec.note by op: ok',
    ])
  })

  it('is shown to those who may approve it, and to whoever has asked, with all that they need to know', async () => {
    await asked('hi', op, { on_behalf_of: 'alice' })
    const [shown] = await waiting(lead)
    expect(shown).toMatchObject({
      control: 'exec.note',
      args: { word: 'hi', on_behalf_of: 'alice' },
      asker: 'op',
      role: 'lead',
      rule: 'rule 1: allow EXECUTE exec.note if lead approves',
      own: false,
      dry_run: { outcome: 'dry-run', detail: 'checked only: nothing ran' },
    })
    expect(Buffer.from(shown.digest, 'base64').toString('hex').slice(0, 20)).toBe(shown.id)
    expect(Number(shown.until) - Number(shown.asked)).toBe(HOUR_MS * 1000)
    expect(await waiting(op)).toEqual([{ ...shown, own: true }])
    expect(await waiting(await producer.seat('second'))).toEqual([])
    expect(await waiting(root)).toEqual([shown])
  })

  it('is not approved by whoever has asked, whatever their role is', async () => {
    await allow({ object: 'exec.*', role: 'lead', approval: 'lead' })
    await asked('x', lead)
    const id = await idOf()
    expect(await askFor(lead, 'control.approve', { id })).toMatchObject({ status: status.PERMISSION_DENIED })
    await producer.addUser('other', { role: 'lead' })
    await done(await producer.seat('other'), 'control.approve', { id })
    expect(ran).toEqual(['exec.note x'])
  })

  it('does not exist for others: not of that role, or of another tenant', async () => {
    await asked()
    const id = await idOf()
    await producer.addUser('lead', { tenant: 'acme', role: 'lead' })
    for (const seat of [await producer.seat('second'), await producer.seat('lead', 'acme')]) {
      for (const [control, more] of [
        ['control.approve', {}],
        ['control.refuse', { reason: 'no' }],
      ] as const) {
        const answer = await askFor(seat, control, { id, ...more })
        expect(answer).toMatchObject({ status: status.INVALID_ARGUMENT })
        expect(answer.detail).toContain('nothing with the id')
      }
    }
    expect(ran).toEqual([])
  })

  it('is approved once: the second approval finds nothing', async () => {
    await asked()
    const id = await idOf()
    const [first, second] = await Promise.all([
      run(lead, 'control.approve', { id }),
      run(root, 'control.approve', { id }).catch(() => ({ outcome: 'none' })),
    ])
    await producer.settle()
    expect([first.outcome, second.outcome].sort()).toEqual(expect.arrayContaining(['ok']))
    expect(ran).toEqual(['exec.note x'])
  })

  it('is refused with a reason, which is its result', async () => {
    const id = await asked()
    await done(lead, 'control.refuse', { id: await idOf(), reason: 'not today' })
    expect(await resultOf(id)).toMatchObject({ outcome: 'refused', detail: 'by lead: not today' })
    expect(await waiting(lead)).toEqual([])
    expect((await audited()).at(-1)).toBe('approval exec.note by lead: refused')
    expect(ran).toEqual([])
  })

  it('is taken back by whoever has asked', async () => {
    const id = await asked()
    await done(op, 'control.refuse', { id: await idOf(op), reason: 'my mistake' })
    expect(await resultOf(id)).toMatchObject({ outcome: 'refused' })
  })

  it('ends when its time is over', async () => {
    const id = await asked()
    producer.clock.advance(HOUR_MS - 2000)
    expect(await resultOf(id)).toBeUndefined()
    producer.clock.advance(4000)
    expect(await resultOf(id)).toMatchObject({ outcome: 'refused', detail: 'nobody has approved it within 3600 s' })
    expect((await audited()).at(-1)).toBe('approval exec.note by op: timeout')
    expect(ran).toEqual([])
  })

  it('with a dry run needs no approval', async () => {
    const id = await op.ok((seq) =>
      command.execute(seq, 'exec.note', args(['dry_run', type.boolean, new Uint8Array([0, 0, 0, 1])])),
    )
    expect(await resultOf(id)).toMatchObject({ outcome: 'dry-run' })
    expect(await waiting(lead)).toEqual([])
  })

  it('with a key that is repeated waits once, and each repetition gets the result', async () => {
    const [first, again] = [
      await asked('k', op, { idempotency_key: 'a' }),
      await asked('k', op, { idempotency_key: 'a' }),
    ]
    expect(await waiting(lead)).toHaveLength(1)
    await done(lead, 'control.approve', { id: await idOf() })
    await producer.settle()
    const values = op.rest().filter((message): message is ValueMessage => message.kind === 'value')
    expect(values.map(({ metric }) => metric).sort()).toEqual([first, again].sort())
    expect(ran).toEqual(['exec.note k'])
  })

  it('takes no place of those that run, and waits on while there is none', async () => {
    const held = await asked('held')
    await done(lead, 'control.approve', { id: await idOf() })
    const next = await asked('next')
    const id = await idOf()
    expect(await run(lead, 'control.approve', { id })).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('already running'),
    })
    expect(await waiting(lead)).toHaveLength(1)
    finish?.()
    expect(await resultOf(held)).toMatchObject({ outcome: 'ok' })
    await done(lead, 'control.approve', { id })
    expect(await resultOf(next)).toMatchObject({ outcome: 'ok' })
  })

  it('has at most 16,384 bytes of arguments', async () => {
    expect(await askFor(op, 'exec.note', { word: 'x'.repeat(16_384) })).toMatchObject({
      status: status.INVALID_ARGUMENT,
      detail: expect.stringContaining('16384 bytes'),
    })
  })
})

describe('a change while it waits ends it, and nothing runs', () => {
  /** Seen at the latest with the next sweep, without an approval. */
  async function ended(id: number): Promise<string> {
    producer.clock.advance(1_000)
    const result = await resultOf(id)
    expect(result?.outcome).toBe('refused')
    expect(await waiting(root)).toEqual([])
    expect(ran).toEqual([])
    expect((await audited()).at(-1)).toBe('approval exec.note by op: ended')
    return result.detail
  }

  it('its rule is gone, so that it may not run at all', async () => {
    const id = await asked()
    const [{ rule }] = await done(root, 'role.list')
    await done(root, 'role.forget', { rule })
    expect(await ended(id)).toContain('no control exec.note any more')
  })

  it('its rule was replaced by another one that says the same', async () => {
    const id = await asked()
    const [{ rule }] = await done(root, 'role.list')
    await allow({ approval: 'lead' })
    await done(root, 'role.forget', { rule })
    expect(await ended(id)).toContain('is not what it was')
  })

  it('a rule denies it', async () => {
    const id = await asked()
    await done(root, 'role.deny', { role: 'operator', command: 'EXECUTE', object: 'exec.note', where: 'word=x' })
    expect(await ended(id)).toContain('you may not run exec.note')
  })

  it('whoever has asked has another role', async () => {
    const id = await asked()
    await done(root, 'user.role', { user: 'op', role: 'consumer' })
    expect(await ended(id)).toContain('no control exec.note any more')
  })

  it('the control does something else under the same name', async () => {
    const id = await asked()
    producer.server.parts.producer.executor.replace('exec.', [noting('exec.note', 'second')])
    expect(await ended(id)).toContain('is not what it was')
  })

  it('the control is gone', async () => {
    const id = await asked()
    producer.server.parts.producer.executor.replace('exec.', [])
    expect(await ended(id)).toContain('no control exec.note any more')
  })

  it('the token with which it was asked for is revoked', async () => {
    const { token, hash } = newToken()
    const number = await done(root, 'token.add', { user: 'op', hash })
    const seat = await tokenSeat(producer, token)
    await asked('x', seat)
    await done(root, 'token.revoke', { token: number })
    producer.clock.advance(1_000)
    await producer.settle()
    expect(await waiting(root)).toEqual([])
    expect((await audited()).at(-1)).toBe('approval exec.note by op: ended')
  })

  it('whoever has asked is removed', async () => {
    await asked()
    await done(root, 'user.remove', { user: 'op' })
    expect(await waiting(root)).toEqual([])
    expect((await audited()).at(-1)).toBe('approval exec.note by op: ended')
    producer = await producer.crash()
    expect(await waiting(await producer.seat('root'))).toEqual([])
  })
})

describe('control.pending', () => {
  async function follow(of: Seat): Promise<() => Promise<Json[]>> {
    const id = await of.collect('control.pending')
    await of.ok((seq) => command.subscribe(seq, id))
    return async () => {
      await producer.settle()
      return of
        .rest()
        .filter((message): message is ValueMessage => message.kind === 'value' && message.metric === id)
        .map(decoded)
    }
  }

  it('has a value for each that begins to wait, and for each end, with who decided and why', async () => {
    const come = await follow(lead)
    await asked('a')
    await asked('b')
    const [a, b] = await come()
    expect([a, b]).toMatchObject([
      { state: 'waiting', control: 'exec.note', args: { word: 'a' }, asker: 'op' },
      { state: 'waiting', args: { word: 'b' } },
    ])
    await done(root, 'control.approve', { id: a.id })
    await done(root, 'control.refuse', { id: b.id, reason: 'no' })
    expect(await come()).toMatchObject([
      { id: a.id, state: 'approved', by: 'root', reason: '' },
      { id: b.id, state: 'refused', by: 'root', reason: 'no' },
    ])
  })

  it('begins with what waits already, and shows nobody what they may not decide', async () => {
    await asked('a')
    expect(await (await follow(lead))()).toMatchObject([{ state: 'waiting', args: { word: 'a' } }])
    expect(await (await follow(await producer.seat('second')))()).toEqual([])
  })
})

describe('over a crash', () => {
  it('waits on, also for its result, and runs when it is approved then', async () => {
    const channel = await op.defChannel()
    await op.setChannel(channel)
    const id = await asked('later')
    const [before] = await waiting(lead)
    producer = await producer.crash()
    await open()
    expect(await waiting(lead)).toEqual([before])
    await op.setChannel(channel)
    await done(lead, 'control.approve', { id: before.id })
    expect(await resultOf(id)).toMatchObject({ outcome: 'ok', detail: 'noted later' })
    expect(ran).toEqual(['exec.note later'])
  })

  it('after the approval is stored, and before its result is, it is unknown and never runs again', async () => {
    const channel = await op.defChannel()
    await op.setChannel(channel)
    const id = await asked('held')
    await done(lead, 'control.approve', { id: await idOf() })
    expect(ran).toEqual(['exec.note held'])
    producer = await producer.crash()
    await open()
    await op.setChannel(channel)
    expect(await resultOf(id)).toMatchObject({ outcome: 'unknown' })
    expect(await waiting(lead)).toEqual([])
    expect(ran).toEqual(['exec.note held'])
  })

  it('before the approval is stored it has not run, and waits on', async () => {
    await asked('x')
    const id = await idOf()
    producer.store.manual = true
    lead.send((seq) => command.execute(seq, 'control.approve', args(['id', type.string, str(id)])))
    await producer.settle()
    expect(ran).toEqual([])
    producer = await producer.crash()
    await open()
    expect(await waiting(lead)).toMatchObject([{ id }])
    await done(lead, 'control.approve', { id })
    expect(ran).toEqual(['exec.note x'])
  })

  it('at another node that takes over, too', async () => {
    await asked('x')
    const id = await idOf()
    producer = await producer.takeOver('second')
    await open()
    expect(await waiting(lead)).toMatchObject([{ id }])
    await done(lead, 'control.approve', { id })
    expect(ran).toEqual(['exec.note x'])
    producer = await producer.takeOver('first')
    expect(await waiting(await producer.seat('lead'))).toEqual([])
    expect(ran).toEqual(['exec.note x'])
  })

  it('ends in time, the time that the server was down included', async () => {
    await asked('x')
    producer = await producer.restart(HOUR_MS)
    await open()
    producer.clock.advance(1_000)
    await producer.settle()
    expect(await waiting(root)).toEqual([])
  })

  it('with a key, which still belongs to it, and with all results that it was repeated for', async () => {
    const channel = await op.defChannel()
    await op.setChannel(channel)
    const ask = () => asked('k', op, { idempotency_key: 'a' })
    const ids = [await ask(), await ask()]
    producer = await producer.crash()
    await open()
    await op.setChannel(channel)
    ids.push(await ask())
    await done(lead, 'control.approve', { id: await idOf() })
    await producer.settle()
    const values = op.rest().filter((message): message is ValueMessage => message.kind === 'value')
    expect(values.map(({ metric }) => metric).sort()).toEqual(ids.sort())
    expect(values.map((value) => decoded(value).outcome)).toEqual(['ok', 'ok', 'ok'])
    expect(ran).toEqual(['exec.note k'])
  })
})

describe('rules with an approval', () => {
  it('the more specific rule decides whether an approval is needed; of two equal ones the one with approval', async () => {
    await allow({ where: 'word=free*' })
    expect(await run(op, 'exec.note', { word: 'freely' })).toMatchObject({ outcome: 'ok' })
    await asked('other')
    await allow()
    await asked('still')
    expect(await waiting(lead)).toHaveLength(2)
  })

  it("only EXECUTE can wait, and not for what is one's own", async () => {
    for (const [wrong, detail] of [
      [{ command: 'COLLECT', object: 'host.*' }, 'only EXECUTE'],
      [{ command: '*', object: '*' }, 'only EXECUTE'],
      [{ object: 'channel.purge' }, "one's own"],
      [{ object: 'control.approve' }, "one's own"],
      [{ approval: 'a role' }, 'approval is a role'],
      [{ object: 'user.passwd' }, 'takes a secret'],
    ] as [Arguments, string][]) {
      const rule = { role: 'operator', command: 'EXECUTE', object: 'exec.note', approval: 'lead', ...wrong }
      const answer = await askFor(root, 'role.allow', rule)
      expect(answer).toMatchObject({ status: status.INVALID_ARGUMENT, detail: expect.stringContaining(detail) })
    }
  })

  it('a pattern names the controls that it refuses because they take secrets', async () => {
    const rule = { role: 'operator', command: 'EXECUTE', object: 'user.*', approval: 'lead' }
    const { detail } = await run(root, 'role.allow', rule)
    expect(detail).toContain('refused because they take secrets: user.add, user.passwd')
    expect(await askFor(op, 'user.passwd', { user: 'second', password: 'p' })).toMatchObject({
      status: status.PERMISSION_DENIED,
      detail: expect.stringContaining('takes a secret'),
    })
  })

  it("a pattern over everything has nothing wait that is one's own", async () => {
    await allow({ object: '*', approval: 'lead' })
    expect((await op.execute('channel.configure', ['channel', type.uint32, new Uint8Array(4)])).outcome).toBe('ok')
  })

  it('are listed, explained, and come back after a start', async () => {
    producer = await producer.crash()
    await open()
    expect(await done(root, 'role.list')).toMatchObject([{ object: 'exec.note', approval: 'lead' }])
    const explained = await done(root, 'role.explain', { user: 'op', command: 'EXECUTE', object: 'exec.note' })
    expect(explained).toMatchObject({ allowed: true, because: 'rule 1: allow EXECUTE exec.note if lead approves' })
  })

  it('nobody but an admin gives a role that approves, or takes over its users', async () => {
    await allow({ object: 'user.role' })
    await allow({ object: 'token.add' })
    expect(await askFor(op, 'user.role', { user: 'second', role: 'lead' })).toMatchObject({
      status: status.PERMISSION_DENIED,
    })
    expect(await run(op, 'token.add', { user: 'lead', hash: newToken().hash })).toMatchObject({ outcome: 'failed' })
    await done(root, 'user.role', { user: 'second', role: 'lead' })
  })

  it('nobody gives a role that may do without approval what their own may not', async () => {
    await allow({ object: 'user.role' })
    await allow({ role: 'strong', object: 'exec.*' })
    await allow({ object: 'exec.*', approval: 'lead' })
    expect(await askFor(op, 'user.role', { user: 'second', role: 'strong' })).toMatchObject({
      status: status.PERMISSION_DENIED,
    })
  })
})
