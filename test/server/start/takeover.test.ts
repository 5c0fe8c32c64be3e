/** A database that another node of a cluster takes over, with files and a machine of its own: what goes on, and what ends. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { ScramClient } from '../../../auth/scram/client.ts'
import { loadConfig } from '../../../server/start/config.ts'
import { done, run } from '../../support/administration.ts'
import { args, command, status, str, type, u32 } from '../../support/bytes.ts'
import { eventually } from '../../support/eventually.ts'
import { execTables } from '../../support/exec-tables.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import { numberOf, type Seat } from '../../support/seat.ts'

const no = u32(0)
const host = (name: string) => args(['host', type.string, str(name)])

let producer: TestProducer
let seat: Seat
/** The first channel of the test. */
let channel: number
afterEach(() => producer.stop())

async function resume(channel: number): Promise<Seat> {
  const next = await producer.seat()
  await next.setChannel(channel)
  return next
}

async function unread(of: Seat): Promise<string[]> {
  await producer.settle()
  return of
    .rest()
    .filter(({ kind }) => kind === 'value' || kind === 'gap')
    .map(({ kind }) => kind)
}

describe('a channel with durable = false', () => {
  const notDurable = ['durable', type.boolean, no] as const

  beforeEach(async () => {
    producer = await TestProducer.start({ node: 'n1' })
    seat = await producer.seat()
  })

  it.each([
    ['defined', []],
    ['named', [['name', type.string, str('screen')] as const]],
  ])('that was %s comes back empty, with its bindings', async (_, name) => {
    channel = await seat.defChannel(notDurable, ...name)
    const subscribed = await seat.follow('test.a', channel)
    const buffered = await seat.hoard('test.b', channel)
    producer.emit(1)
    producer.emit(1, 'test.b')
    await producer.settle()
    producer = await producer.takeOver('n2')
    const next = await producer.seat()
    if (name.length > 0) expect(await next.defChannel(notDurable, ...name)).toBe(channel)
    await next.setChannel(channel)
    expect(await unread(next)).toEqual([])
    expect(await next.ledger()).toMatchObject({ durable: false, queued: 0, in_flight: 0, accepted: 0 })
    producer.emit(2)
    producer.emit(3, 'test.b')
    const value = await next.value()
    expect([value.metric, value.transaction, numberOf(value)]).toEqual([subscribed, 0, 2])
    await next.ok((seq) => command.get(seq, buffered))
    expect(numberOf(await next.value())).toBe(3)
  })

  it('that was neither is gone, with the ids that were bound on it alone', async () => {
    await seat.execute('channel.configure', ['channel', type.uint32, no], notDurable)
    const kept = await seat.defChannel()
    const both = await seat.follow('test.a', kept)
    await seat.ok((seq) => command.subscribe(seq, both))
    const alone = await seat.follow('test.b')
    producer = await producer.takeOver('n2')
    const next = await producer.seat()
    const answers = await Promise.all([
      next.ask((seq) => command.setChannel(seq, seat.channel)),
      next.ask((seq) => command.subscribe(seq, alone)),
      next.ask((seq) => command.setChannel(seq, kept)),
      next.ask((seq) => command.subscribe(seq, both)),
    ])
    expect(answers.map((answer) => answer.status)).toEqual([status.NO_SUCH_CHANNEL, status.NO_SUCH_ID, 0, 0])
    producer.emit(5)
    expect(await next.value()).toMatchObject({ metric: both })
  })

  it('on which a result was to come, gets none: only the audit log has the outcome', async () => {
    await producer.addUser('root', { role: 'admin' })
    const root = await producer.seat('root')
    const given = await root.defChannel(notDurable)
    await root.setChannel(given)
    const list = args(['user', type.string, str('late')], ['password', type.string, str('one two three')])
    await root.ok((seq) => command.execute(seq, 'user.add', list))
    producer = await producer.takeOver('n2')
    const next = await producer.seat('root')
    await next.setChannel(given)
    expect(await unread(next)).toEqual([])
    const last = (await producer.store.audit(0, 1_000)).filter(({ object }) => object === 'user.add').at(-1)
    expect([last?.action, last?.outcome]).toEqual(['outcome', 'unknown'])
  })
})

it('ids that are bound nowhere, and QUERYs that are not answered, end', async () => {
  producer = await TestProducer.start({ node: 'n1' })
  seat = await producer.seat()
  const unbound = await seat.collect('test.a')
  await seat.ok((seq) => command.query(seq, 'slow.value'))
  producer = await producer.takeOver('n2')
  const next = await producer.seat()
  expect((await next.ask((seq) => command.subscribe(seq, unbound))).status).toBe(status.NO_SUCH_ID)
  expect(producer.slow.asked).toEqual([])
  expect(await unread(next)).toEqual([])
})

