/** Section 10: who may run what, what the audit log holds of it, `dry_run`, and keys under which a control runs once. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32, u64 } from '../../support/bytes.ts'
import { execTables } from '../../support/exec-tables.ts'
import { times } from '../../support/long.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Seat, ValueMessage } from '../../support/seat.ts'

const INVALID_ARGUMENT = 6
const NO_SUCH_CONTROL = 10
const PERMISSION_DENIED = 11
const BUSY = 13
const QUOTA_EXCEEDED = 16
const DAY_MS = 86_400_000

const EXEC = `
[[exec]]
name = "exec.say"
argv = ["echo", "{word}"]
[[exec.parameter]]
name = "word"
default = "nothing"
[[exec]]
name = "exec.other"
argv = ["echo"]
tenants = ["other"]
[[exec]]
name = "exec.once"
argv = ["sh", "-c", "while [ -e $LOCK ]; do sleep 0.01; done; cat >/dev/null"]
stdin = "{pin}"
environment = { LOCK = "/nonexistent" }
[[exec.parameter]]
name = "pin"
optional = true
secret = true
`

type Argument = readonly [string, number, Uint8Array]
const text = (name: string, value: string): Argument => [name, type.string, str(value)]
const key = (value: string): Argument => text('idempotency_key', value)
const dryRun: Argument = ['dry_run', type.boolean, u32(1)]

describe('EXECUTE', () => {
  let producer: TestProducer
  let root: Seat
  beforeEach(async () => {
    producer = await TestProducer.start({ config: { exec: execTables(EXEC) } })
    await producer.addUser('root', { role: 'admin' })
    await producer.addUser('op', { role: 'operator' })
    root = await producer.seat('root')
  })
  afterEach(() => producer.stop())

  const ask = (of: Seat, control: string, ...list: readonly Argument[]) =>
    of.ask((seq) => command.execute(seq, control, args(...list)))
  const allow = (object: string, where = '') =>
    root.execute(
      'role.allow',
      text('role', 'operator'),
      text('command', 'EXECUTE'),
      text('object', object),
      ...(where === '' ? [] : [text('where', where)]),
    )
  const users = (): string[] => producer.server.parts.producer.accounts.list().map(({ name }) => name)
  const remove = (user: string, ...more: readonly Argument[]) =>
    root.execute('user.remove', text('user', user), ...more)

  interface Recorded {
    readonly action: string
    readonly object: string
    readonly outcome: string
    readonly detail: string
    readonly actor: string
    readonly address: string
    readonly args: Json
  }
  /** The records of EXECUTEs, but of `role.allow`. */
  async function audited(): Promise<Recorded[]> {
    await producer.settle()
    const rows = await producer.store.audit(0, 1000)
    return rows
      .filter(({ action, object }) => !['auth', 'admin'].includes(action) && !object.startsWith('role.'))
      .map((row) => ({ ...row, args: JSON.parse(row.args) }))
  }
  const brief = async (): Promise<string[]> =>
    (await audited()).map(({ action, object, outcome }) => `${action} ${object} ${outcome}`)

  describe('rights', () => {
    it('nothing but channel.* without a rule: it is not shown, and as absent', async () => {
      const op = await producer.seat('op')
      const [denied, absent] = [await ask(op, 'exec.say'), await ask(op, 'exec.sai')]
      expect([denied.status, denied.detail]).toEqual([NO_SUCH_CONTROL, absent.detail.replace('exec.sai', 'exec.say')])
      expect((await op.execute('channel.configure', ['channel', type.uint32, u32(0)])).outcome).toBe('ok')
    })

    it('a rule allows it', async () => {
      await allow('exec.say')
      const op = await producer.seat('op')
      expect(await op.execute('exec.say', text('word', 'hi'))).toMatchObject({
        outcome: 'ok',
        value: { stdout: 'hi\n' },
      })
    })

    it('what is shown and not allowed with these arguments is PERMISSION_DENIED; a default counts as given', async () => {
      await allow('exec.say', 'word=h*')
      const op = await producer.seat('op')
      expect((await op.execute('exec.say', text('word', 'hi'))).outcome).toBe('ok')
      expect((await ask(op, 'exec.say', text('word', 'x'))).status).toBe(PERMISSION_DENIED)
      expect((await ask(op, 'exec.say')).status).toBe(PERMISSION_DENIED)
      await allow('exec.say', 'word=noth*')
      expect((await ask(op, 'exec.say')).status).toBe(0)
    })

    it('a control of other tenants is as absent, for the role admin too', async () => {
      expect((await ask(root, 'exec.other')).status).toBe(NO_SUCH_CONTROL)
      await producer.addUser('chief', { tenant: 'other', role: 'admin' })
      const chief = await producer.seat('chief', 'other')
      expect((await chief.execute('exec.other')).outcome).toBe('ok')
      expect((await ask(chief, 'exec.say')).status).toBe(NO_SUCH_CONTROL)
    })

    it('name, rights, arguments are judged in this order', async () => {
      await allow('exec.say', 'word=h*')
      const op = await producer.seat('op')
      expect((await ask(op, 'exec.sai', text('word', '-'))).status).toBe(NO_SUCH_CONTROL)
      expect((await ask(op, 'exec.say', text('word', '-'))).status).toBe(PERMISSION_DENIED)
      expect((await ask(op, 'exec.say', text('word', 'h\n'))).status).toBe(INVALID_ARGUMENT)
    })

    it('a second one beside a control that may run once at a time is BUSY', async () => {
      const [first, second] = ['1', '2'].map((pin) =>
        root.send((seq) => command.execute(seq, 'exec.once', args(text('pin', pin)))),
      ) as [number, number]
      const refused = await root.response(second)
      expect([(await root.response(first)).status, refused.status]).toEqual([0, BUSY])
      expect(refused.detail).toBe('exec.once is already running: try again later')
      expect(decoded(await root.value()).outcome).toBe('ok')
      expect((await root.execute('exec.once')).outcome).toBe('ok')
    })

    it('what runs for one tenant keeps no other one out', async () => {
      await producer.stop()
      const table = EXEC.slice(EXEC.lastIndexOf('[[exec]]')).replace('stdin', 'tenants = ["default", "other"]\nstdin')
      producer = await TestProducer.start({ config: { exec: execTables(table) } })
      await producer.addUser('root', { role: 'admin' })
      await producer.addUser('chief', { tenant: 'other', role: 'admin' })
      root = await producer.seat('root')
      const chief = await producer.seat('chief', 'other')
      producer.store.manual = true
      const seqs = [root, root, chief].map((seat) => seat.send((seq) => command.execute(seq, 'exec.once', args()))) as [
        number,
        number,
        number,
      ]
      await producer.settle()
      producer.store.manual = false
      producer.store.complete()
      expect((await root.response(seqs[1])).status).toBe(BUSY)
      expect([(await root.response(seqs[0])).status, (await chief.response(seqs[2])).status]).toEqual([0, 0])
    })

    it('the controls of a tenant in a minute are counted', async () => {
      await producer.stop()
      producer = await TestProducer.start({ config: { quota: { controlsPerMinute: 2 } } })
      const seat = await producer.seat()
      const configure = () => ask(seat, 'channel.configure', ['channel', type.uint32, u32(0)])
      expect([(await configure()).status, (await configure()).status, (await configure()).status]).toEqual([
        0,
        0,
        QUOTA_EXCEEDED,
      ])
      producer.clock.advance(60_001)
      expect((await configure()).status).toBe(0)
    })
  })

  it('the log warns of programs that can read the data directory', () => {
    const warnings = producer.logged.filter((line) => line.includes('can read the data directory'))
    expect(warnings.map((line) => JSON.parse(line).controls)).toEqual([['exec.say', 'exec.other', 'exec.once']])
  })

  describe('the audit log', () => {
    it('has a record before it starts and one with its outcome, with who, from where, and what', async () => {
      await root.execute('exec.say', text('word', 'hi'))
      const [begun, ended] = await audited()
      const whoAndWhat = { actor: 'root', address: '127.0.0.1', object: 'exec.say' }
      expect(begun).toMatchObject({ ...whoAndWhat, action: 'execute', outcome: 'started', args: { word: 'hi' } })
      expect(ended).toMatchObject({ ...whoAndWhat, action: 'outcome', outcome: 'ok', detail: begun?.detail })
      expect(begun?.detail).toMatch(/^result \d+$/)
    })

    it('is stored before anything runs', async () => {
      await producer.settle()
      producer.store.manual = true
      const seq = root.send((seq) => command.execute(seq, 'user.remove', args(text('user', 'op'))))
      await producer.settle()
      expect([users().includes('op'), await brief()]).toEqual([true, []])
      producer.store.complete()
      expect((await root.response(seq)).status).toBe(0)
      expect(await brief()).toEqual(['execute user.remove started'])
    })

    it('holds no secret: neither those with such a name nor those declared so', async () => {
      await root.execute('exec.once', text('pin', 'canary-1'))
      await root.execute('user.passwd', text('user', 'op'), text('password', 'canary-2'))
      await ask(root, 'user.passwd', text('user', 'op'), text('passwort', 'canary-3'))
      const rows = JSON.stringify(await audited())
      expect(rows).toContain('***')
      expect(rows).not.toContain('canary')
    })

    it('has those that were refused, but not without bound', async () => {
      await ask(root, 'exec.sai', text('word', 'canary'))
      await ask(root, 'exec.say', text('word', '-x'))
      expect(await audited()).toMatchObject([
        { action: 'refused', object: 'exec.sai', outcome: 'NO_SUCH_CONTROL', args: {} },
        { action: 'refused', object: 'exec.say', outcome: 'INVALID_ARGUMENT', args: { word: '-x' } },
      ])
      for (let i = 0; i < 100; i++) await ask(root, 'exec.sai')
      expect((await audited()).length).toBe(60)
      producer.clock.advance(60_000)
      expect((await audited()).slice(60)).toMatchObject([
        { action: 'refused', object: 'exec.sai', outcome: 'NO_SUCH_CONTROL', args: { count: 42 } },
      ])
    })

    it('has it on a channel with durable = false too, and it starts when that is stored', async () => {
      await root.setChannel(await root.defChannel(['durable', type.boolean, u32(0)]))
      await producer.settle()
      producer.store.manual = true
      root.send((seq) => command.execute(seq, 'user.remove', args(text('user', 'op'))))
      await producer.settle()
      expect(users()).toContain('op')
      producer.store.complete()
      await producer.settle()
      expect(users()).not.toContain('op')
    })

    it.each([1, 0])('has the outcome `unknown` of what ended with the process (durable = %s)', async (durable) => {
      await root.setChannel(await root.defChannel(['durable', type.boolean, u32(durable)]))
      await root.ok((seq) =>
        command.execute(seq, 'user.passwd', args(text('user', 'op'), text('password', 'x y z w v'))),
      )
      producer = await producer.crash()
      expect(await brief()).toEqual(['execute user.passwd started', 'outcome user.passwd unknown'])
      producer = await producer.crash()
      expect(await brief()).toHaveLength(2)
    })

    it('has what a control that is refused late has come to', async () => {
      await root.follow('test.a')
      producer.emit(1)
      await root.value()
      const refused = await ask(
        root,
        'channel.configure',
        ['channel', type.uint32, u32(0)],
        ['durable', type.boolean, u32(0)],
      )
      expect(refused.status).toBe(BUSY)
      expect(await brief()).toEqual(['refused channel.configure BUSY'])
    })
  })

  describe('records that would fill it', () => {
    const configure = (of: Seat, ...more: readonly Argument[]) =>
      of.execute('channel.configure', ['channel', type.uint32, u32(0)], ...more)

    it('lists, explanations and what users do to their own channels leave none', async () => {
      await allow('*')
      const op = await producer.seat('op')
      for (const seat of [root, op]) {
        for (const control of ['user.list', 'token.list', 'tenant.list']) await seat.execute(control, key('once'))
        await seat.execute('user.list', dryRun)
        await seat.execute('role.explain', text('user', 'op'), text('command', 'COLLECT'), text('object', 'x'))
        await configure(seat, ['window', type.uint32, u32(7)])
        await seat.execute('channel.purge', ['channel', type.uint32, u32(0)])
      }
      await root.execute('role.list')
      expect(await brief()).toEqual([])
      await op.execute('exec.say')
      expect(await brief()).toEqual(['execute exec.say started', 'outcome exec.say ok'])
    })

    it('dry runs and repeated keys are recorded some times a minute, and then counted', async () => {
      await allow('exec.say')
      const op = await producer.seat('op')
      await op.execute('exec.say', key('k'))
      for (let i = 0; i < 80; i++) {
        await op.execute('exec.say', key('k'))
        await op.execute('exec.say', dryRun)
      }
      expect(await audited()).toHaveLength(2 + 60 + 60)
      producer.clock.advance(60_000)
      const counted = (await audited()).slice(122)
      expect(counted).toMatchObject([
        { action: 'repeat', object: 'exec.say', args: { count: 20 } },
        { action: 'dry-run', object: 'exec.say', args: { count: 20 } },
      ])
    })

    it('a tenant has so many bytes a day, which are not those of admins', async () => {
      await producer.stop()
      const config = { exec: execTables(EXEC), quota: { auditBytesPerDay: 2_000 } }
      producer = await TestProducer.start({ config })
      await producer.addUser('root', { role: 'admin' })
      await producer.addUser('op', { role: 'operator' })
      root = await producer.seat('root')
      await allow('exec.say')
      for (let i = 0; i < 20; i++) await root.execute('exec.say')
      const op = await producer.seat('op')
      const statuses: number[] = []
      for (let i = 0; i < 20; i++) {
        statuses.push((await ask(op, 'exec.say')).status)
        if (statuses.at(-1) === 0) await op.value()
      }
      const done = statuses.indexOf(QUOTA_EXCEEDED)
      expect([done > 0, done < 16, statuses.slice(done).every((one) => one === QUOTA_EXCEEDED)]).toEqual([
        true,
        true,
        true,
      ])
      const records = (await audited()).length
      expect((await ask(op, 'exec.sai')).status).toBe(NO_SUCH_CONTROL)
      expect((await op.execute('exec.say', dryRun)).outcome).toBe('dry-run')
      expect((await configure(op)).outcome).toBe('ok')
      expect(await audited()).toHaveLength(records)
      expect((await root.execute('exec.say')).outcome).toBe('ok')
      producer.clock.leap(DAY_MS)
      expect((await ask(op, 'exec.say')).status).toBe(0)
    })
  })

  describe('dry_run', () => {
    it('judges in full and runs nothing', async () => {
      const result = await remove('op', dryRun)
      expect(result).toEqual({ outcome: 'dry-run', detail: 'checked only: nothing ran', value: null })
      expect(users()).toContain('op')
      expect((await ask(root, 'exec.say', text('word', '-x'), dryRun)).status).toBe(INVALID_ARGUMENT)
      expect(await brief()).toEqual(['dry-run user.remove dry-run', 'refused exec.say INVALID_ARGUMENT'])
    })

    it('of a channel control changes nothing', async () => {
      await root.execute('channel.configure', ['channel', type.uint32, u32(0)], ['window', type.uint32, u32(7)], dryRun)
      expect(producer.server.parts.producer.registry.byId(root.channel)?.row.window).not.toBe(7)
    })

    it('stores nothing under its key', async () => {
      expect((await remove('op', key('k'), dryRun)).outcome).toBe('dry-run')
      expect((await remove('op', key('k'))).outcome).toBe('ok')
    })
  })

  describe('an idempotency_key', () => {
    it('runs once, and gives the same result under a new id', async () => {
      const first = await root.ok((seq) => command.execute(seq, 'user.remove', args(text('user', 'op'), key('k'))))
      const value = await root.value()
      expect(decoded(value).outcome).toBe('ok')
      await producer.addUser('op')
      const second = await root.ok((seq) => command.execute(seq, 'user.remove', args(text('user', 'op'), key('k'))))
      const again = await root.value()
      expect(second).not.toBe(first)
      expect([again.metric, again.value]).toEqual([second, value.value])
      expect(users()).toContain('op')
      expect(await brief()).toEqual([
        'execute user.remove started',
        'outcome user.remove ok',
        'repeat user.remove repeat',
      ])
      expect((await remove('op')).outcome).toBe('ok')
    })

    it('is another one for another control or another identity', async () => {
      await root.execute('user.list', key('k'))
      expect((await remove('op', key('k'))).detail).toBe('op removed')
      await producer.addUser('second', { role: 'admin' })
      const second = await producer.seat('second')
      const result = await second.execute('user.remove', text('user', 'op'), key('k'))
      expect(result).toMatchObject({ outcome: 'failed' })
    })

    it('with other arguments is INVALID_ARGUMENT, in whatever order they stand', async () => {
      await remove('op', key('k'), text('tenant', 'default'))
      expect((await remove('op', text('tenant', 'default'), key('k'))).outcome).toBe('ok')
      for (const list of [[text('user', 'root')], [text('user', 'op')]]) {
        expect((await ask(root, 'user.remove', ...list, key('k'))).status).toBe(INVALID_ARGUMENT)
      }
    })

    it('with another secret too, as long as the process lives; nothing of the secret is stored', async () => {
      const passwd = (password: string) =>
        ask(root, 'user.passwd', text('user', 'op'), text('password', password), key('k'))
      expect([(await passwd('one two three')).status, (await passwd('two three one')).status]).toEqual([
        0,
        INVALID_ARGUMENT,
      ])
      expect(decoded(await root.value()).outcome).toBe('ok')
      await producer.settle()
      producer = await producer.crash()
      root = await producer.seat('root')
      expect((await passwd('two three one')).status).toBe(0)
    })

    it('waits while the first is running, and gets the same', async () => {
      const list = args(text('user', 'op'), text('password', 'one two three'), key('k'))
      const ids: number[] = []
      for (let i = 0; i < 3; i++) ids.push(await root.ok((seq) => command.execute(seq, 'user.passwd', list)))
      const values = await root.values(3)
      expect(values.map(({ metric }) => metric)).toEqual(ids)
      expect(new Set(values.map(({ value }) => value.toString('hex'))).size).toBe(1)
      expect((await brief()).filter((line) => line.startsWith('execute'))).toHaveLength(1)
    })

    it('holds over a crash: done is done, and what nobody knows stays unknown and is not run again', async () => {
      await remove('op', key('done'))
      const list = args(text('user', 'late'), text('password', 'one two three'), key('open'))
      await root.ok((seq) => command.execute(seq, 'user.add', list))
      for (let i = 0; i < 2; i++) {
        producer = await producer.crash()
        root = await producer.seat('root')
        expect((await remove('op', key('done'))).outcome).toBe('ok')
        const late = await root.ok((seq) => command.execute(seq, 'user.add', list))
        const value = await resultOf(late)
        expect(value.outcome).toBe('unknown')
        expect(users()).not.toContain('late')
      }
    })

    it('is kept for 24 hours', async () => {
      await remove('op', key('k'))
      await producer.addUser('op')
      producer.clock.leap(DAY_MS - 1000)
      expect((await remove('op', key('k'))).outcome).toBe('ok')
      expect(users()).toContain('op')
      producer.clock.leap(DAY_MS)
      await producer.settle()
      expect((await remove('op', key('k'))).outcome).toBe('ok')
      expect(users()).not.toContain('op')
    })

    it.each([
      ['empty', ''],
      ['longer than 128 bytes', 'é'.repeat(65)],
      ['with a control character', 'a\0b'],
    ])('%s is INVALID_ARGUMENT', async (_, value) => {
      expect((await ask(root, 'user.list', key(value))).status).toBe(INVALID_ARGUMENT)
    })

    it('of a control that acts before the response counts too, and is free again if it was refused', async () => {
      const purge = () =>
        root.execute('channel.purge', ['channel', type.uint32, u32(0)], ['through', type.uint64, u64(1e9)], key('k'))
      expect((await purge()).detail).toBe('0 values dropped')
      await root.follow('test.a')
      producer.emit(1)
      expect((await purge()).detail).toBe('0 values dropped')
      expect((await root.ledger()).dropped.purged).toBe(0)
    })

    it('is not kept without bound', async () => {
      // Most of them come back from the store; in the long form few do, since a channel may have 10,000 results that are not committed.
      const { accounts, journal, host } = producer.server.parts.producer
      const user = accounts.list().find(({ name }) => name === 'root')!.id
      const kept = { user, control: 'user.list', digest: new Uint8Array(32), at: host.age(), result: new Uint8Array(8) }
      const before = times({ short: 9_500, long: 500 })
      for (let i = 0; i < before; i++) journal.change({ put: 'execution', row: { ...kept, key: `k${i}` } })
      await producer.settle()
      producer = await producer.crash()
      root = await producer.seat('root')
      // So many at once that it is not BUSY.
      for (let i = before; i < 10_000; i += 500) {
        for (let j = i; j < i + 499; j++) root.send((seq) => command.execute(seq, 'user.list', args(key(`k${j}`))))
        await root.execute('user.list', key(`k${i + 499}`))
      }
      const last = await ask(root, 'user.list', key('one more'))
      expect([last.status, last.detail]).toEqual([QUOTA_EXCEEDED, expect.stringContaining('10000 of your keys')])
      expect((await ask(root, 'user.list', key('k9999'))).status).toBe(0)
      expect((await ask(root, 'user.list')).status).toBe(0)
    })
  })

  async function resultOf(id: number): Promise<Json> {
    for (;;) {
      const value: ValueMessage = await root.value()
      if (value.metric === id) return decoded(value)
    }
  }
})
