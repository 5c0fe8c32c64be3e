/** What goes on once the session is attached: commands, completion, credit, heartbeats. */
import { describe, expect, test } from 'vitest'
import { hex, join, toHex } from '../../support/bytes.ts'
import { open } from './broker-end.ts'
import { command, control, derived, derivedTransfer, frame, live, str8, str16, transfer } from './vectors.ts'

/** The vectors are of channel 0; the session of this client has 1. */
const onChannel1 = (name: string) => {
  const { hex: digits } = [...live, ...derived].find((vector) => vector.name === name)!
  return `${digits.slice(0, 12)}0001${digits.slice(16)}`
}
const completedThrough = (first: number, last: number, flags = '0100') =>
  toHex(control(1, `020a ${flags} 0008`, hex(hex32(first) + hex32(last))))
const hex32 = (value: number) => value.toString(16).padStart(8, '0')

describe('commands', () => {
  test('are written byte for byte', () => {
    const { client, written } = open()
    client.declareQueue('reply-1')
    client.bind('reply-1', 'amq.direct', 'reply-1')
    client.subscribe('reply-1', 'rdest')
    const names = ['declare', 'bind', 'subscribe', 'set-flow-mode', 'flow of bytes', 'flow of messages']
    expect(written()).toEqual(names.map(onChannel1))
  })
  test('may declare a queue with arguments', () => {
    const { client, written } = open()
    client.declareQueue('topic-vm.26710.1', new Map([['qpid.policy_type', 'ring']]))
    expect(written()).toEqual([
      '0f010043000100010000000008010100710010746f7069632d766d2e32363731302e310000001c0000000110717069642e706f6c6963795f7479706595000472696e67',
    ])
  })
  test('undo what was made', () => {
    const { client, written } = open()
    client.unbind('q', 'x', 'k')
    expect(written()).toEqual([toHex(command('0705 0100 0700', str8('q'), str8('x'), str8('k')))])
  })
  test('carry a message', () => {
    const { client, written } = open()
    const replyTo = { exchange: 'amq.direct', routingKey: 'reply-console-1' }
    const message = { exchange: 'qpid.management', routingKey: 'broker', replyTo, contentType: 'x-application/qmf' }
    client.transfer(message, hex('414d324200000000'))
    const { command, header, body } = derivedTransfer
    const moved = [command, header, body].map((digits) => `${digits.slice(0, 12)}0001${digits.slice(16)}`)
    expect(written()).toEqual(moved)
  })
  test('carry a large message in frames of the size that was agreed on', () => {
    const { client, written } = open({}, control(0, '01050f00', hex('fffe 1000 0000 0000')))
    client.transfer({ exchange: 'x', routingKey: 'k' }, new Uint8Array(10_000))
    expect(written().map((digits) => [digits.slice(0, 4), digits.length / 2])).toEqual([
      ['0b01', 20],
      ['0302', 30],
      ['0603', 4096],
      ['0403', 4096],
      ['0503', 12 + 10_000 - 2 * 4084],
    ])
  })
  test('that cannot be written are not counted', () => {
    const { client, pushes, written } = open()
    expect(() => client.bind('q', 'x', 'k'.repeat(256))).toThrow(expect.objectContaining({ code: 'TOO_LONG' }))
    const done: number[] = []
    client.sync(() => done.push(0))
    expect(written()).toEqual([toHex(command('0301 0101 0000'))])
    pushes(hex(completedThrough(0, 0)))
    expect(done).toEqual([0])
  })
  test('wait for the session, and are dropped once it is over', () => {
    const { client, pushes } = open()
    client.close()
    client.unbind('q', 'x', 'k')
    client.sync(() => {})
    expect(pushes()).toEqual(['0f0000120000000000000000010b010000c8'])
    client.push(control(0, '010c0000'))
    client.transfer({ exchange: 'x', routingKey: '' }, hex(''))
    expect(pushes()).toEqual([])
  })
})

