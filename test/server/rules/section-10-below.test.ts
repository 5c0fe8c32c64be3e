/** Sections 9.13 and 10: EXECUTE with `producer`: what is sent below, in bytes, what comes of it, and who may. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Arguments, askFor, done, run } from '../../support/administration.ts'
import { args, frame, join, status, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import type { TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { Tree } from '../../support/tree.ts'

const EXECUTE = 11
/** The text of a SHA-256. */
const KEY_BYTES = 43

let tree: Tree
let boss: Seat
/** No result of the lower server gets through. */
let isDeaf: boolean
beforeEach(async () => {
  isDeaf = false
  const mutation = () => (message: Buffer) => (isDeaf && message.readUInt32BE(4) <= 0x7fffffff ? [] : [message])
  tree = await Tree.start({ role: 'admin', controls: ['user.*'], mutation })
  await tree.connected()
  await tree.upper.addUser('boss', { role: 'admin' })
  await tree.lower.addUser('keeper', { role: 'admin' })
  boss = await tree.upper.seat('boss')
})
afterEach(() => tree.stop())

/** The EXECUTEs that the lower server has got. */
const executes = (): Buffer[] =>
  tree.commands.filter((one) => one.readUInt32BE(4) === EXECUTE && one.includes(Buffer.from(str('user.add'))))
/** The key in one of them. */
function keyIn(command: Buffer): string {
  const name = str('idempotency_key')
  const at = command.indexOf(name) + name.length + 8
  return command.toString('latin1', at, at + KEY_BYTES)
}
const add = (seat: Seat, user: string, more: Arguments = {}): Promise<Json> =>
  tree.inTime(run(seat, 'user.add', { user, producer: 'east', ...more }))
const listed = async (producer: string): Promise<Json[]> =>
  decoded(await boss.query('producer.controls', args(['producer', type.string, str(producer)])))
const users = (): string[] => [...tree.lower.server.parts.producer.accounts.list()].map(({ name }) => name)
const audited = async (of: TestProducer): Promise<Json[]> =>
  (await of.store.audit(0, 1000)).filter(({ object }) => object === 'user.add')

describe('what is sent below', () => {
  it('has the arguments, a key, and the identity as `on_behalf_of`, and neither `producer` nor `deadline_ms`', async () => {
    await add(boss, 'new', { deadline_ms: 30_000, on_behalf_of: 'carol' })
    const [sent = Buffer.alloc(0)] = executes()
    const list = args(
      ['user', type.string, str('new')],
      ['idempotency_key', type.string, str(keyIn(sent))],
      ['on_behalf_of', type.string, str('default/boss, carol')],
    )
    expect(toHex(sent)).toBe(toHex(frame(u32(EXECUTE), u32(sent.readUInt32BE(8)), str('user.add'), list)))
    expect(keyIn(sent)).toMatch(/^[\w-]{43}$/)
    const [here] = await audited(tree.upper)
    expect(JSON.parse(here.args)).toMatchObject({ producer: 'east', on_behalf_of: 'carol' })
    const [there] = await audited(tree.lower)
    expect(there.actor).toBe('main')
    expect(JSON.parse(there.args).on_behalf_of).toBe('default/boss, carol')
  })

  it('has the same key for the same key of the same identity, and another one for others', async () => {
    await tree.upper.addUser('second', { role: 'admin' })
    const second = await tree.upper.seat('second')
    for (const [seat, user] of [
      [boss, 'one'],
      [second, 'two'],
    ] as const)
      await add(seat, user, { idempotency_key: 'k' })
    const keys = executes().map(keyIn)
    expect(new Set(keys).size).toBe(2)
    expect(keys.filter((key) => /^[\w-]{43}$/.test(key))).toHaveLength(2)
  })
})

