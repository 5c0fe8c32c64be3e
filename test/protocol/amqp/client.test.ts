/** How a connection begins and ends, on bytes. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hex, join, toHex } from '../../support/bytes.ts'
import { connect, open } from './broker-end.ts'
import {
  attached,
  command,
  control,
  derived,
  HEADER,
  live,
  offering,
  openOk,
  start,
  str8,
  str16,
  transfer,
  tune,
} from './vectors.ts'

const bytesOf = (name: string) => [...live, ...derived].find((vector) => vector.name === name)!.hex

describe('a connection', () => {
  test('begins as the specification has it', () => {
    const end = connect()
    expect(end.written()).toEqual([toHex(HEADER)])
    expect(end.pushes(HEADER, start)).toEqual([
      '0f00002c000000000000000001020f00000000040000000009414e4f4e594d4f55530000000005656e5f5553',
    ])
    expect(end.pushes(tune)).toEqual(['0f000016000000000000000001060700fffeffff000a', bytesOf('open')])
    expect(end.pushes(openOk)).toEqual([toHex(control(1, '02010100', str16('s-1')))])
    expect(end.opened).toEqual([])
    expect(end.pushes(attached)).toEqual([toHex(control(1, '02070300', new Uint8Array(12)))])
    expect(end.opened).toMatchObject([{ heartbeatSeconds: 10 }])
  })
  test('begins the same byte by byte', () => {
    const bytes = join(HEADER, start, tune, openOk, attached)
    const whole = connect().pushes(bytes)
    const end = connect()
    for (const byte of bytes) end.client.push(Uint8Array.of(byte))
    expect(end.written()).toEqual(whole)
    expect(end.opened).toHaveLength(1)
  })
  test('says what the server is', () => {
    const end = connect()
    end.pushes(HEADER, start, tune, openOk, attached)
    expect(end.opened[0]?.serverProperties).toHaveProperty('size', 5)
  })
  test('is opened on a virtual host', () => {
    const end = connect({ virtualHost: 'test' })
    const openTest = control(0, '01070100', str8('test'))
    expect(end.pushes(HEADER, offering('ANONYMOUS'), tune).at(-1)).toBe(toHex(openTest))
  })
  test('ends in order', () => {
    const end = open()
    end.client.close()
    expect(end.written()).toEqual(['0f0000120000000000000000010b010000c8'])
    expect(end.pushes(transfer(hex('01')), hex('0f0000100000000000000000010c0000'))).toEqual([])
    expect([end.deliveries, end.closed]).toEqual([[], ['closed on request']])
    end.client.close()
    end.client.push(hex('ffffffff'))
    end.client.tick(1e9)
    expect([end.written(), end.closed]).toEqual([[], ['closed on request']])
  })
  test('may be ended before it is open', () => {
    const end = connect()
    end.pushes(HEADER)
    end.client.close()
    expect(end.pushes(offering('ANONYMOUS'), control(0, '010c0000'))).toEqual(['0f0000120000000000000000010b010000c8'])
    expect(end.closed).toEqual(['closed on request'])
  })
})

test('a message is sent with its properties, byte for byte as another client sent it', () => {
  const end = open()
  const message = {
    exchange: 'qmf.default.topic',
    routingKey: 'console.request.agent_locate',
    correlationId: '101',
    replyTo: { exchange: 'qmf.default.direct', routingKey: 'console-19c4' },
    contentType: 'amqp/list',
    appId: 'qmf2',
    headers: new Map([
      ['qpid.subject', 'console.request.agent_locate'],
      ['qmf.opcode', '_agent_locate_request'],
      ['x-amqp-0-10.app-id', 'qmf2'],
      ['method', 'request'],
    ]),
  }
  end.client.transfer(message, hex('0000000400000000'))
  const frames = [
    '0b01002400010001000000000401010001001171 6d662e64656661756c742e746f706963',
    '030200f4000100010000 0000',
    [
      '00000021040100021c636f6e736f6c652e726571756573742e6167656e745f6c6f63617465000000bf04039c010003313031',
      '0022030012716d662e64656661756c742e6469726563740c636f6e736f6c652d3139633409616d71702f6c6973740004716d',
      '66320000007e000000040c717069642e7375626a65637495001c636f6e736f6c652e726571756573742e6167656e745f6c6f',
      '636174650a716d662e6f70636f64659500155f6167656e745f6c6f636174655f7265717565737412782d616d71702d302d31',
      '302e6170702d6964950004716d6632066d6574686f6495000772657175657374',
    ].join(''),
    '070300140001000100000000 0000000400000000',
  ]
  expect(end.written().join('')).toBe(toHex(hex(frames.join(''))))
})

describe('logging in', () => {
  const plain = { user: 'guest', password: 'guest' }

  test('is PLAIN where a user is configured, byte for byte', () => {
    const end = connect(plain)
    expect(end.pushes(HEADER, start).at(-1)).toBe(bytesOf('start-ok PLAIN'))
  })
  test('is EXTERNAL with an empty response where the certificate says who connects, unless a user is configured', () => {
    const [certified, named] = [connect({ hasCertificate: true }), connect({ ...plain, hasCertificate: true })]
    expect(certified.pushes(HEADER, offering('ANONYMOUS', 'EXTERNAL')).at(-1)).toBe(
      '0f00002b000000000000000001020f0000000004000000000845585445524e414c0000000005656e5f5553',
    )
    expect(named.pushes(HEADER, start).at(-1)).toBe(bytesOf('start-ok PLAIN'))
    const refused = connect({ hasCertificate: true })
    refused.pushes(HEADER, offering('PLAIN', 'ANONYMOUS'))
    expect(refused.closed.join()).toContain('the server offers PLAIN, ANONYMOUS, not EXTERNAL')
  })
  test('shows what the client is', () => {
    const end = connect({
      properties: new Map<string, string | number>([
        ['product', 'x'],
        ['qpid.client_pid', 7],
      ]),
    })
    // A map of 37 bytes and two entries: a str16 and an int32.
    const map = '00000025 00000002 0770726f64756374 95 0001 78 0f717069642e636c69656e745f706964 21 00000007'
    expect(end.pushes(HEADER, start).at(-1)).toContain(map.replaceAll(' ', ''))
  })
  test('never falls back from PLAIN to ANONYMOUS, nor the other way', () => {
    const [named, anonymous, neither] = [connect(plain), connect(), connect()]
    expect(named.pushes(HEADER, offering('ANONYMOUS', 'GSSAPI'))).toHaveLength(1)
    expect(anonymous.pushes(HEADER, offering('PLAIN', 'DIGEST-MD5'))).toHaveLength(1)
    neither.pushes(HEADER, offering())
    expect([named, anonymous, neither].map(({ closed }) => closed)).toEqual([
      ['the server offers ANONYMOUS, GSSAPI, not PLAIN: the configured user cannot log in there'],
      ['the server offers PLAIN, DIGEST-MD5, not ANONYMOUS: configure a user and a password'],
      ['the server offers no way to log in, not ANONYMOUS: configure a user and a password'],
    ])
  })
  test('is answered once more where the server asks', () => {
    const end = connect(plain)
    end.pushes(HEADER, start)
    expect(end.pushes(control(0, '01030100', hex('00000000')))).toEqual([
      toHex(control(0, '01040100', hex('0000000c006775657374006775657374'))),
    ])
  })
  test('that is refused is reported, without the password even if the server repeats it', () => {
    const end = connect({ user: 'monitor', password: 's3cret' })
    end.pushes(HEADER, start)
    const close = control(0, '010b0300', hex('0140'), str8('connection-forced: not with s3cret'))
    expect(end.pushes(close)).toEqual(['0f0000100000000000000000010c0000'])
    expect(end.closed).toEqual(['the server refused the login (320): connection-forced: not with ***'])
  })
})

describe('what the server ends', () => {
  test.each([
    ['another version', '414d515000000901', 'the server speaks AMQP 0-9-1, not AMQP 0-10'],
    ['an older version', '414d515001010009', 'the server speaks AMQP 0-9, not AMQP 0-10'],
    ['a newer version', '414d515003010000', 'the server speaks AMQP 1-0-0, not AMQP 0-10'],
  ])('by answering with %s', (_, digits, reason) => {
    const end = connect()
    end.pushes(hex(digits), hex('ffff'))
    expect(end.closed).toEqual([reason])
  })
  test('by closing', () => {
    const end = connect()
    const close = control(0, '010b0300', hex('0192'), str8('invalid-path: no such host'))
    expect(end.pushes(HEADER, offering('ANONYMOUS'), tune, close, hex('ffff')).at(-1)).toBe(
      '0f0000100000000000000000010c0000',
    )
    expect(end.closed).toEqual(['the server closed the connection (402): invalid-path: no such host'])
  })
  test('by sending us away', () => {
    const end = connect()
    end.pushes(HEADER, offering('ANONYMOUS'), tune, control(0, '01090100', str16('other:5672')))
    expect(end.closed).toEqual(['the server redirects to other:5672: configure that one instead'])
  })
  test('by detaching the session, before everything else', () => {
    const end = connect()
    end.pushes(HEADER, offering('ANONYMOUS'), tune, openOk, control(1, '02040300', str16('s-1'), hex('01')))
    expect([end.closed, end.opened]).toEqual([['the server detached the session (1: session busy)'], []])
  })
  test('by asking for the session to be detached', () => {
    const end = open()
    expect(end.pushes(control(1, '02030100', str16('s-1')))).toEqual([
      toHex(control(1, '02040300', str16('s-1'), hex('00'))),
    ])
    expect(end.closed).toEqual(['the server detached the session (0: normal)'])
  })
  test('with an exception, reported once with its text', () => {
    const end = open()
    const text = str16('unauthorized-access: ACL denied queue create')
    const exception = command('0303 0100 3f00', hex('0193 00000000 08 01 00'), text)
    end.pushes(exception, control(1, '02040300', str16('s-1'), hex('00')), transfer(hex('01')))
    expect(end.closed).toEqual([
      'the server refused queue.declare and ended the session (403): unauthorized-access: ACL denied queue create',
    ])
    expect(end.deliveries).toEqual([])
  })
  test('with a text that is not kept for longer than people read', () => {
    const end = open()
    end.pushes(command('0303 0100 2100', hex('0193'), str16('x'.repeat(60_000))))
    expect(end.closed[0]).toHaveLength(500)
  })
})

describe('a server that is none', () => {
  const refused = (...parts: readonly Uint8Array[]) => {
    const end = connect()
    end.pushes(...parts)
    expect(end.closed).toHaveLength(1)
    end.client.tick(1e9)
    expect([end.pushes(attached), end.closed.length]).toEqual([[], 1])
  }
  test('is refused from its first byte', () => {
    refused(hex('48'))
    refused(hex('414d5158'))
  })
  test('is refused where it goes on out of turn', () => {
    refused(HEADER, tune)
    refused(HEADER, start, openOk)
    refused(HEADER, start, start)
    refused(HEADER, start, tune, tune)
    refused(HEADER, start, tune, attached)
    refused(HEADER, start, tune, openOk, attached, attached)
    refused(HEADER, control(0, '010c0000'))
  })
  test('is refused with frames too small to talk in', () => {
    refused(HEADER, start, control(0, '01050f00', hex('fffe 0fff 0000 0078')))
    const end = connect()
    expect(end.pushes(HEADER, start, control(0, '01050f00', hex('fffe 1000 0000 0078'))).at(-1)).toBe(bytesOf('open'))
  })
  test('is refused with a body that is too long', () => {
    const end = open({ maxBodyBytes: 4 })
    end.pushes(transfer(hex('01020304')))
    expect(end.deliveries).toHaveLength(1)
    end.pushes(transfer(hex('0102030405')))
    expect([end.deliveries.length, end.closed]).toEqual([1, ['a segment of more than 4 bytes']])
  })
  test('breaks nothing with methods that are not known, nor with frames on other channels', () => {
    const end = open()
    const others = [control(0, '01200000'), control(1, '020d0000'), control(7, '02040000'), transfer(hex('01'), 2)]
    expect(end.pushes(...others)).toEqual([])
    expect([end.closed, end.deliveries]).toEqual([[], []])
  })
})

describe('whatever the server sends', () => {
  const conversation = join(HEADER, start, tune, openOk, attached, transfer(hex('010203')), hex(bytesOf('flush')))

  test('push throws nothing, and the end is reported once', () => {
    const changes = fc.array(fc.tuple(fc.nat(conversation.length - 1), fc.nat(255)), { maxLength: 4 })
    const cuts = fc.array(fc.nat(conversation.length), { maxLength: 5 })
    fc.assert(
      fc.property(changes, cuts, fc.uint8Array({ maxLength: 60 }), (list, places, tail) => {
        const bytes = join(conversation, tail)
        for (const [at, byte] of list) bytes[at] = byte
        const end = connect()
        let begin = 0
        for (const cut of [...places.sort((a, b) => a - b), bytes.length]) {
          end.client.push(bytes.slice(begin, cut))
          begin = cut
        }
        expect(end.closed.length).toBeLessThanOrEqual(1)
      }),
      { numRuns: 500 },
    )
  })
})
