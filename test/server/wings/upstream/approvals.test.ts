/** EXECUTEs with `producer` that wait for approval, at the server where they are asked for, at the one where they run, or at both. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Control, ok } from '../../../../server/kernel/controls/control.ts'
import { type Arguments, askFor, done, run } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import type { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat, ValueMessage } from '../../../support/seat.ts'
import { Tree } from '../../../support/tree.ts'

/** What has run at the lower server. */
let ran: string[]
let finish: (() => void) | undefined
/** No result of the lower server gets through. */
let isDeaf: boolean
let tree: Tree
let boss: Seat
let olga: Seat
let luis: Seat
let root: Seat

const note: Control = {
  name: 'exec.note',
  description: 'Notes a word.',
  parameters: [{ name: 'word', type: BasicType.STRING, optional: true, description: 'A word.' }],
  prepare(given) {
    const word = String(given.get('word') ?? '')
    return async () => {
      ran.push(word)
      if (word === 'held') await new Promise<void>((resolve) => (finish = resolve))
      return ok(`noted ${word}`)
    }
  },
  dryRun: (given) => () => ({ ...ok(`would note ${given.get('word')}`), outcome: 'dry-run' }),
}

/** Two operators and a lead at each server, with the same names, and an admin. The login of the upper one is a deputy below. */
beforeEach(async () => {
  ran = []
  finish = undefined
  isDeaf = false
  const mutation = () => (message: Buffer) => (isDeaf && message.readUInt32BE(4) <= 0x7fffffff ? [] : [message])
  tree = await Tree.start({ role: 'deputy', controls: ['exec.*', 'control.*'], mutation })
  tree.lower.server.parts.producer.executor.add([note])
  for (const server of [tree.upper, tree.lower]) {
    for (const [name, role] of Object.entries({ boss: 'admin', olga: 'operator', luis: 'lead', lena: 'lead' })) {
      await server.addUser(name, { role })
    }
  }
  root = await tree.lower.seat('boss')
  boss = await tree.upper.seat('boss')
  await below({})
  await known()
  olga = await tree.upper.seat('olga')
  luis = await tree.upper.seat('luis')
})
afterEach(() => tree.stop())

const allow = (seat: Seat, more: Arguments): Promise<unknown> =>
  done(seat, 'role.allow', { command: 'EXECUTE', object: 'exec.note', ...more })
const above = (more: Arguments) => allow(boss, { role: 'operator', where: 'producer=east', ...more })
const below = (more: Arguments) => allow(root, { role: 'deputy', ...more })
const waiting = async (of: Seat): Promise<Json[]> => decoded(await of.query('producer.approvals')) as Json[]
/** The upper server has read that the control is there. */
const known = (): Promise<void> =>
  tree.until(async () => {
    const controls = decoded(
      await boss.query('producer.controls', args(['producer', type.string, str('east')])),
    ) as Json[]
    expect(controls.map(({ name }) => name)).toContain('exec.note')
  })
const audited = async (of: TestProducer): Promise<string[]> =>
  (await of.store.audit(0, 1000))
    .filter(({ object }) => object === 'exec.note')
    .map(({ action, actor, outcome }) => `${action} by ${actor}: ${outcome}`)

/** Asks for a run below that has to be approved somewhere; gives the id of its result. */
async function asked(word: string, more: Arguments = {}): Promise<number> {
  const response = await askFor(olga, 'exec.note', { word, producer: 'east', ...more })
  expect(response).toMatchObject({ status: 0 })
  return response.result
}

/** The one that waits at a server, when its dry run has ended. */
async function shown(to: Seat): Promise<Json> {
  let one: Json
  await tree.until(async () => {
    ;[one] = await waiting(to)
    expect(one).toHaveProperty('dry_run')
  })
  return one
}

/** The result with an id, when it has come. */
async function resultOf(id: number, of = olga): Promise<Json> {
  let found: ValueMessage | undefined
  await tree.until(() => {
    for (const message of of.rest()) if (message.kind === 'value' && message.metric === id) found = message
    expect(found).toBeDefined()
  })
  return found && decoded(found)
}

