/** The `monitoring.json` subprotocol [MON 13]: the example lines of the specification, both ways, and what is refused. */
import { describe, expect, it } from 'vitest'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { CommandDeclaration } from '../../../protocol/monitor/commands.ts'
import { type CommandName, commands } from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import {
  jsonCommandArguments,
  jsonCommandName,
  MAX_JSON_COMMANDS,
  messageToJson,
  parseJsonCommands,
} from '../../../protocol/monitor/json.ts'
import { type Message, readMessage } from '../../../protocol/monitor/message.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import { fromHex } from './vectors.ts'

/** The one command of a text message, with its fields read. */
function read(text: string) {
  const [first] = parseJsonCommands(text)
  const name = jsonCommandName(first!.cmd)!
  return { name, seq: first!.seq, fields: jsonCommandArguments(name, first!.object) }
}

function refusal(text: string): ProtocolError {
  try {
    read(text)
  } catch (error) {
    if (error instanceof ProtocolError) return error
    throw error
  }
  throw new Error(`accepted: ${text}`)
}

const utf8 = (text: string) => new TextEncoder().encode(text)
const argument = (name: string, type: number, value: unknown) => ({ name, type, value, json: true })

describe('commands', () => {
  const examples: [string, CommandName, number, Record<string, unknown>][] = [
    [
      '{"cmd":"COLLECT","seq":1,"metric":"host.load.one","args":{"host":"n1"}}',
      'COLLECT',
      1,
      { metric: 'host.load.one', args: [argument('host', BasicType.STRING, 'n1')] },
    ],
    ['{"cmd":"SUBSCRIBE","seq":2,"metric":7,"channel":0}', 'SUBSCRIBE', 2, { metric: 7, channel: 0 }],
    ['{"cmd":"AUTH","seq":3,"method":"token","data":"AQID"}', 'AUTH', 3, { method: 'token', data: fromHex('010203') }],
    ['{"cmd":"COMMIT","seq":4,"transaction":12,"through":true}', 'COMMIT', 4, { transaction: 12, through: true }],
    [
      '{"cmd":"EXECUTE","seq":5,"control":"channel.configure","args":{"channel":9,"durable":false}}',
      'EXECUTE',
      5,
      {
        control: 'channel.configure',
        args: [argument('channel', BasicType.INT64, 9n), argument('durable', BasicType.BOOLEAN, false)],
      },
    ],
    ['{"cmd":"DEF_CHANNEL","seq":6,"url":"","args":{}}', 'DEF_CHANNEL', 6, { url: '', args: [] }],
    ['{"cmd":"SET_CHANNEL","seq":7,"channel":9}', 'SET_CHANNEL', 7, { channel: 9 }],
    ['{"cmd":"NOP","seq":8}', 'NOP', 8, {}],
    ['{"cmd":"WRAP","seq":9,"layer":"tls"}', 'WRAP', 9, { layer: 'tls' }],
    ['{"cmd":"STOP","seq":10,"metric":7,"channel":4294967295}', 'STOP', 10, { metric: 7, channel: 0xffffffff }],
  ]

  it.each(examples)('%s is read', (text, name, seq, fields) => {
    expect(read(text)).toEqual({ name, seq, fields })
  })

  it('has a JSON form for every field of every command', () => {
    for (const { fields } of Object.values<CommandDeclaration>(commands)) {
      for (const kind of Object.values(fields)) expect(() => kind.fromJson(Symbol('none'), 'x')).toThrow(ProtocolError)
    }
  })

  it('AUTH password may give identity and password instead of data', () => {
    const { fields } = read('{"cmd":"AUTH","seq":3,"method":"password","identity":"a","password":"b"}')
    expect(fields).toEqual({ method: 'password', data: fromHex('00000001 61000000 00000001 62000000') })
  })

  it.each([
    '{"cmd":"AUTH","seq":3,"method":"token","identity":"a","password":"b"}',
    '{"cmd":"AUTH","seq":3,"method":"password","identity":"a","password":"b","data":""}',
    '{"cmd":"AUTH","seq":3,"method":"password","identity":"a"}',
    '{"cmd":"AUTH","seq":3,"method":"password","password":"b"}',
    '{"cmd":"AUTH","seq":3,"method":"password","identity":1,"password":"b"}',
  ])('identity and password go together, with method password, without data: %s', (text) => {
    expect(refusal(text).code).toBe('BAD_JSON')
  })

  it('a refused password does not stand in the error', () => {
    const { message } = refusal('{"cmd":"AUTH","seq":3,"method":"token","identity":"a","password":"hunter2"}')
    expect(message).not.toContain('hunter2')
  })

  it('an argument that is not Unicode is refused, not changed', () => {
    const [json] = parseJsonCommands('{"cmd":"COLLECT","seq":1,"metric":"a","args":{"host":"\\udc00"}}')
    expect(() => jsonCommandArguments('COLLECT', json!.object)).toThrow(expect.objectContaining({ code: 'BAD_UTF8' }))
  })

  it('a missing channel is the current one', () => {
    expect(read('{"cmd":"GET","seq":1,"metric":7}').fields).toEqual({ metric: 7, channel: 0 })
  })

  it('a missing through is false, missing args are none, missing data is empty', () => {
    expect(read('{"cmd":"COMMIT","seq":1,"transaction":3}').fields).toEqual({ transaction: 3, through: false })
    expect(read('{"cmd":"QUERY","seq":1,"metric":"m"}').fields).toEqual({ metric: 'm', args: [] })
    expect(read('{"cmd":"AUTH","seq":1,"method":""}').fields).toEqual({ method: '', data: new Uint8Array(0) })
  })

  it('a transaction id may be a number or its digits', () => {
    expect(read('{"cmd":"COMMIT","seq":1,"transaction":"9007199254740991"}').fields).toMatchObject({
      transaction: 9007199254740991,
    })
  })

  it.each(['-1', '1.5', '1e40', '"0x10"', '"99999999999999999999"', '""', 'null', 'true'])(
    'a transaction id of %s is refused',
    (json) => expect(refusal(`{"cmd":"COMMIT","seq":1,"transaction":${json}}`).code).toBe('BAD_JSON'),
  )

  it.each(['-1', '4294967296', '0.5', '"7"', 'null'])('a metric id of %s is refused', (json) => {
    expect(refusal(`{"cmd":"GET","seq":1,"metric":${json}}`).code).toBe('BAD_JSON')
  })

  it.each(['"AQI"', '"AQ==="', '"A==="', '"AQ-_"', '7'])('data of %s, which is no base64, is refused', (json) => {
    expect(refusal(`{"cmd":"AUTH","seq":1,"method":"token","data":${json}}`).code).toBe('BAD_JSON')
  })

  it.each([
    ['""', 'BAD_NAME'],
    ['"a\\u001f"', 'BAD_NAME'],
    ['"\\ud800"', 'BAD_NAME'],
    [`"${'x'.repeat(256)}"`, 'BAD_NAME'],
    ['7', 'BAD_JSON'],
  ])('a metric name of %s is refused', (json, code) => {
    expect(refusal(`{"cmd":"COLLECT","seq":1,"metric":${json}}`).code).toBe(code)
  })

  it('an unknown key is refused and named', () => {
    const error = refusal('{"cmd":"GET","seq":1,"metric":7,"chanel":0}')
    expect(error).toMatchObject({ code: 'BAD_JSON', message: expect.stringContaining('"chanel"') })
    expect(refusal('{"cmd":"NOP","seq":1,"__proto__":1}').code).toBe('BAD_JSON')
  })

  it('an unknown command has no name', () => {
    for (const cmd of ['PING', 'nop', 'constructor', '', 0, null, undefined]) {
      expect(jsonCommandName(cmd)).toBeUndefined()
    }
  })

  it.each(['', '{', 'NOP', '[{"cmd":"NOP","seq":1}', '\ufeff{"cmd":"NOP","seq":1}'])(
    'text that is not JSON: %s',
    (text) => {
      expect(() => parseJsonCommands(text)).toThrow(expect.objectContaining({ code: 'BAD_JSON' }))
    },
  )

  it.each([
    '{"cmd":"NOP"}',
    '{"cmd":"NOP","seq":"1"}',
    '{"seq":1.5}',
    '{"seq":-1}',
    '{"seq":4294967296}',
    '{"seq":null}',
  ])('without an integer seq there is nothing to answer: %s', (text) => {
    expect(() => parseJsonCommands(text)).toThrow(expect.objectContaining({ code: 'BAD_JSON' }))
  })

  it.each(['7', 'null', '"NOP"', '[[]]', '[7]', '[{"cmd":"NOP","seq":1},null]'])(
    'a command is an object: %s',
    (text) => {
      expect(() => parseJsonCommands(text)).toThrow(expect.objectContaining({ code: 'BAD_JSON' }))
    },
  )

  it('an array is as many commands, in order, and up to 1,024', () => {
    const array = (count: number) =>
      JSON.stringify(Array.from({ length: count }, (_, index) => ({ cmd: 'NOP', seq: index })))
    expect(MAX_JSON_COMMANDS).toBe(1024)
    expect(parseJsonCommands(array(1024)).map(({ seq }) => seq)).toEqual(Array.from({ length: 1024 }, (_, i) => i))
    expect(() => parseJsonCommands(array(1025))).toThrow(expect.objectContaining({ code: 'BAD_JSON' }))
    expect(parseJsonCommands('[]')).toEqual([])
  })
})

