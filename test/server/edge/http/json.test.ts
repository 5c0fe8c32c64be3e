import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { TestProducer } from '../../../support/producer.ts'
import { WebPeer } from '../../../support/web-peer.ts'

let producer: TestProducer
let url: string
let peer: WebPeer
let channel: number
beforeAll(async () => {
  producer = await TestProducer.start({ config: { listen: { http: { host: '127.0.0.1', port: 0 } } } })
  url = `ws://127.0.0.1:${producer.server.http?.port}/monitor`
})
beforeEach(async () => {
  peer = await WebPeer.open(url)
  channel = (await peer.ask(login)).result
})
afterEach(() => peer.socket.terminate())
afterAll(() => producer.stop())

const login = { cmd: 'AUTH', seq: 0, method: 'password', identity: 'admin', password: 'admin-password' }
const data = Buffer.from('0000000561646d696e0000000000000e61646d696e2d70617373776f72640000', 'hex').toString('base64')
const atH1 = { host: 'h1' }

async function subscribed(metric: string, args: object = atH1): Promise<number> {
  const { result } = await peer.ask({ cmd: 'COLLECT', seq: 1, metric, args })
  expect(await peer.ask({ cmd: 'SUBSCRIBE', seq: 2, metric: result })).toMatchObject({ status: 'OK' })
  return result
}