describe('a metric of the host', () => {
  const argumentsOf = async (of: Seat): Promise<Json> => {
    const bindings = decoded(await of.query('producer.bindings'))
    return Object.fromEntries(bindings.map((one: Json) => [one.name, one.arguments]))
  }
  async function follow(metric: string, list?: Uint8Array): Promise<number> {
    const id = await seat.collect(metric, list)
    await seat.ok((seq) => command.subscribe(seq, id))
    return id
  }

  it('that is COLLECTed without a host is that of the node that leads then, whoever leads later', async () => {
    producer = await TestProducer.start({ node: 'n1' })
    seat = await producer.seat()
    channel = seat.channel
    const exact = await follow('host.load.one')
    const pattern = await follow('host.load.*')
    const mixed = await follow('*.load.one')
    expect(await argumentsOf(seat)).toEqual({
      'host.load.one': { host: 'n1' },
      'host.load.*': { host: 'n1' },
      '*.load.one': {},
    })
    const bound = new Set<number>()
    for (const value of await seat.values(4)) bound.add(value.metric)
    expect(bound).toContain(exact)
    expect(bound).toContain(pattern)

    producer = await producer.takeOver('n2')
    seat = await resume(channel)
    expect(await argumentsOf(seat)).toEqual({
      'host.load.one': { host: 'n1' },
      'host.load.*': { host: 'n1' },
      '*.load.one': {},
    })
    await producer.settle()
    seat.rest()
    producer.clock.advance(3_000)
    await producer.settle()
    const values = seat.rest().flatMap((message) => (message.kind === 'value' ? [message] : []))
    expect(new Set(values.map(({ metric }) => metric))).toEqual(new Set([mixed]))
    const hosts = values.map((value) => decoded(value)).filter(({ name }) => String(name).startsWith('host.'))
    expect(hosts.length).toBeGreaterThan(0)
    expect(new Set(hosts.map((record) => record.host))).toEqual(new Set(['n2']))
    expect(producer.logged.filter((line) => line.includes('is not there')).join()).toContain('not on host n1')
    // An answer is VOID, and a new id is of the node that leads now.
    expect((await seat.ask((seq) => command.get(seq, exact))).status).toBe(0)
    expect((await seat.value()).type).toBe(type.void)
    expect((await seat.ask((seq) => command.collect(seq, 'host.load.one', host('n1')))).status).toBe(
      status.INVALID_ARGUMENT,
    )
    await follow('host.load.five')
    expect(await argumentsOf(seat)).toMatchObject({ 'host.load.five': { host: 'n2' } })

    producer = await producer.takeOver('n1')
    seat = await resume(channel)
    await producer.settle()
    seat.rest()
    producer.clock.advance(1_000)
    await producer.settle()
    const again = seat.rest().flatMap((message) => (message.kind === 'value' ? [message.metric] : []))
    expect(new Set(again)).toEqual(new Set([exact, pattern, mixed]))
  })

  it('that was bound before the server was a node of a cluster is that of the first node', async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
    channel = seat.channel
    await follow('host.load.one')
    expect(await argumentsOf(seat)).toEqual({ 'host.load.one': {} })
    for (const node of ['n1', 'n2']) {
      producer = await producer.takeOver(node)
      seat = await resume(channel)
      expect(await argumentsOf(seat)).toEqual({ 'host.load.one': { host: 'n1' } })
    }
  })

  it('is left alone without a cluster', async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
    channel = seat.channel
    await follow('host.load.one')
    await follow('*.load.one')
    producer = await producer.crash()
    seat = await resume(channel)
    expect(await argumentsOf(seat)).toEqual({ 'host.load.one': {}, '*.load.one': {} })
    const records = (await seat.values(3)).map((value) => decoded(value)).filter((record) => record?.name !== undefined)
    expect(records.filter((record) => record.host !== undefined && record.name.startsWith('host.'))).toEqual([])
  })
})

