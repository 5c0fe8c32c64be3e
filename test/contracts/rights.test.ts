/** What every store has to do with rules, tokens, dials, executions, fences and places, over all of them. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, DialRow, ExecutionRow, RuleRow, TokenRow, UserRow } from '../../storage/store.ts'
import { frames } from './store-batch.ts'
import { implementations, type Subject } from './store-implementations.ts'

const user: UserRow = {
  id: 3,
  tenant: 'default',
  name: 'ada',
  role: 'operator',
  bcrypt: undefined,
  scram: undefined,
  loopbackOnly: false,
  created: 0,
}
const rule: RuleRow = {
  number: 5,
  role: 'operator',
  effect: 'allow',
  command: 'EXECUTE',
  object: 'exec.*',
  where: '{"host":"web*"}',
}
const token: TokenRow = {
  id: 9,
  user: 3,
  name: 'laptop',
  hash: frames(1, 32),
  scope: 'COLLECT host.*\nEXECUTE exec.*',
  made: 1_700_000_000_000.5,
  expires: 1_800_000_000_000,
}
const scram = { salt: frames(2, 16), iterations: 4096, storedKey: frames(3, 32), serverKey: frames(4, 32) }
const dial: DialRow = { channel: 1, scram, bearer: undefined }
const execution: ExecutionRow = {
  user: 3,
  control: 'exec.restart',
  key: 'k 1',
  digest: frames(5, 32),
  at: 1_700_000_000_000,
  result: frames(6, 40),
}

describe.each(implementations)('a store ($name) of rights', ({ make, stop: stopAll }) => {
  afterAll(stopAll)
  let subject: Subject
  beforeEach(async () => {
    subject = await make()
    await subject.open()
  })
  afterEach(() => subject.end())

  const write = (...changes: Change[]): Promise<void> => subject.write({ changes })

  test('rules come back in the order of their numbers, replaced and removed one by one', async () => {
    const second: RuleRow = { ...rule, number: 2, effect: 'deny', command: '*', where: '{}' }
    await write({ put: 'rule', row: rule }, { put: 'rule', row: { ...second, object: 'x' } })
    await write({ put: 'rule', row: second }, { put: 'rule', row: { ...rule, number: 7 } })
    await write({ remove: 'rule', number: 7 })
    const { rules, nextRule } = await subject.reopen()
    expect(rules).toEqual([second, rule])
    expect(nextRule).toBe(8)
  })

  test('the number of a rule that is gone is not given again', async () => {
    await write({ put: 'rule', row: rule })
    await write({ remove: 'rule', number: 5 })
    await subject.reopen()
    await write({ put: 'rule', row: { ...rule, number: 2 } })
    expect((await subject.reopen()).nextRule).toBe(6)
  })

  test('tokens come back as they were, with and without an end', async () => {
    const forever: TokenRow = { ...token, id: 4, scope: '', expires: undefined }
    await write({ put: 'token', row: token }, { put: 'token', row: forever })
    const { tokens, nextTokenId } = await subject.reopen()
    expect(plain(tokens)).toEqual(plain([forever, token]))
    expect(nextTokenId).toBe(10)
  })

  test('the id of a token that is revoked is not given again', async () => {
    await write({ put: 'token', row: token })
    await write({ remove: 'token', id: 9 })
    const { tokens, nextTokenId } = await subject.reopen()
    expect([tokens, nextTokenId]).toEqual([[], 10])
  })

  test('with a user go its tokens and executions, and nothing of another', async () => {
    await write(
      { put: 'user', row: user },
      { put: 'token', row: token },
      { put: 'token', row: { ...token, id: 10, user: 4 } },
      { put: 'execution', row: execution },
      { put: 'execution', row: { ...execution, user: 4 } },
    )
    await write({ remove: 'user', id: 3 })
    const { users, tokens, executions, nextTokenId } = await subject.reopen()
    expect([users, tokens.map(({ id }) => id), executions.map((row) => row.user)]).toEqual([[], [10], [4]])
    expect(nextTokenId).toBe(11)
  })

  test('boards come back as they were last, none is left of a user who is gone, and no id is given again', async () => {
    const board = { id: 3, user: 3, name: 'Night', charts: 'chart=a', shared: false, version: 1, saved: 1.5 }
    const changed = { ...board, name: 'Day', shared: true, version: 2 }
    await write(
      { put: 'user', row: user },
      { put: 'board', row: board },
      { put: 'board', row: changed },
      { put: 'board', row: { ...board, id: 4, user: 4 } },
      { put: 'board', row: { ...board, id: 9 } },
      { remove: 'board', id: 9 },
    )
    const before = await subject.reopen()
    expect([plain(before.boards), before.nextBoardId]).toEqual([plain([changed, { ...board, id: 4, user: 4 }]), 10])
    await write({ remove: 'user', id: 3 })
    expect((await subject.reopen()).boards.map(({ id }) => id)).toEqual([4])
  })

  test('a tenant is replaced with its quota, and removed', async () => {
    await write({ put: 'tenant', row: { name: 'b', quota: '{}' } }, { put: 'tenant', row: { name: 'a', quota: '{}' } })
    await write({ put: 'tenant', row: { name: 'b', quota: '{"channels":3}' } }, { remove: 'tenant', name: 'a' })
    expect((await subject.reopen()).tenants).toEqual([{ name: 'b', quota: '{"channels":3}' }])
  })

  test('what is needed to dial comes back, and goes with its channel', async () => {
    const plainDial: DialRow = { channel: 2, scram: undefined, bearer: undefined }
    await write(
      { put: 'dial', row: { ...dial, scram: { ...scram, iterations: 8192 } } },
      { put: 'dial', row: plainDial },
    )
    const bearing: DialRow = { channel: 3, scram: undefined, bearer: Uint8Array.from([116, 0xff]) }
    await write({ put: 'dial', row: dial })
    await write({ put: 'dial', row: bearing })
    expect(plain((await subject.reopen()).dials)).toEqual(plain([dial, plainDial, bearing]))
    const bare: DialRow = { ...bearing, bearer: undefined }
    await write({ put: 'dial', row: bare })
    expect(plain((await subject.reopen()).dials)).toEqual(plain([dial, plainDial, bare]))
    await write({ remove: 'channel', id: 1 }, { remove: 'channel', id: 3 })
    expect((await subject.reopen()).dials).toEqual([plainDial])
  })

  test('executions are distinguished by user, control and key, and go when they are old enough', async () => {
    const others: ExecutionRow[] = [
      { ...execution, user: 4, result: undefined },
      { ...execution, control: 'exec.stop', at: execution.at + 2 },
      { ...execution, key: 'K 1', at: execution.at - 1 },
    ]
    const all = [execution, ...others]
    for (const row of all) await write({ put: 'execution', row: { ...row, result: undefined } })
    for (const row of all) await write({ put: 'execution', row })
    const [first, second, third, fourth] = plain((await subject.reopen()).executions)
    expect([first, fourth]).toEqual(plain([others[2], others[1]]))
    expect([second, third]).toEqual(plain([execution, others[0]]))
    await write({ remove: 'execution', before: execution.at + 1 })
    expect(plain((await subject.reopen()).executions)).toEqual(plain([others[1]]))
  })

  test('fences are there or not', async () => {
    await write({ put: 'fence', row: { sensor: 'smon' } }, { put: 'fence', row: { sensor: 'host' } })
    await write({ put: 'fence', row: { sensor: 'smon' } }, { remove: 'fence', sensor: 'host' })
    expect((await subject.reopen()).fences).toEqual(['smon'])
  })

  test('a place is kept while its binding is, whichever way it is bound', async () => {
    const binding = { channel: 1, metric: 40, mode: 'subscribe', since: 1 } as const
    const place = { channel: 1, metric: 40, reached: 2 ** 52 }
    const other = { channel: 1, metric: 41, reached: 3 }
    await write({ put: 'binding', row: binding }, { put: 'place', row: { ...place, reached: 1 } })
    await write({ put: 'place', row: place }, { put: 'place', row: other })
    await write({ put: 'binding', row: { ...binding, mode: 'buffer' } })
    expect((await subject.reopen()).places).toEqual([place, other])
    await write({ remove: 'binding', channel: 1, metric: 40 })
    expect((await subject.reopen()).places).toEqual([other])
    await write({ remove: 'channel', id: 1 })
    expect((await subject.reopen()).places).toEqual([])
  })
})

/** Bytes of whatever class as arrays of numbers. */
function plain<T>(value: readonly T[]): unknown[] {
  return JSON.parse(JSON.stringify(value, (_, item) => (ArrayBuffer.isView(item) ? [...(item as Uint8Array)] : item)))
}