describe('what a consumer sends', () => {
  it('COLLECT and SUBSCRIBE', async () => {
    const collect = { cmd: 'COLLECT', seq: 1, metric: 'host.load.one', args: { host: 'n1' } }
    const { result, ...collected } = await peer.ask(collect)
    expect(collected).toEqual({ type: 'response', seq: 1, status: 'OK' })
    expect(result).toBeGreaterThan(0)
    const subscribe = { cmd: 'SUBSCRIBE', seq: 2, metric: result, channel: 0 }
    expect(await peer.ask(subscribe)).toEqual({ type: 'response', seq: 2, status: 'OK', result: 0 })
  })

  it('AUTH with data, or with identity and password', async () => {
    const other = await WebPeer.open(url)
    expect(await other.ask({ cmd: 'AUTH', seq: 3, method: 'certificate', data: 'AQID' })).toMatchObject({
      status: 'UNSUPPORTED',
    })
    expect(await other.ask({ cmd: 'AUTH', seq: 4, method: 'password', identity: 'a', password: 'b' })).toMatchObject({
      status: 'AUTH_FAILED',
    })
    expect(await other.ask({ cmd: 'AUTH', seq: 5, method: 'password', data })).toMatchObject({ status: 'OK' })
    other.socket.terminate()
  })

  it('AUTH in several steps, whose data is base64', async () => {
    const other = await WebPeer.open(url)
    const first = Buffer.from('n,,n=admin,r=abcdefgh').toString('base64')
    expect(await other.ask({ cmd: 'AUTH', seq: 1, method: 'scram-sha-256', data: first })).toEqual({
      type: 'response',
      seq: 1,
      status: 'AUTH_NEEDED',
      result: 0,
    })
    const { type, data: answer, ...rest } = await other.next()
    expect([type, rest]).toEqual(['auth', {}])
    expect(Buffer.from(answer, 'base64').toString()).toMatch(/^r=abcdefgh.+,s=.+,i=\d+$/)
    other.socket.terminate()
  })

  it('COMMIT, with a number or with digits, and through', async () => {
    await subscribed('test.a')
    for (const value of [1, 2, 3, 4]) producer.emit(value)
    const [first, second, , last] = [
      await peer.until('value'),
      await peer.until('value'),
      await peer.until('value'),
      await peer.until('value'),
    ]
    const commit = { cmd: 'COMMIT', seq: 4 }
    expect(await peer.ask({ ...commit, transaction: first.transaction })).toMatchObject({ status: 'OK' })
    expect(await peer.ask({ ...commit, transaction: String(second.transaction) })).toMatchObject({ status: 'OK' })
    expect(await peer.ask({ ...commit, transaction: last.transaction, through: true })).toMatchObject({ status: 'OK' })
    expect(await peer.ask({ ...commit, transaction: 5 })).toMatchObject({ status: 'NO_SUCH_TRANSACTION' })
    expect(await peer.ask({ ...commit, transaction: '18446744073709551615' })).toMatchObject({
      status: 'NO_SUCH_TRANSACTION',
    })
  })

  it('EXECUTE, DEF_CHANNEL and SET_CHANNEL', async () => {
    const { result } = await peer.ask({ cmd: 'DEF_CHANNEL', seq: 6, url: '', args: {} })
    const args = { channel: result, durable: false }
    expect(await peer.ask({ cmd: 'EXECUTE', seq: 5, control: 'channel.configure', args })).toMatchObject({
      status: 'OK',
    })
    expect(await peer.until('value')).toMatchObject({ valueType: 'rec', value: { outcome: 'ok', value: null } })
    expect(await peer.ask({ cmd: 'SET_CHANNEL', seq: 7, channel: result })).toMatchObject({ status: 'OK' })
    expect(await peer.ask({ cmd: 'SET_CHANNEL', seq: 8 })).toMatchObject({ status: 'INVALID_ARGUMENT' })
    expect(await peer.ask({ cmd: 'DEL_CHANNEL', seq: 9, channel })).toMatchObject({ status: 'OK' })
    expect(await peer.ask({ cmd: 'DEL_CHANNEL', seq: 10, channel })).toMatchObject({ status: 'NO_SUCH_CHANNEL' })
  })

  it('WRAP, which is UNSUPPORTED and takes what follows', async () => {
    peer.send([
      { cmd: 'WRAP', seq: 1, layer: 'deflate' },
      { cmd: 'NOP', seq: 2 },
    ])
    expect(await peer.until('response', 1)).toMatchObject({ status: 'UNSUPPORTED', result: 0 })
    expect(await peer.until('response', 2)).toMatchObject({ status: 'OK' })
  })

  it('an array of up to 1,024 commands', async () => {
    peer.send(Array.from({ length: 1_024 }, (_, index) => ({ cmd: 'NOP', seq: index + 10 })))
    for (let seq = 10; seq < 1_034; seq++) expect(await peer.until('response')).toMatchObject({ seq, status: 'OK' })
    peer.send([])
    expect(await peer.ask({ cmd: 'NOP', seq: 1 })).toMatchObject({ status: 'OK' })
  })

  it('is judged as in the binary form', async () => {
    const other = await WebPeer.open(url)
    for (const cmd of ['COLLECT', 'nop', 'NONE', '__proto__', 7, null, undefined]) {
      expect(await other.ask({ cmd, seq: 1, more: 1 })).toMatchObject({ status: 'NOT_AUTHENTICATED', result: 0 })
    }
    other.socket.terminate()
    for (const cmd of ['nop', 'NONE', '__proto__', 'toString', 7, null, undefined]) {
      expect(await peer.ask({ cmd, seq: 1 })).toMatchObject({ status: 'UNKNOWN_COMMAND', result: 0 })
    }
    expect(await peer.ask(login)).toMatchObject({ status: 'ALREADY_AUTHENTICATED' })
  })

  it.each<[string, object]>([
    ['an unknown key', { cmd: 'NOP', more: 1 }],
    ['a key of another command', { cmd: 'STOP', metric: 1, args: {} }],
    ['a key that is dangerous', JSON.parse('{"cmd":"NOP","__proto__":1}')],
    ['a missing field', { cmd: 'STOP' }],
    ['a number that is none', { cmd: 'STOP', metric: '1' }],
    ['a number out of range', { cmd: 'STOP', metric: 4_294_967_296 }],
    ['a fraction', { cmd: 'STOP', metric: 1.5 }],
    ['a negative transaction', { cmd: 'COMMIT', transaction: -1 }],
    ['a through that is a number', { cmd: 'COMMIT', transaction: 1, through: 1 }],
    ['an empty name', { cmd: 'COLLECT', metric: '' }],
    ['arguments that are no object', { cmd: 'COLLECT', metric: 'test.a', args: [] }],
    ['an argument that is an object', { cmd: 'COLLECT', metric: 'test.a', args: { host: {} } }],
    ['an argument that is null', { cmd: 'COLLECT', metric: 'test.a', args: { host: null } }],
    ['an argument that does not exist', { cmd: 'COLLECT', metric: 'test.a', args: { x: 1 } }],
    ['identity and data', { ...login, data }],
    ['an identity without password', { cmd: 'AUTH', method: 'password', identity: 'a' }],
    ['data that is no base64', { cmd: 'AUTH', method: 'password', data: '!' }],
  ])('%s is INVALID_ARGUMENT', async (_, command) => {
    expect(await peer.ask({ ...command, seq: 9 })).toMatchObject({ status: 'INVALID_ARGUMENT', result: 0 })
    expect(await peer.ask({ cmd: 'NOP', seq: 10 })).toMatchObject({ status: 'OK' })
  })

  it.each([
    'not json',
    '',
    '{"cmd":"NOP","seq":1',
    '7',
    'null',
    '"NOP"',
    '{"cmd":"NOP"}',
    '{"cmd":"NOP","seq":"1"}',
    '{"cmd":"NOP","seq":1.5}',
    '{"cmd":"NOP","seq":-1}',
    '{"cmd":"NOP","seq":4294967296}',
    '[{"cmd":"NOP","seq":1},{"cmd":"NOP"}]',
    '[[{"cmd":"NOP","seq":1}]]',
    '[1]',
  ])('%s closes with 1007', async (text) => {
    peer.send(text)
    expect(await peer.end()).toMatchObject({ code: 1007 })
    expect(peer.log.filter(({ type }) => type === 'response')).toHaveLength(1)
  })

  it('more than 1,024 commands close with 1007', async () => {
    peer.send(Array.from({ length: 1_025 }, (_, seq) => ({ cmd: 'NOP', seq })))
    expect(await peer.end()).toMatchObject({ code: 1007 })
  })

  it('text that is no UTF-8 closes with 1007', async () => {
    peer.socket.send(Buffer.from([0xc3, 0x28]), { binary: false })
    expect(await peer.end()).toMatchObject({ code: 1007 })
  })

  it('a binary message closes with 1003', async () => {
    peer.socket.send(Buffer.from('{"cmd":"NOP","seq":1}'), { binary: true })
    expect(await peer.end()).toMatchObject({ code: 1003 })
  })

  it('a message that is too large closes with 1009: 1 MiB, and 64 KiB before AUTH', async () => {
    const long = (length: number) => `{"cmd":"NOP","seq":1${' '.repeat(length - 21)}}`
    peer.send(long(1 << 20))
    expect(await peer.until('response', 1)).toMatchObject({ status: 'OK' })
    peer.send(long((1 << 20) + 5))
    expect(await peer.end()).toMatchObject({ code: 1009 })
    const other = await WebPeer.open(url)
    other.send(long(1 << 16))
    expect(await other.until('response', 1)).toMatchObject({ status: 'OK' })
    other.send(long((1 << 16) + 1))
    expect(await other.end()).toMatchObject({ code: 1009 })
  })
})

