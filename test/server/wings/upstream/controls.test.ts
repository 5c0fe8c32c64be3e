/** EXECUTE with `producer`: judged here, run there, recorded at both. Both servers run here, connected in memory. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Control, ok } from '../../../../server/kernel/controls/control.ts'
import { askFor, done, run } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import type { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { Tree } from '../../../support/tree.ts'

let tree: Tree
let boss: Seat

beforeEach(async () => {
  tree = await Tree.start({ role: 'admin', controls: ['user.*', 'sensor.fence', 'control.*', 'channel.*'] })
  await tree.upper.addUser('boss', { role: 'admin' })
  await tree.lower.addUser('root', { role: 'admin' })
  boss = await tree.upper.seat('boss')
  // Its controls are known before they can be run.
  await tree.connected()
})
afterEach(() => tree.stop())

const listed = async (): Promise<Json[]> =>
  decoded(await boss.query('producer.controls', args(['producer', type.string, str('*')]))) as Json[]
const users = (): string[] => [...tree.lower.server.parts.producer.accounts.list()].map(({ name }) => name)
const audited = async (of: TestProducer): Promise<Json[]> =>
  (await of.store.audit(0, 1000)).filter(({ object }) => object === 'user.add') as Json[]

describe('controls of an upstream', () => {
  it('are listed with their producer, those that are named in its table', async () => {
    const names = (await listed()).map(({ producer, name }) => `${producer} ${name}`)
    expect(names).toContain('east user.add')
    expect(names).not.toContain('east role.allow')
    expect(names).not.toContain('east config.reload')
  })

  it('run there, for whom they say, and are recorded at both', async () => {
    const result = await tree.inTime(run(boss, 'user.add', { user: 'new', producer: 'east' }))
    expect(result).toMatchObject({ outcome: 'ok' })
    expect(users()).toContain('new')
    expect([...tree.upper.server.parts.producer.accounts.list()].map(({ name }) => name)).not.toContain('new')
    const [there] = await audited(tree.lower)
    expect(there).toMatchObject({ action: 'execute', actor: 'main' })
    expect(JSON.parse(there.args)).toMatchObject({ user: 'new', on_behalf_of: 'default/boss' })
    const [here] = await audited(tree.upper)
    expect(here).toMatchObject({ action: 'execute', actor: 'boss' })
    expect(JSON.parse(here.args)).toMatchObject({ user: 'new', producer: 'east' })
  })

  it('fail as they do there', async () => {
    await tree.inTime(done(boss, 'user.add', { user: 'new', producer: 'east' }))
    const again = await tree.inTime(run(boss, 'user.add', { user: 'new', producer: 'east' }))
    expect(again).toMatchObject({ outcome: 'failed' })
  })

  it('run once with one key', async () => {
    const given = { user: 'new', producer: 'east', idempotency_key: 'k1' }
    await tree.inTime(done(boss, 'user.add', given))
    expect(await tree.inTime(run(boss, 'user.add', given))).toMatchObject({ outcome: 'ok' })
    expect((await audited(tree.lower)).filter(({ action }) => action === 'execute')).toHaveLength(1)
  })

  it('without a key get one, which is recorded before they are sent, and finds their result later', async () => {
    const given = { user: 'new', producer: 'east' }
    await tree.inTime(done(boss, 'user.add', given))
    const [here] = await audited(tree.upper)
    const { idempotency_key } = JSON.parse(here.args) as { readonly idempotency_key: string }
    expect(idempotency_key).toMatch(/^[0-9a-f-]{36}$/)
    expect(await tree.inTime(run(boss, 'user.add', { ...given, idempotency_key }))).toMatchObject({ outcome: 'ok' })
    expect((await audited(tree.lower)).filter(({ action }) => action === 'execute')).toHaveLength(1)
  })

  it('are not there for those whose rules do not allow them, and none is beside those that are named', async () => {
    const ask = (seat: Seat, control: string) =>
      seat.ask((seq) => command.execute(seq, control, args(['producer', type.string, str('east')])))
    const watcher = await tree.upper.seat('watcher')
    expect(await ask(watcher, 'user.list')).toMatchObject({ status: 10 })
    expect(await ask(boss, 'role.list')).toMatchObject({ status: 10 })
    expect(await ask(boss, 'nothing')).toMatchObject({ status: 10 })
  })

  it("are nobody's own there: what needs no rule here needs one there, and may wait for approval", async () => {
    const watcher = await tree.upper.seat('watcher')
    for (const control of ['control.approve', 'channel.purge']) {
      expect(await askFor(watcher, control, { producer: 'east' })).toMatchObject({ status: 11 })
    }
    const seen = decoded(await watcher.query('producer.controls', args(['producer', type.string, str('*')]))) as Json[]
    expect(seen.filter(({ producer }) => producer === 'east')).toEqual([])
    await done(boss, 'role.allow', { role: 'operator', command: 'EXECUTE', object: '*', approval: 'lead' })
    await tree.upper.addUser('op', { role: 'operator' })
    const op = await tree.upper.seat('op')
    const { status } = await askFor(op, 'control.approve', { producer: 'east', id: 'x' })
    expect(status).toBe(0)
    const shown = decoded(await boss.query('producer.approvals')) as Json[]
    expect(shown).toMatchObject([{ control: 'control.approve', args: { producer: 'east' } }])
  })

  it('that wait for approval there are refused here as they are there', async () => {
    const root = await tree.lower.seat('root')
    const lower = tree.lower.server.parts.producer.accounts
    await done(root, 'role.allow', { role: 'deputy', command: 'EXECUTE', object: 'user.list', approval: 'lead' })
    await done(root, 'user.role', { user: 'main', role: 'deputy' })
    expect(lower.find('default', 'main')).toMatchObject({ role: 'deputy' })
    const refused = run(boss, 'user.list', { producer: 'east' })
    await tree.until(async () => {
      const [one] = decoded(await root.query('producer.approvals')) as Json[]
      await done(root, 'control.refuse', { id: one.id, reason: 'not today' })
    })
    expect(await tree.inTime(refused)).toMatchObject({ outcome: 'refused', detail: 'by root: not today' })
  })

  it('have an argument that is masked there in no record here, and none waits here with one', async () => {
    const note: Control = {
      name: 'user.note',
      description: '',
      parameters: [{ name: 'text', type: BasicType.STRING, masked: () => 'part', description: '' }],
      prepare: (args) => () => ok(`got ${args.get('text')}`),
    }
    tree.lower.server.parts.producer.executor.add([note])
    tree.lower.emit(1, 'test.new')
    const named = expect.objectContaining({ name: 'user.note' })
    await tree.until(async () => expect(await listed()).toContainEqual(named))
    const given = { text: 'a token', producer: 'east' }
    expect(await tree.inTime(run(boss, 'user.note', given))).toMatchObject({ outcome: 'ok', detail: 'got a token' })
    const textIn = async (of: TestProducer): Promise<string> => {
      const records = (await of.store.audit(0, 1000)) as Json[]
      return JSON.parse(records.find(({ action, object }) => action === 'execute' && object === 'user.note').args).text
    }
    expect(await textIn(tree.lower)).toBe('part')
    expect(await textIn(tree.upper)).toBe('***')
    await done(boss, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'user.*', approval: 'lead' })
    await tree.upper.addUser('op', { role: 'operator' })
    const refused = await askFor(await tree.upper.seat('op'), 'user.note', given)
    expect(refused).toMatchObject({ status: 11, detail: expect.stringContaining('takes a secret') })
  })

  it('are BUSY while the upstream is not connected: nothing ran', async () => {
    await tree.stopLower()
    await tree.until(async () => {
      const response = await boss.ask((seq) =>
        command.execute(seq, 'user.list', args(['producer', type.string, str('east')])),
      )
      expect(response).toMatchObject({ status: 13, detail: expect.stringContaining('not connected') })
    })
  })
})