describe('arguments', () => {
  const argsOf = (json: string) => read(`{"cmd":"COLLECT","seq":1,"metric":"m","args":${json}}`).fields['args']

  it.each([
    ['true', BasicType.BOOLEAN, true],
    ['"NaN"', BasicType.STRING, 'NaN'],
    ['"18446744073709551615"', BasicType.STRING, '18446744073709551615'],
    ['-5', BasicType.INT64, -5n],
    ['9007199254740991', BasicType.INT64, 9007199254740991n],
    ['9007199254740992', BasicType.DOUBLE, 9007199254740992],
    ['0.25', BasicType.DOUBLE, 0.25],
  ])('%s is guessed by its JSON type, the declared type is for the server', (json, type, value) => {
    expect(argsOf(`{"a":${json}}`)).toEqual([argument('a', type, value)])
  })

  it.each(['null', '[]', '"x"', '7', '{"a":null}', '{"a":[]}', '{"a":{}}'])('args of %s are refused', (json) => {
    expect(() => argsOf(json)).toThrow(expect.objectContaining({ code: 'BAD_JSON' }))
  })

  it.each(['""', '"a\\n"', `"${'x'.repeat(256)}"`])('an argument called %s is refused', (name) => {
    expect(() => argsOf(`{${name}:1}`)).toThrow(expect.objectContaining({ code: 'BAD_NAME' }))
  })
})

