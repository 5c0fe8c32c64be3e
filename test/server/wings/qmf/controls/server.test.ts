/** Controls of brokers in a whole server: rules, keys and the audit log see on what they run, and no secrets. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FieldTable } from '../../../../../protocol/amqp/field-table.ts'
import { QmfType, type TableSchema } from '../../../../../protocol/qmf/types.ts'
import { args, command, status, str, type, u32 } from '../../../../support/bytes.ts'
import { TestProducer } from '../../../../support/producer.ts'
import type { Received } from '../../../../support/raw-peer.ts'
import type { Seat } from '../../../../support/seat.ts'
import { Fleet, recorded } from './fixture.ts'

const PACKAGE = 'qmf.org.apache.qpid.broker'
const [ECHO, CREATE, CONNECT, REROUTE] = ['broker.echo', 'broker.create', 'broker.connect', 'queue.reroute'].map(
  (name) => `${PACKAGE}.${name}`,
) as [string, string, string, string]
const [broker, queue] = ['broker', 'queue'].map(recorded) as [TableSchema, TableSchema]
type Response = Extract<Received, { kind: 'response' }>
type List = readonly (readonly [name: string, type: number, value: Uint8Array])[]

let fleet: Fleet
let producer: TestProducer
let root: Seat

beforeEach(async () => {
  fleet = new Fleet('east')
  producer = await TestProducer.start()
  const { hub, producer: parts } = producer.server.parts
  hub.add(fleet.sensor)
  parts.executor.add([], [fleet.controls])
  up()
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
})
afterEach(() => producer.stop())

function up(): void {
  fleet.connect('east', broker, queue)
  fleet.object('east', broker, '0-0-1-0-2', 'amqp-broker')
  fleet.object('east', queue, '0-1-1-0-10', 'orders')
  fleet.object('east', queue, '0-1-1-0-11', 'bills')
}

const text = (name: string, value: string) => [name, type.string, str(value)] as const
const echo: List = [['sequence', type.uint32, u32(1)], text('body', 'hi')]
const reroute = (...more: List): List => [
  ['request', type.uint32, u32(0)],
  ['useAltExchange', type.boolean, u32(1)],
  text('exchange', ''),
  text('filter', '{}'),
  ...more,
]

function ask(seat: Seat, control: string, list: List): Promise<Response> {
  return seat.ask((seq) => command.execute(seq, control, args(...list)))
}

/** What the audit log has of a control, as JSON. */
async function audited(control: string): Promise<string> {
  const records = await producer.store.audit(0, Number.POSITIVE_INFINITY)
  return records
    .map((record) => JSON.stringify(record))
    .filter((one) => one.includes(control))
    .join('\n')
}

describe('a key', () => {
  const keyed: List = [...echo, text('idempotency_key', 'k1')]

  it('gives the stored result also while the broker is away, and runs once', async () => {
    fleet.answer = undefined
    const result = await root.execute(ECHO, ...keyed)
    expect(result).toMatchObject({ outcome: 'unknown' })
    fleet.sensor.broker('east')?.down('it closed')
    expect(await root.execute(ECHO, ...keyed)).toEqual(result)
    up()
    expect(await root.execute(ECHO, ...keyed)).toEqual(result)
    expect(fleet.calls).toHaveLength(1)
  })

  it('does so when what was named by its id is gone, as after a method that deletes', async () => {
    const list = reroute(text('object', '0-1-1-0-11'), text('idempotency_key', 'k2'))
    const result = await root.execute(REROUTE, ...list)
    fleet.sensor.broker('east')?.gone('0-1-1-0-11')
    expect(await root.execute(REROUTE, ...list)).toEqual(result)
    const other = reroute(text('object', 'orders'), text('idempotency_key', 'k2'))
    expect(await ask(root, REROUTE, other)).toMatchObject({ status: status.INVALID_ARGUMENT })
    expect(fleet.calls).toHaveLength(1)
  })
})

