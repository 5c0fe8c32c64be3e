/** `board.*` and `producer.boards`: whose boards are seen and changed, and that no change is lost. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MAX_BOARDS, MAX_CHARTS_BYTES } from '../../../../server/kernel/accounts/boards.ts'
import { type Arguments, askFor, done, run } from '../../../support/administration.ts'
import { args, status, type, u32 } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

let producer: TestProducer
let ann: Seat
beforeEach(async () => {
  producer = await TestProducer.start({ config: { quota: { controlsPerMinute: 0 } } })
  await producer.addUser('ann')
  ann = await producer.seat('ann')
})
afterEach(() => producer.stop())

const save = (given: Arguments, of = ann): Promise<Json> => done(of, 'board.save', given)
const share = (board: number, version: number, shared: boolean): Promise<Json> =>
  ann.execute(
    'board.save',
    ['board', type.uint32, u32(board)],
    ['version', type.uint32, u32(version)],
    ['shared', type.boolean, u32(Number(shared))],
  )
const list = async (of = ann): Promise<Json[]> => decoded(await of.query('producer.boards'))
const whole = async (board: number, of = ann): Promise<Json> =>
  decoded(await of.query('producer.boards', args(['board', type.uint32, u32(board)])))[0]

describe('A board', () => {
  it('is kept under a name, changed by its version and deleted', async () => {
    expect(await save({ name: 'Night', charts: 'chart=a' })).toEqual({ board: 1, version: 1 })
    expect(await list()).toMatchObject([
      { board: 1, owner: 'ann', own: true, name: 'Night', shared: false, version: 1 },
    ])
    expect((await list())[0]).not.toHaveProperty('charts')
    expect(await whole(1)).toMatchObject({ name: 'Night', charts: 'chart=a' })
    expect(await save({ board: 1, version: 1, name: 'Day' })).toEqual({ board: 1, version: 2 })
    expect(await whole(1)).toMatchObject({ name: 'Day', charts: 'chart=a', version: 2 })
    await done(ann, 'board.delete', { board: 1, version: 2 })
    expect(await list()).toEqual([])
    expect(await save({ name: 'Day' })).toEqual({ board: 2, version: 1 })
  })

  it('is not changed by whoever has seen an older version', async () => {
    await save({ name: 'Night', charts: 'chart=a' })
    await save({ board: 1, version: 1, charts: 'chart=b' })
    const late = { outcome: 'failed', detail: expect.stringContaining('has version 2 now') }
    expect(await run(ann, 'board.save', { board: 1, version: 1, charts: 'chart=c' })).toMatchObject(late)
    expect(await run(ann, 'board.delete', { board: 1, version: 1 })).toMatchObject(late)
    expect(await whole(1)).toMatchObject({ charts: 'chart=b', version: 2 })
  })

  it('is seen by others of the tenant only while it is shared, and never changed by them', async () => {
    await producer.addUser('bob')
    await producer.addUser('eve', { tenant: 'north' })
    const [bob, eve] = [await producer.seat('bob'), await producer.seat('eve', 'north')]
    await save({ name: 'Night', charts: 'chart=a' })
    expect([await list(bob), await whole(1, bob)]).toEqual([[], undefined])
    expect(await share(1, 1, true)).toMatchObject({ outcome: 'ok' })
    expect(await list(bob)).toMatchObject([{ owner: 'ann', own: false, shared: true }])
    expect(await whole(1, bob)).toMatchObject({ charts: 'chart=a' })
    expect([await list(eve), await whole(1, eve)]).toEqual([[], undefined])
    const none = { outcome: 'failed', detail: 'you have no board 1' }
    expect(await run(bob, 'board.save', { board: 1, version: 2, name: 'Mine' })).toMatchObject(none)
    expect(await run(bob, 'board.delete', { board: 1, version: 2 })).toMatchObject(none)
    // A copy, and of the same name: names are those of one user.
    expect(await save({ name: 'Night', charts: 'chart=a' }, bob)).toEqual({ board: 2, version: 1 })
    await share(1, 2, false)
    expect(await list(bob)).toMatchObject([{ board: 2 }])
  })

  it('is there after a crash, and goes with its user', async () => {
    await producer.addUser('root', { role: 'admin' })
    await save({ name: 'Night', charts: 'chart=a' })
    await share(1, 1, true)
    producer = await producer.crash()
    await producer.addUser('bob')
    const [bob, root] = [await producer.seat('bob'), await producer.seat('root')]
    expect(await whole(1, bob)).toMatchObject({ owner: 'ann', charts: 'chart=a', version: 2 })
    await done(root, 'user.remove', { user: 'ann' })
    expect(await list(bob)).toEqual([])
  })
})

describe('Bounds', () => {
  it('are those of a user', async () => {
    for (let at = 1; at <= MAX_BOARDS; at++) await save({ name: `board ${at}` })
    expect(await run(ann, 'board.save', { name: 'one more' })).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('at most 100 boards'),
    })
    expect(await run(ann, 'board.save', { name: 'board 7' })).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('take another name'),
    })
    expect(await save({ board: 7, version: 1, name: 'board 7' })).toMatchObject({ version: 2 })
  })

  it.each([
    ['no name', {}],
    ['an empty name', { name: '' }],
    ['a name that is too long', { name: 'ä'.repeat(81) }],
    ['a name that cannot be shown', { name: 'a\n' }],
    ['a board without its version', { board: 1, name: 'a' }],
    ['charts that are too long', { name: 'a', charts: 'x'.repeat(MAX_CHARTS_BYTES + 1) }],
  ] as [string, Arguments][])('refuse %s', async (_, given) => {
    expect(await askFor(ann, 'board.save', given)).toMatchObject({ status: status.INVALID_ARGUMENT })
  })
})

it('changes are in the audit log, with a digest in place of the charts', async () => {
  await save({ name: 'Night', charts: 'chart=lengthy' })
  await producer.settle()
  const rows = await producer.store.audit(0, 1_000)
  const [row] = rows.filter(({ object, action }) => object === 'board.save' && action === 'execute')
  // printf %s chart=lengthy | sha256sum
  expect(JSON.parse(row?.args ?? '')).toEqual({ name: 'Night', charts: 'sha256:8fb2bd52cdcc9e03' })
  expect(JSON.stringify(rows)).not.toContain('lengthy')
})