describe('messages', () => {
  const caps = {
    major: 1,
    minor: 1,
    auth: ['scram-sha-256'],
    layer: ['deflate'],
    extension: ['gap', 'notice'],
    software: 'x 1',
  }
  const examples: [string, Message][] = [
    [
      '{"type":"response","seq":1,"status":"NO_SUCH_ID","result":0,"detail":"no such id"}',
      { kind: 'response', seq: 1, status: 8, result: 0, detail: 'no such id' },
    ],
    [
      '{"type":"response","seq":1,"status":"OK","result":7}',
      { kind: 'response', seq: 1, status: 0, result: 7, detail: '' },
    ],
    [
      '{"type":"response","seq":1,"status":99,"result":0,"detail":"later"}',
      { kind: 'response', seq: 1, status: 99, result: 0, detail: 'later' },
    ],
    [
      '{"type":"caps","major":1,"minor":1,"auth":["scram-sha-256"],"layer":["deflate"],"extension":["gap","notice"],"software":"x 1","max_frame":1048576}',
      { kind: 'caps', caps: { ...caps, maxFrameBytes: 1048576 } },
    ],
    [
      '{"type":"value","metric":7,"transaction":12,"time":1700000000000000,"valueType":"double","value":0.5}',
      { kind: 'value', metric: 7, transaction: 12, time: 1700000000000000, value: { type: 5, value: 0.5 } },
    ],
    ['{"type":"auth","data":"AQID"}', { kind: 'auth', data: fromHex('010203') }],
    [
      '{"type":"gap","transaction":13,"metric":7,"count":5,"from":1700000000000000,"to":1700000000500000,"reason":"overflow"}',
      {
        kind: 'gap',
        transaction: 13,
        metric: 7,
        count: 5,
        from: 1700000000000000,
        to: 1700000000500000,
        reason: 1,
      },
    ],
    [
      '{"type":"notice","code":"WINDOW_FULL","channel":9,"detail":"window full"}',
      { kind: 'notice', code: 1, channel: 9, detail: 'window full' },
    ],
  ]

  it.each(examples)('%s', (text, message) => {
    expect(JSON.parse(JSON.stringify(messageToJson(message)))).toEqual(JSON.parse(text))
  })

  it('the same bytes as in the binary form show as the same value', () => {
    const payload = fromHex('00000007 0000000000000000 00060a24181e4000 00000002 00000002')
    expect(messageToJson(readMessage(new XdrReader(payload)))).toEqual({
      type: 'value',
      metric: 7,
      transaction: 0,
      time: 1700000000000000,
      valueType: 'uint32',
      value: 2,
    })
  })

  it.each([
    [1, 'overflow'],
    [2, 'expired'],
    [3, 'damaged'],
    [4, 'purged'],
    [5, 'restart'],
    [6, 'full'],
    [7, 'restored'],
    [8, 'paused'],
    [9, 'replaced'],
    [10, 10],
  ])('the GAP reason %i shows as %s', (reason, shown) => {
    const gap: Message = { kind: 'gap', transaction: 1, metric: 0, count: 0, from: 0, to: 0, reason }
    expect(messageToJson(gap)['reason']).toBe(shown)
  })
})