describe('a rule', () => {
  async function operator(...rules: [effect: 'allow' | 'deny', where: string][]): Promise<Seat> {
    for (const [effect, where] of rules) {
      const given = where === '' ? [] : [text('where', where)]
      await root.execute(
        `role.${effect}`,
        text('role', 'operator'),
        text('command', 'EXECUTE'),
        text('object', 'qmf.*'),
        ...given,
      )
    }
    await producer.addUser('olga', { role: 'operator' })
    return producer.seat('olga')
  }

  it('against one object holds however it is named', async () => {
    const olga = await operator(['allow', ''], ['deny', 'object=bills'])
    for (const object of ['bills', '0-1-1-0-11']) {
      expect(await ask(olga, REROUTE, reroute(text('object', object)))).toMatchObject({
        status: status.PERMISSION_DENIED,
      })
    }
    fleet.sensor.broker('east')?.gone('0-1-1-0-10')
    expect(await ask(olga, REROUTE, reroute())).toMatchObject({ status: status.PERMISSION_DENIED })
    for (const object of ['', '*', 'b*', 'Bills', 'bills ', 'bills\0']) {
      expect(await ask(olga, REROUTE, reroute(text('object', object)))).not.toMatchObject({ status: status.OK })
    }
    expect(fleet.calls).toEqual([])
  })

  it('for one object lets it be named by its id or left out, and nothing else', async () => {
    const olga = await operator(['allow', 'object=orders broker=east'])
    expect(await olga.execute(REROUTE, ...reroute(text('object', '0-1-1-0-10')))).toMatchObject({ outcome: 'ok' })
    expect(await ask(olga, REROUTE, reroute(text('object', 'bills')))).toMatchObject({
      status: status.PERMISSION_DENIED,
    })
    expect(await ask(olga, REROUTE, reroute())).toMatchObject({ status: status.PERMISSION_DENIED })
    fleet.sensor.broker('east')?.gone('0-1-1-0-11')
    expect(await olga.execute(REROUTE, ...reroute())).toMatchObject({ outcome: 'ok' })
  })

  it('of whose objects is kept from whoever may run it on others: refusals name none', async () => {
    const olga = await operator(['allow', ''], ['deny', 'object=bills'])
    expect((await ask(olga, REROUTE, reroute(text('object', 'x')))).detail).not.toMatch(/bills|orders/)
  })
})

describe('another tenant', () => {
  it('finds no control, as if there were none, not even as admin', async () => {
    for (const role of ['admin', 'operator']) {
      await producer.addUser(role, { tenant: 'other', role })
      const seat = await producer.seat(role, 'other')
      const [of, none] = [await ask(seat, ECHO, echo), await ask(seat, `${PACKAGE}.broker.none`, echo)]
      expect(of).toMatchObject({
        status: status.NO_SUCH_CONTROL,
        detail: none.detail.replace('broker.none', 'broker.echo'),
      })
    }
  })
})

describe('the audit log', () => {
  it('has all arguments, also those that were filled in', async () => {
    await root.execute(ECHO, ...echo)
    const said = await audited(ECHO)
    for (const part of ['east', 'amqp-broker', 'sequence', 'hi']) expect(said).toContain(part)
  })

  it('has no secrets: not inside of maps, not repeated by a refusal or by the broker', async () => {
    const properties = '{"host":"h1","password":"correct horse","more":[{"authToken":"battery"}]}'
    const create: List = [
      text('type', 'link'),
      text('name', 'l1'),
      text('properties', properties),
      ['strict', type.boolean, u32(1)],
    ]
    await root.execute(CREATE, ...create)
    await ask(root, CREATE, [...create, text('object', 'none')])
    expect([...(fleet.calls[0]!.args[2] as FieldTable)]).toContainEqual(['password', 'correct horse'])
    fleet.answer = { status: 7, text: 'not staple', arguments: [] }
    const connect: List = [
      text('host', 'h1'),
      ['port', type.uint32, u32(1)],
      ['durable', type.boolean, u32(0)],
      text('authMechanism', 'PLAIN'),
      text('username', 'u'),
      text('password', 'staple'),
      text('transport', 'tcp'),
    ]
    expect(await root.execute(CONNECT, ...connect)).toMatchObject({ detail: 'not ***' })
    const said = await audited(PACKAGE)
    for (const part of ['h1', 'link', 'username']) expect(said).toContain(part)
    expect(said).not.toMatch(/horse|battery|staple/)
  })

  it('repeats no secret that is refused', async () => {
    const odd: TableSchema = {
      ...queue,
      key: { ...queue.key, className: 'odd' },
      methods: [{ name: 'set', arguments: [{ name: 'token', type: QmfType.UUID, direction: 'I' }] }],
    }
    fleet.connect('east', odd)
    fleet.object('east', odd, '0-1-1-0-1', 'one')
    expect(await ask(root, `${PACKAGE}.odd.set`, [text('token', 'staple')])).toMatchObject({
      status: status.INVALID_ARGUMENT,
    })
    expect(await audited('odd.set')).not.toContain('staple')
  })
})
