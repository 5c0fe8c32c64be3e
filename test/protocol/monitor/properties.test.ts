/** What holds for every command, message and value, and for bytes that are none. */
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { readArguments } from '../../../protocol/monitor/arguments.ts'
import { readCapabilities } from '../../../protocol/monitor/capabilities.ts'
import {
  type CommandDeclaration,
  type CommandName,
  commandName,
  commands,
  readCommand,
  writeCommand,
} from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import {
  jsonCommandArguments,
  jsonCommandName,
  messageText,
  messageToJson,
  parseJsonCommands,
} from '../../../protocol/monitor/json.ts'
import { readMessage, readMessageInSteps } from '../../../protocol/monitor/message.ts'
import { readTyped, writeTyped } from '../../../protocol/monitor/value.ts'
import { times } from '../../support/long.ts'
import * as arbitrary from './arbitraries.ts'
import { encodeMessage } from './encode-message.ts'
import { commandVectors, messageVectors } from './vectors.ts'

const declaredOf = (name: CommandName) => commands[name] as CommandDeclaration

function decodeCommand(payload: Uint8Array): unknown {
  const reader = new XdrReader(payload)
  const name = commandName(reader.uint32())
  const seq = reader.uint32()
  return name === undefined ? undefined : { command: name, seq, fields: readCommand(declaredOf(name), reader) }
}

/** Every decoder of the folder that takes bytes from outside. */
const decoders: Record<string, (payload: Uint8Array) => unknown> = {
  'of messages': (payload) => readMessage(new XdrReader(payload)),
  'of values': (payload) => readTyped(new XdrReader(payload)),
  'of argument lists': (payload) => readArguments(new XdrReader(payload)),
  'of capabilities': (payload) => readCapabilities(new XdrReader(payload)),
  'of commands': decodeCommand,
}

/** What is worked out in steps. */
function allOf<T>(steps: Generator<void, T, void>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** The refusal, undefined if there was none; anything but a ProtocolError is thrown on. */
function refusalOf(decode: () => unknown): ProtocolError | undefined {
  try {
    decode()
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error
    throw error
  }
}

describe('a round trip gives the same again', () => {
  it('for every command', () => {
    fc.assert(
      fc.property(arbitrary.command, ({ command, seq, fields }) => {
        const writer = new XdrWriter(4)
        writeCommand(writer, declaredOf(command), seq, fields)
        expect(decodeCommand(writer.bytes().subarray(4))).toEqual({ command, seq, fields })
      }),
      { numRuns: 500 },
    )
  })

  it('for every message', () => {
    fc.assert(
      fc.property(arbitrary.message, (message) => {
        const frame = encodeMessage(message)
        expect(new DataView(frame.buffer).getUint32(0)).toBe(frame.length - 4)
        expect(frame.length % 4).toBe(0)
        expect(readMessage(new XdrReader(frame.subarray(4)))).toEqual(message)
        expect(allOf(readMessageInSteps(new XdrReader(frame.subarray(4))))).toEqual(message)
      }),
      { numRuns: 500 },
    )
  })

  it('for every value', () => {
    fc.assert(
      fc.property(arbitrary.value(), (value) => {
        const writer = new XdrWriter(4)
        writeTyped(writer, value)
        const reader = new XdrReader(writer.bytes())
        expect(readTyped(reader)).toEqual(value)
        expect(reader.remaining).toBe(0)
      }),
      { numRuns: 500 },
    )
  })
})

describe.each(Object.entries(decoders))('the decoder %s', (_, decode) => {
  it('gives a value or a ProtocolError for random bytes, and never looks outside them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const error = refusalOf(() => decode(bytes))
        return error === undefined || error.offset <= bytes.length
      }),
      { numRuns: times({ short: 500, long: 2_000 }) },
    )
  })

  it('gives a value or a ProtocolError for random fields of four bytes', () => {
    const field = fc.oneof(fc.nat(14), fc.integer({ min: 0xfffffff0, max: 0xffffffff }), arbitrary.uint32)
    fc.assert(
      fc.property(fc.array(field, { maxLength: 24 }), (fields) => {
        const writer = new XdrWriter()
        for (const one of fields) writer.uint32(one)
        refusalOf(() => decode(writer.bytes()))
      }),
      { numRuns: times({ short: 1_000, long: 5_000 }) },
    )
  })
})

/**
 * The places of arrays and the bytes of buffers that are made with a length while `act` runs. How much memory a process holds says
 * nothing of that: tests share one.
 */
function placesTaken(act: () => void): number {
  let places = 0
  for (const name of ['Array', 'ArrayBuffer', 'Uint8Array', 'Float64Array', 'BigUint64Array'] as const) {
    const counting: ProxyHandler<(typeof globalThis)[typeof name]> = {
      construct(target, given: unknown[], made) {
        if (typeof given[0] === 'number') places += given[0]
        return Reflect.construct(target, given, made)
      },
      apply(target, self, given: unknown[]) {
        if (typeof given[0] === 'number') places += given[0]
        return Reflect.apply(target, self, given)
      },
    }
    vi.stubGlobal(name, new Proxy(globalThis[name], counting))
  }
  try {
    act()
  } finally {
    vi.unstubAllGlobals()
  }
  return places
}