describe('a message', () => {
  test('is delivered with what it says', () => {
    const { pushes, deliveries } = open()
    const message = join(
      hex('00000000 0403 9c01'),
      str16('101'),
      hex('0011 0300'),
      str8('amq.direct'),
      str8('key'),
      str8('x-application/qmf'),
      str16('qmf'),
      hex('0000000c 00000001 016b 95 0003 616263'),
    )
    const size = (bytes: Uint8Array) => join(hex(hex32(bytes.length - 4)), bytes.subarray(4))
    const delivery = join(hex('00000000 0401 0003'), str8('qpid.management'), str8('console.heartbeat.1.0'))
    pushes(
      frame(0xb, 1, 1, hex('0401 0100 0700 05 7264657374 01 00')),
      frame(3, 2, 1, join(size(message), size(delivery))),
      frame(7, 3, 1, hex('0102')),
    )
    expect(deliveries).toEqual([
      {
        destination: 'rdest',
        exchange: 'qpid.management',
        routingKey: 'console.heartbeat.1.0',
        correlationId: '101',
        replyTo: { exchange: 'amq.direct', routingKey: 'key' },
        contentType: 'x-application/qmf',
        appId: 'qmf',
        headers: new Map([['k', 'abc']]),
        body: hex('0102'),
      },
    ])
  })
  test('may say nothing at all', () => {
    const { pushes, deliveries } = open()
    pushes(command('0401 0100 0000'))
    const nothing = { destination: '', exchange: '', routingKey: '', headers: new Map(), body: new Uint8Array(0) }
    expect(deliveries).toEqual([nothing])
  })
})

describe('what the server sends', () => {
  test('is completed at the end of each push, so that its window moves on', () => {
    const { pushes } = open()
    expect(pushes(transfer(hex('01')), transfer(hex('02')))).toEqual([completedThrough(0, 1)])
    expect(pushes(transfer(hex('03')).subarray(0, 30))).toEqual([])
    expect(pushes(transfer(hex('03')).subarray(30))).toEqual([completedThrough(0, 2)])
    expect(pushes(control(0, '010a0000'))).toEqual([])
  })
  test('is completed whatever command it is', () => {
    const { pushes } = open()
    const accept = command('0402 0100 0100', hex('0000'))
    expect(pushes(command('0301 0101 0000'), accept, command('0a01 0100 0000'))).toEqual([completedThrough(0, 2)])
  })
  test('is counted from its command-point, over the wrap', () => {
    const { pushes } = open()
    const point = control(1, '02070300', hex('fffffffe 0000000000000000'))
    const many = Array.from({ length: 4 }, () => transfer(hex('01')))
    expect(pushes(point, ...many)).toEqual([completedThrough(0xffff_fffe, 1)])
    expect(pushes(control(1, '020b0100 0008', hex('fffffffe 00000000')), transfer(hex('01')))).toEqual([
      completedThrough(1, 2),
    ])
  })
  test('is reported again when the server asks for completions', () => {
    const { pushes } = open()
    const flush = hex(onChannel1('flush'))
    expect(pushes(flush)).toEqual([toHex(control(1, '020a0100 0000'))])
    pushes(transfer(hex('01')))
    expect(pushes(flush)).toEqual([completedThrough(0, 0)])
    expect(pushes(flush, flush, flush)).toEqual([completedThrough(0, 0)])
    expect(pushes(control(1, '020c0600'))).toEqual([completedThrough(0, 0)])
    expect(pushes(control(1, '020c0100'))).toEqual([])
  })
  test('is reported with a request for a confirmation after a thousand commands', () => {
    const { pushes } = open()
    pushes(...Array.from({ length: 1000 }, () => transfer(hex('01'))))
    expect(pushes(transfer(hex('01')))).toEqual([completedThrough(0, 1000, '0300')])
    expect(pushes(control(1, '020b0100 0008', hex(hex32(0) + hex32(1000))), transfer(hex('01')))).toEqual([
      completedThrough(1001, 1001),
    ])
  })
  test('may be a request for a timeout: a session is never kept', () => {
    const { pushes } = open()
    expect(pushes(control(1, '02050100', hex('0000012c')))).toEqual([toHex(control(1, '02060100', hex('00000000')))])
  })
})