describe('the result', () => {
  it('stands as it comes from there', async () => {
    const list = args(['user', type.string, str('new')], ['producer', type.string, str('east')])
    const id = await boss.ok((seq) => frame(u32(EXECUTE), u32(seq), str('user.add'), list))
    const { bytes, transaction, time } = await tree.inTime(boss.value())
    const text = (name: string, of: string) => join(str(name), u32(type.string), str(of))
    const nothing = join(str('value'), u32(type.void))
    const rec = join(u32(type.rec), u32(3), text('outcome', 'ok'), text('detail', 'new added'), nothing)
    expect(toHex(bytes)).toBe(toHex(join(u32(id), u64(transaction), u64(time), rec)))
    expect(transaction).toBeGreaterThan(0)
    expect(users()).toContain('new')
  })

  it('of what the producer refuses is `failed`, with its words', async () => {
    const there = await askFor(await tree.lower.seat('main'), 'user.add', { user: 'a/b' })
    const here = await add(boss, 'a/b')
    expect([here.outcome, here.detail]).toEqual(['failed', `east: ${there.detail}`])
  })

  it('comes after a lost connection, and the control has run once', async () => {
    isDeaf = true
    const result = run(boss, 'user.add', { user: 'new', producer: 'east' })
    await tree.until(() => expect(users()).toContain('new'))
    isDeaf = false
    await tree.restartLower()
    expect(await tree.inTime(result)).toMatchObject({ outcome: 'ok' })
    const [first = '', second = '', ...more] = executes().map((sent) => sent.toString('hex', 12))
    expect(more).toEqual([])
    expect(second).toBe(first)
    expect((await audited(tree.lower)).filter(({ action }) => action === 'execute')).toHaveLength(1)
  })

  it('of what is refused when it is sent again is `unknown`: the first attempt may have run, and its result can be asked for', async () => {
    const keeper = await tree.lower.seat('keeper')
    await done(keeper, 'role.allow', { role: 'deputy', command: 'EXECUTE', object: 'user.list' })
    isDeaf = true
    const given = { user: 'new', producer: 'east', idempotency_key: 'k' }
    const result = run(boss, 'user.add', given)
    await tree.until(() => expect(users()).toContain('new'))
    await done(keeper, 'user.role', { user: 'main', role: 'deputy' })
    isDeaf = false
    await tree.restartLower()
    const { outcome, detail } = await tree.inTime(result)
    expect(outcome).toBe('unknown')
    expect(detail).toMatch(/^east: .+: refused when it was sent again after a lost connection; it may have run there/)
    await done(await tree.lower.seat('keeper'), 'user.role', { user: 'main', role: 'admin' })
    await tree.restartLower()
    await tree.until(async () =>
      expect(await listed('east')).toContainEqual(expect.objectContaining({ name: 'user.add' })),
    )
    expect(await add(boss, 'new', { idempotency_key: 'k' })).toMatchObject({ outcome: 'ok', detail: 'new added' })
    expect((await audited(tree.lower)).filter(({ action }) => action === 'execute')).toHaveLength(1)
  })

  it('that has not come after `deadline_ms` is `unknown`', async () => {
    isDeaf = true
    const result = await add(boss, 'new', { deadline_ms: 2_000 })
    expect(result.outcome).toBe('unknown')
    expect(users()).toContain('new')
    isDeaf = false
    expect(await add(boss, 'new', { deadline_ms: 2_000 })).toMatchObject({ outcome: 'failed' })
  })
})

it.each([
  ['deadline_ms', type.uint32, u32(0)],
  ['deadline_ms', type.uint32, u32(600_001)],
  ['deadline_ms', type.string, str('1000')],
  ['channel', type.uint32, u32(1)],
])('refuses %s that does not fit, here', async (...argument) => {
  const list = args(['user', type.string, str('new')], ['producer', type.string, str('east')], argument)
  expect(await boss.ask((seq) => frame(u32(EXECUTE), u32(seq), str('user.add'), list))).toMatchObject({
    status: status.INVALID_ARGUMENT,
  })
  expect(executes()).toEqual([])
})

it('controls of this producer take no `deadline_ms`', async () => {
  expect(await askFor(boss, 'user.add', { user: 'new', deadline_ms: 1000 })).toMatchObject({
    status: status.INVALID_ARGUMENT,
  })
})

it('is an exact path', async () => {
  for (const producer of ['*', 'e*', '', 'east/', 'east/x', '/east', 'n1'])
    expect(await askFor(boss, 'user.add', { user: 'new', producer })).toMatchObject({ status: status.NO_SUCH_CONTROL })
})

it('is judged here, with `producer` among the arguments', async () => {
  await done(boss, 'role.allow', { role: 'keeper', command: 'EXECUTE', object: 'user.list', where: 'producer=east' })
  await tree.upper.addUser('keeper', { role: 'keeper' })
  const keeper = await tree.upper.seat('keeper')
  expect(await tree.inTime(run(keeper, 'user.list', { producer: 'east' }))).toMatchObject({ outcome: 'ok' })
  expect(await askFor(keeper, 'user.list')).toMatchObject({ status: status.PERMISSION_DENIED })
  await done(boss, 'role.deny', { role: 'keeper', command: 'EXECUTE', object: 'user.list', where: 'producer=east' })
  expect(await askFor(keeper, 'user.list', { producer: 'east' })).toMatchObject({ status: status.PERMISSION_DENIED })
})

it('a dry run is judged here, and then made there, without a key', async () => {
  expect(await add(boss, 'new', { dry_run: 1 }).catch(() => undefined)).toBeUndefined()
  const list = args(
    ['user', type.string, str('new')],
    ['producer', type.string, str('east')],
    ['dry_run', type.boolean, u32(1)],
  )
  await boss.ok((seq) => frame(u32(EXECUTE), u32(seq), str('user.add'), list))
  expect(decoded(await tree.inTime(boss.value()))).toMatchObject({ outcome: 'dry-run' })
  const [sent = Buffer.alloc(0), ...more] = executes()
  const there = args(
    ['user', type.string, str('new')],
    ['dry_run', type.boolean, u32(1)],
    ['on_behalf_of', type.string, str('default/boss')],
  )
  expect(toHex(sent)).toBe(toHex(frame(u32(EXECUTE), u32(sent.readUInt32BE(8)), str('user.add'), there)))
  expect(more).toEqual([])
  expect(users()).not.toContain('new')
})

it('`producer.controls` has those below with the producer after the name, and by its name none of this one', async () => {
  const east = await listed('e*')
  expect(new Set(east.map(({ producer }) => producer))).toEqual(new Set(['east']))
  expect(Object.keys(east[0])).toEqual(['name', 'producer', 'description', 'parameters'])
  const names = east.map(({ name }) => name)
  expect(names).toEqual(names.toSorted())
  const parameters = east.find(({ name }) => name === 'user.add').parameters.map(({ name }: Json) => name)
  expect(parameters.slice(-2)).toEqual(['producer', 'deadline_ms'])
  expect(await listed('n1')).toEqual([])
})