it('places that are taken by a length are counted', () => {
  expect(placesTaken(() => new Uint8Array(7))).toBe(7)
  expect(placesTaken(() => Array(8))).toBe(8)
  expect(placesTaken(() => Array.from({ length: 3 }, () => new ArrayBuffer(2)))).toBe(9)
  expect(placesTaken(() => [1, 2, 3].map((one) => one))).toBe(0)
  expect(new Uint8Array(7)).toHaveLength(7)
})

/** Lengths and counts that lie: none, unaligned, just above what may stand, and where sums and signs go wrong. */
const HOSTILE = [0, 1, 3, 255, 256, 2048, 2049, 65_536, 65_537, 2 ** 20, 2 ** 20 + 1, 0x7fffffff, 2 ** 31, 0xffffffff]

describe('a length or count that lies', () => {
  const frames = [...commandVectors(), ...messageVectors()].filter(({ frame }) => frame.length < 4096)

  it.each(HOSTILE)('%i in any field of any vector gives a value or a ProtocolError', (lie) => {
    for (const { frame, title } of frames) {
      const isCommand = new DataView(frame.buffer).getUint32(4) < 14 && !title.startsWith('VALUE')
      for (let at = 4; at < frame.length; at += 4) {
        const payload = frame.slice(4)
        new DataView(payload.buffer).setUint32(at - 4, lie)
        const decode = decoders[isCommand ? 'of commands' : 'of messages']!
        try {
          refusalOf(() => decode(payload))
        } catch (cause) {
          throw new Error(`${title} at byte ${at}`, { cause })
        }
      }
    }
  })

  /** What stands before each length or count, and where it is. */
  const fields: [string, string, readonly number[], number][] = [
    ['the count of an argument list', 'of commands', [1, 1, 1, 0x6d000000], 16],
    ['the length of a metric name', 'of commands', [1, 1], 8],
    ['the length of an argument name', 'of commands', [1, 1, 1, 0x6d000000, 1], 20],
    ['the length of a method', 'of commands', [6, 1], 8],
    ['the length of AUTH data', 'of commands', [6, 1, 0], 12],
    ['the length of a url', 'of commands', [7, 1], 8],
    ['the length of a layer', 'of commands', [13, 1], 8],
    ['the length of a detail', 'of messages', [0xffffffff, 1, 8, 0], 16],
    ['the count of capabilities', 'of messages', [0xfffffffe, 1, 1], 12],
    ['the length of the data of an AUTH message', 'of messages', [0xfffffffd], 4],
    ['the length of a STRING', 'of messages', [7, 0, 0, 0, 0, BasicType.STRING], 24],
    ['the length of an OPAQUE', 'of messages', [7, 0, 0, 0, 0, BasicType.OPAQUE], 24],
    ['the count of a REC', 'of messages', [7, 0, 0, 0, 0, BasicType.REC], 24],
    ...Object.entries(BasicType).map(([name, type]): [string, string, readonly number[], number] => [
      `the count of an ARRAY of ${name}`,
      'of messages',
      [7, 0, 0, 0, 0, BasicType.ARRAY, type],
      28,
    ]),
  ]

  it.each(fields)('in %s is refused where it stands, before anything is taken for it', (_, decoder, before, at) => {
    for (const lie of [2 ** 20, 2 ** 20 + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]) {
      const writer = new XdrWriter()
      for (const field of before) writer.uint32(field)
      const payload = writer.uint32(lie).uint32(0).uint32(0).copy()
      let error: ProtocolError | undefined
      const taken = placesTaken(() => {
        error = refusalOf(() => decoders[decoder]!(payload))
      })
      expect(taken).toBeLessThanOrEqual(payload.length)
      expect(error, `${lie}`).toBeDefined()
      // A length is refused at its own offset or at the missing bytes after it; nothing further is read.
      expect([at, at + 4]).toContain(error!.offset)
    }
  })
})

describe('JSON', () => {
  it('is made of every message, and parses again', () => {
    fc.assert(
      fc.property(arbitrary.message, (message) => {
        const json = messageToJson(message)
        expect(JSON.parse(JSON.stringify(json))).toMatchObject({ type: message.kind })
        expect(allOf(messageText(message))).toBe(JSON.stringify(json))
      }),
    )
  })

  it('of any shape gives commands or a ProtocolError', () => {
    const commandLike = fc.record(
      {
        cmd: fc.constantFrom(...Object.keys(commands)),
        seq: fc.nat(),
        ...Object.fromEntries(
          ['metric', 'channel', 'url', 'args', 'method', 'data', 'identity', 'password', 'through', 'other'].map(
            (key) => [key, fc.oneof(fc.jsonValue(), fc.constantFrom('', 'm', 0, true, 'AAAA'))],
          ),
        ),
      },
      { requiredKeys: ['cmd', 'seq'] },
    )
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), commandLike, fc.array(commandLike)), (json) => {
        refusalOf(() => {
          for (const { cmd, object } of parseJsonCommands(JSON.stringify(json))) {
            const name = jsonCommandName(cmd)
            if (name) jsonCommandArguments(name, object)
          }
        })
      }),
      { numRuns: times({ short: 250, long: 1_000 }) },
    )
    fc.assert(fc.property(fc.string(), (text) => void refusalOf(() => parseJsonCommands(text))))
  })
})