describe('what a producer sends', () => {
  it('begins with the capabilities, and tells them again after AUTH', () => {
    const caps = {
      type: 'caps',
      major: 1,
      minor: 1,
      auth: ['scram-sha-256', 'token', 'password'],
      layer: [],
      extension: ['channel-name', 'commit-through', 'element-time', 'gap', 'notice'],
      software: expect.stringMatching(/^cinnabar\//),
    }
    expect(peer.log).toEqual([
      { ...caps, max_frame: 65_536 },
      { type: 'response', seq: 0, status: 'OK', result: channel },
      {
        ...caps,
        max_frame: 1_048_576,
        generation: expect.stringMatching(/^[0-9a-f]{16}$/),
        producer: expect.stringMatching(/^[0-9a-f]{16} n1$/),
        below: [],
      },
    ])
  })

  it('a refusal with its detail', async () => {
    const refused = { type: 'response', seq: 1, status: 'NO_SUCH_ID', result: 0, detail: 'no such id' }
    expect(await peer.ask({ cmd: 'GET', seq: 1, metric: 7 })).toEqual(refused)
  })

  const rec: Value = {
    type: 9,
    value: [
      { name: 'a', type: 4, value: 2n ** 63n },
      { name: 'b', type: 11, value: null },
    ],
  }
  it.each<[string, Value, string, unknown]>([
    ['a double', { type: 5, value: 0.5 }, 'double', 0.5],
    ['NaN', { type: 5, value: Number.NaN }, 'double', 'NaN'],
    ['infinity', { type: 5, value: Number.NEGATIVE_INFINITY }, 'double', '-Infinity'],
    ['an int64 that a number holds', { type: 3, value: -9_007_199_254_740_991n }, 'int64', -9_007_199_254_740_991],
    ['an int64 that no number holds', { type: 3, value: -9_007_199_254_740_992n }, 'int64', '-9007199254740992'],
    ['the largest uint64', { type: 4, value: 2n ** 64n - 1n }, 'uint64', '18446744073709551615'],
    ['a boolean', { type: 6, value: true }, 'boolean', true],
    ['bytes that are no UTF-8', { type: 7, value: Uint8Array.of(0x61, 0xff) }, 'string', 'a\ufffd'],
    ['an opaque', { type: 8, value: Uint8Array.of(1, 2, 3, 4) }, 'opaque', 'AQIDBA=='],
    ['nothing', { type: 11, value: null }, 'void', null],
    ['a record', rec, 'rec', { a: '9223372036854775808', b: null }],
    ['an array', { type: 10, value: { element: 2, items: [1, 2] } }, 'array', [1, 2]],
  ])('%s', async (name, value, valueType, json) => {
    const metric = await subscribed(`test.json.${name.replaceAll(' ', '-')}`)
    producer.push.push(`test.json.${name.replaceAll(' ', '-')}`, value, 1_700_000_000_000_000)
    const { transaction, ...rest } = await peer.until('value')
    expect(rest).toEqual({ type: 'value', metric, time: 1_700_000_000_000_000, valueType, value: json })
    expect(Number.isSafeInteger(transaction) && transaction > 0).toBe(true)
  })

  it('a pattern’s values as objects', async () => {
    await subscribed('test.pattern.*', {})
    producer.emit(5, 'test.pattern.x')
    expect(await peer.until('value')).toMatchObject({ value: { name: 'test.pattern.x', host: 'h1', value: 5 } })
  })

  it('a GAP', async () => {
    const { result: metric } = await peer.ask({ cmd: 'COLLECT', seq: 1, metric: 'test.a', args: atH1 })
    await peer.ask({ cmd: 'BUFFER', seq: 2, metric })
    for (const value of [1, 2, 3]) producer.emit(value)
    await peer.ask({ cmd: 'EXECUTE', seq: 3, control: 'channel.purge', args: { channel: 0 } })
    await peer.ask({ cmd: 'GET', seq: 4, metric })
    const { transaction, ...gap } = await peer.until('gap')
    const times = { from: 1_700_000_000_000_001, to: 1_700_000_000_000_003 }
    expect(gap).toEqual({ type: 'gap', metric, count: 3, ...times, reason: 'purged' })
    expect(transaction).toBeGreaterThan(0)
  })

  it('a NOTICE before it closes', async () => {
    await peer.ask({ cmd: 'DEL_CHANNEL', seq: 1, channel: 0 })
    expect(await peer.until('notice')).toEqual({
      type: 'notice',
      code: 'CHANNEL_DELETED',
      channel,
      detail: 'the channel was deleted',
    })
    expect(await peer.end()).toMatchObject({ code: 1000 })
  })
})