describe('a control', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'cinnabar-takeover-'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  it('that runs at the takeover ends as `unknown` and is not run again, whoever asks for it by its key', async () => {
    const [ran, end] = [join(directory, 'ran'), join(directory, 'end')]
    const exec = execTables(`
      [[exec]]
      name = "exec.once"
      argv = ["sh", "-c", "echo x >>$RAN; while [ ! -e $END ]; do sleep 0.02; done"]
      environment = { RAN = ${JSON.stringify(ran)}, END = ${JSON.stringify(end)} }
      anywhere = true
      max_running = 8
    `)
    producer = await TestProducer.start({ node: 'n1', config: { exec } })
    await producer.addUser('root', { role: 'admin' })
    seat = await producer.seat('root')
    channel = await seat.defChannel()
    await seat.setChannel(channel)
    const keyed = args(['idempotency_key', type.string, str('k')])
    const ids = [
      await seat.ok((seq) => command.execute(seq, 'exec.once', keyed)),
      await seat.ok((seq) => command.execute(seq, 'exec.once')),
    ]
    const lines = () => (existsSync(ran) ? readFileSync(ran, 'utf8').split('\n').length - 1 : 0)
    await eventually(() => expect(lines()).toBe(2))
    const old = producer
    try {
      for (const node of ['n2', 'n3']) {
        producer = await producer.takeOver(node)
        seat = await producer.seat('root')
        await seat.setChannel(channel)
        const results = await seat.values(2)
        expect(new Set(results.map(({ metric }) => metric))).toEqual(new Set(ids))
        expect(results.map((result) => decoded(result).outcome)).toEqual(['unknown', 'unknown'])
        const other = await producer.seat('root')
        expect(await run(other, 'exec.once', { idempotency_key: 'k' })).toMatchObject({ outcome: 'unknown' })
        expect(lines()).toBe(2)
      }
      const records = await producer.store.audit(0, 1_000)
      const outcomes = records.filter(({ action, object }) => action === 'outcome' && object === 'exec.once')
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown'])
    } finally {
      await old.server.parts.producer.executor.stop()
    }
  })

  it('of the users: the command line’s own of this node stays, those of others may be removed', async () => {
    producer = await TestProducer.start({ node: 'n1' })
    producer = await producer.takeOver('n2')
    await producer.addUser('root', { role: 'admin' })
    seat = await producer.seat('root')
    expect((await done(seat, 'user.list')).map(({ user }: Json) => user)).toEqual([
      'admin',
      'local',
      'local@n1',
      'local@n2',
      'root',
    ])
    expect(await run(seat, 'user.remove', { user: 'local@n2' })).toMatchObject({ outcome: 'failed' })
    await done(seat, 'user.remove', { user: 'local@n1' })
    const refused = await seat.ask((seq) =>
      command.execute(seq, 'user.add', args(['user', type.string, str('local@n9')])),
    )
    expect([refused.status, refused.detail]).toEqual([status.INVALID_ARGUMENT, expect.stringContaining('local@')])
    producer = await producer.takeOver('n1')
    expect(producer.server.parts.producer.accounts.find('default', 'local@n1')).toBeDefined()
  })
})

describe('the command line’s own user', () => {
  /** The secret file of the node that leads: the secret, and whose it is. */
  const secretFile = (): readonly [secret: string, user: string] => {
    const [secret = '', user = ''] = readFileSync(join(producer.dataDir, 'admin.secret'), 'utf8').split('\n')
    return [secret, user]
  }
  async function logIn(password: string, identity: string, peer?: Partial<AuthPeer>): Promise<number> {
    const raw = producer.connect(peer)
    const scram = new ScramClient({ identity, password })
    raw.send(command.auth(1, 'scram-sha-256', scram.first()))
    raw.send(command.auth(2, '', await scram.final((await raw.until('auth')).data)))
    const proven = await raw.response(2)
    if (proven.status !== status.AUTH_NEEDED) return proven.status
    raw.send(command.auth(3, '', new Uint8Array(0)))
    return (await raw.response(3)).status
  }

  it('of each node logs in with the secret of its node, before and after takeovers, over loopback only', async () => {
    producer = await TestProducer.start({ node: 'n1' })
    const first = secretFile()
    producer = await producer.takeOver('n2')
    const second = secretFile()
    expect([first[1], second[1]]).toEqual(['local@n1', 'local@n2'])
    producer = await producer.takeOver('n1')
    expect(secretFile()).toEqual(first)
    expect([await logIn(...first), await logIn(...second)]).toEqual([0, 0])
    const elsewhere = { address: '192.0.2.1', loopback: false, encrypted: true }
    expect(await logIn(...first, elsewhere)).toBe(status.AUTH_FAILED)
    expect(await logIn(second[0], first[1])).toBe(status.AUTH_FAILED)
  })
})

it('an agent of a broker is the same one at another node, at its next start', async () => {
  const toml = '[[qmf]]\nname = "b1"\nurl = "amqp://127.0.0.1:1"\nagent = true'
  const { qmf } = loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(toml) })
  producer = await TestProducer.start({ node: 'n1', config: { qmf } })
  const rows = []
  for (const node of ['n2', 'n1', 'n3']) {
    producer = await producer.takeOver(node)
    rows.push(producer.server.parts.recovered.qmfAgent)
  }
  expect(rows.map((row) => row?.boot)).toEqual([1, 2, 3])
  expect(new Set(rows.map((row) => row?.systemId)).size).toBe(1)
})