describe('a rule of the server where it is asked for', () => {
  it('has its own people decide, who see the dry run of there; it runs below once, and its result comes to the asker', async () => {
    await above({ approval: 'lead' })
    const id = await asked('hi')
    const one = await shown(luis)
    expect(one).toMatchObject({
      asker: 'olga',
      args: { word: 'hi', producer: 'east' },
      dry_run: { outcome: 'dry-run', detail: 'would note hi' },
    })
    expect(ran).toEqual([])
    await tree.inTime(done(luis, 'control.approve', { id: one.id }))
    expect(await resultOf(id)).toMatchObject({ outcome: 'ok', detail: 'noted hi' })
    expect(ran).toEqual(['hi'])
    expect(await audited(tree.upper)).toEqual([
      'ask by olga: waiting',
      'approval by luis: approved',
      'execute by olga: started',
      'outcome by olga: ok',
    ])
    const there = (await tree.lower.store.audit(0, 1000)).filter(({ object }) => object === 'exec.note')
    expect(there.map(({ action }) => action)).toEqual(['dry-run', 'execute', 'outcome'])
    for (const { args: given } of there.slice(0, 2)) {
      expect(JSON.parse(given)).toMatchObject({ word: 'hi', on_behalf_of: 'default/olga' })
    }
  })

  it('is kept over a restart at which the other server is not there yet, and is tried out when it is', async () => {
    await above({ approval: 'lead' })
    isDeaf = true
    const channel = await olga.defChannel()
    await olga.setChannel(channel)
    const id = await asked('hi')
    await tree.crashUpper()
    luis = await tree.upper.seat('luis')
    const [one] = await waiting(luis)
    expect(one).not.toHaveProperty('dry_run')
    expect(await askFor(luis, 'control.approve', { id: one.id })).toMatchObject({ status: 13 })
    isDeaf = false
    expect(await shown(luis)).toMatchObject({ id: one.id, dry_run: { outcome: 'dry-run', detail: 'would note hi' } })
    await tree.inTime(done(luis, 'control.approve', { id: one.id }))
    olga = await tree.upper.seat('olga')
    await olga.setChannel(channel)
    expect(await resultOf(id)).toMatchObject({ outcome: 'ok', detail: 'noted hi' })
    expect(ran).toEqual(['hi'])
  })

  it('is BUSY for whoever approves it while its producer is not known, and waits on', async () => {
    await above({ approval: 'lead' })
    await asked('hi')
    const { id } = await shown(luis)
    await tree.stopLower()
    await tree.restartUpper()
    luis = await tree.upper.seat('luis')
    const answer = await tree.inTime(run(luis, 'control.approve', { id }))
    expect(answer).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('has not been connected') })
    expect(await waiting(luis)).toMatchObject([{ id }])
    expect(ran).toEqual([])
  })
})