describe('values', () => {
  const shown = (value: Value) => {
    const json = messageToJson({ kind: 'value', metric: 7, transaction: 0, time: 0, value })
    return JSON.parse(JSON.stringify([json['valueType'], json['value']]))
  }
  const rec: Value = {
    type: BasicType.REC,
    value: [
      { name: 'a', type: BasicType.UINT64, value: 1n },
      { name: '__proto__', type: BasicType.BOOLEAN, value: true },
      { name: 'b', type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items: [0.5, Number.NaN] } },
    ],
  }
  const cases: [Value, string, string][] = [
    [{ type: BasicType.INT32, value: -1 }, 'int32', '-1'],
    [{ type: BasicType.INT64, value: 9007199254740991n }, 'int64', '9007199254740991'],
    [{ type: BasicType.INT64, value: -9007199254740992n }, 'int64', '"-9007199254740992"'],
    [{ type: BasicType.UINT64, value: 9007199254740992n }, 'uint64', '"9007199254740992"'],
    [{ type: BasicType.UINT64, value: 2n ** 64n - 1n }, 'uint64', '"18446744073709551615"'],
    [{ type: BasicType.DOUBLE, value: Number.NaN }, 'double', '"NaN"'],
    [{ type: BasicType.DOUBLE, value: Number.POSITIVE_INFINITY }, 'double', '"Infinity"'],
    [{ type: BasicType.DOUBLE, value: Number.NEGATIVE_INFINITY }, 'double', '"-Infinity"'],
    [{ type: BasicType.BOOLEAN, value: false }, 'boolean', 'false'],
    [{ type: BasicType.STRING, value: 'é' }, 'string', '"é"'],
    [{ type: BasicType.STRING, value: fromHex('61ff62') }, 'string', '"a\ufffdb"'],
    [{ type: BasicType.OPAQUE, value: utf8('any') }, 'opaque', '"YW55"'],
    [{ type: BasicType.OPAQUE, value: new Uint8Array(0) }, 'opaque', '""'],
    [rec, 'rec', '{"a":1,"__proto__":true,"b":[0.5,"NaN"]}'],
    [{ type: BasicType.ARRAY, value: { element: BasicType.REC, items: [[], []] } }, 'array', '[{},{}]'],
    [VOID, 'void', 'null'],
  ]

  it.each(cases)('%# shows its type and plain JSON', (value, type, json) => {
    expect(shown(value)).toEqual([type, JSON.parse(json)])
  })
})