describe('a sync', () => {
  test('calls back when everything before it is completed', () => {
    const { client, pushes } = open()
    const done: string[] = []
    client.declareQueue('q')
    client.sync(() => done.push('first'))
    client.unbind('q', 'x', 'k')
    client.sync(() => done.push('second'))
    pushes()
    pushes(hex(completedThrough(0, 0)))
    expect(done).toEqual([])
    expect(pushes(hex(completedThrough(0, 2)))).toEqual([])
    expect(done).toEqual(['first'])
    pushes(hex(completedThrough(0, 3)))
    pushes(hex(completedThrough(0, 3)))
    expect(done).toEqual(['first', 'second'])
  })
  test('may be followed by another from its callback', () => {
    const { client, pushes } = open()
    const done: string[] = []
    client.sync(() => client.sync(() => done.push('inner')))
    pushes(hex(completedThrough(0, 0)))
    pushes(hex(completedThrough(0, 1)))
    expect(done).toEqual(['inner'])
  })
  test('is answered as known where the server asks for that', () => {
    const { pushes } = open()
    const known = toHex(control(1, '020b0100 0008', hex('00000000 00000002')))
    expect(pushes(hex(completedThrough(0, 2, '0300')))).toEqual([known])
  })
})

describe('heartbeats', () => {
  const heartbeat = derived.find(({ name }) => name === 'heartbeat')!.hex
  const tuning = (least: string, most: string) => control(0, '01050f00', hex(`fffe ffff ${least} ${most}`))

  test.each([
    ['ten seconds where the server leaves it to us', '0000', '0078', 10],
    ['at least what the server wants', '001e', '0078', 30],
    ['at most what the server does', '0000', '0005', 5],
    ['none where the server has none', '0000', '0000', 0],
  ])('are %s', (_, least, most, seconds) => {
    expect(open({}, tuning(least, most)).opened).toMatchObject([{ heartbeatSeconds: seconds }])
  })
  test('are sent when nothing else was for half of their interval', () => {
    const { client, written, closed } = open()
    const writtenAt = (nowMs: number): string[] => {
      client.tick(nowMs)
      return written()
    }
    expect([0, 4999, 5000].map(writtenAt)).toEqual([[], [], [heartbeat]])
    client.tick(6000)
    client.unbind('q', 'x', 'k')
    client.tick(7000)
    written()
    expect([11_999, 12_000].map(writtenAt)).toEqual([[], [heartbeat]])
    expect(closed).toEqual([])
  })
  test('are expected: after two that did not come the server is gone', () => {
    const { client, pushes, closed } = open()
    for (const now of [1000, 21_000]) client.tick(now)
    pushes(hex(heartbeat))
    for (const now of [22_000, 42_000]) client.tick(now)
    expect(closed).toEqual([])
    client.tick(42_001)
    expect(closed).toEqual(['the broker has been silent for too long'])
  })
  test('are not missed while we did not run ourselves: what came meanwhile is read first', () => {
    const { client, pushes, closed } = open()
    for (const now of [0, 1000, 31_000]) client.tick(now)
    expect(closed).toEqual([])
    pushes(hex(heartbeat))
    for (const now of [32_000, 33_000]) client.tick(now)
    expect(closed).toEqual([])
    for (const now of [63_000, 64_000]) client.tick(now)
    expect(closed).toEqual(['the broker has been silent for too long'])
  })
  test('are neither where there are none', () => {
    const { client, written, closed } = open({}, tuning('0000', '0000'))
    for (const now of [0, 1e9]) client.tick(now)
    expect([closed, written()]).toEqual([[], []])
  })
  test('are not waited for where an answer has to come anyway', () => {
    const { client, closed } = open({}, tuning('0000', '0000'))
    client.tick(1000)
    client.close()
    for (const now of [2000, 32_000]) client.tick(now)
    expect(closed).toEqual([])
    client.tick(32_001)
    expect(closed).toEqual(['the broker has been silent for too long'])
  })
})