describe('a rule of the server where it runs', () => {
  beforeEach(async () => {
    await above({})
    await below({ approval: 'lead' })
  })

  const lead = (name: string): Promise<Seat> => tree.lower.seat(name)

  it('has the people of there decide, for whom the other server is who asks', async () => {
    const id = await asked('hi')
    const one = await shown(await lead('luis'))
    expect(one).toMatchObject({ asker: 'main', args: { word: 'hi', on_behalf_of: 'default/olga' } })
    await tree.inTime(done(await lead('luis'), 'control.approve', { id: one.id }))
    expect(await resultOf(id)).toMatchObject({ outcome: 'ok', detail: 'noted hi' })
    expect(ran).toEqual(['hi'])
  })

  it('lets nobody approve it who is called as the one that asks, whatever their role is', async () => {
    await done(root, 'user.role', { user: 'olga', role: 'lead' })
    await asked('hi')
    const other = await lead('olga')
    const { id } = await shown(other)
    const answer = await askFor(other, 'control.approve', { id })
    expect(answer).toMatchObject({ status: 11, detail: 'nobody approves what they have asked for themselves' })
    // A claim adds to those who asked, and takes none away.
    await asked('hi', { on_behalf_of: 'default/carol, Lena' })
    const [, second] = await waiting(root)
    expect(second.args.on_behalf_of).toBe('default/olga, default/carol, Lena')
    for (const name of ['olga', 'lena']) {
      expect(await askFor(await lead(name), 'control.approve', { id: second.id })).toMatchObject({ status: 11 })
    }
    expect(ran).toEqual([])
  })

  it('lets nobody approve it through a server, who might be the same person; but refuse it', async () => {
    await allow(boss, { role: 'lead', object: 'control.*', where: 'producer=east' })
    const id = await asked('hi')
    const one = await shown(root)
    const through = run(luis, 'control.approve', { id: one.id, producer: 'east' })
    expect(await tree.inTime(through)).toMatchObject({ outcome: 'failed' })
    // Neither with another login, whose role approves.
    await done(root, 'user.role', { user: 'main', role: 'lead' })
    await done(root, 'role.allow', { role: 'lead', command: 'EXECUTE', object: 'exec.note', approval: 'lead' })
    await done(root, 'control.refuse', { id: one.id, reason: 'again' })
    expect(await resultOf(id)).toMatchObject({ outcome: 'refused' })
    const [seat] = [await lead('lena')]
    expect(await askFor(seat, 'exec.note', { word: 'own' })).toMatchObject({ status: 0 })
    const { id: own } = await shown(root)
    const refused = await tree.inTime(run(luis, 'control.approve', { id: own, producer: 'east' }))
    expect(refused).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('through another server') })
    await tree.inTime(done(luis, 'control.refuse', { id: own, reason: 'no', producer: 'east' }))
    expect(await waiting(root)).toEqual([])
    expect(ran).toEqual([])
  })

  it('and one of the other server have it wait twice', async () => {
    await above({ approval: 'lead' })
    const id = await asked('hi')
    await tree.inTime(done(luis, 'control.approve', { id: (await shown(luis)).id }))
    const there = await lead('lena')
    await tree.inTime(done(there, 'control.approve', { id: (await shown(there)).id }))
    expect(await resultOf(id)).toMatchObject({ outcome: 'ok' })
    expect(ran).toEqual(['hi'])
  })
})

describe('a result that comes after `deadline_ms`', () => {
  it('is `unknown`, which says why; the same key asks for it again, and gets it', async () => {
    await above({})
    await below({ approval: 'lead' })
    const given = { idempotency_key: 'k', deadline_ms: 2_000 }
    const first = await resultOf(await asked('late', given))
    expect(first.outcome).toBe('unknown')
    expect(first.detail).toBe(
      'east: there was no result within 2 s; it may have run there, may run yet, or wait for approval there: the same with idempotency_key=k asks again for its result',
    )
    // It still waits.
    expect(await resultOf(await asked('late', given))).toMatchObject({ outcome: 'unknown' })
    expect(await waiting(root)).toHaveLength(1)
    await done(await tree.lower.seat('luis'), 'control.approve', { id: (await shown(root)).id })
    for (let times = 0; times < 2; times++) {
      expect(await resultOf(await asked('late', given))).toMatchObject({ outcome: 'ok', detail: 'noted late' })
    }
    expect(ran).toEqual(['late'])
    expect((await audited(tree.upper)).filter((one) => one.startsWith('outcome'))).toEqual([
      'outcome by olga: unknown',
      'outcome by olga: ok',
    ])
  })

  it('is known over a crash of the server where it was asked for', async () => {
    await above({})
    const given = { idempotency_key: 'k' }
    await asked('held', given)
    await tree.until(() => expect(ran).toEqual(['held']))
    await tree.crashUpper()
    finish?.()
    await tree.connected()
    olga = await tree.upper.seat('olga')
    expect(await resultOf(await asked('held', given))).toMatchObject({ outcome: 'ok', detail: 'noted held' })
    expect(ran).toEqual(['held'])
  })

  it('never starts what was not known there', async () => {
    const seat = await tree.lower.seat('main')
    const list = args(
      ['idempotency_key', type.string, str('k')],
      ['repeat_only', type.boolean, new Uint8Array([0, 0, 0, 1])],
    )
    const answer = await seat.ask((seq) => command.execute(seq, 'exec.note', list))
    expect(answer).toMatchObject({ status: 6, detail: 'no EXECUTE with this idempotency_key is known: nothing runs' })
    expect(ran).toEqual([])
  })
})
