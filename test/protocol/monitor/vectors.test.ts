/** From each vector of test/vectors/monitor: decode, encode, round trip, and fed to the framer byte by byte. */
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it, test } from 'vitest'
import { Framer, MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import {
  type CommandDeclaration,
  commandName,
  commands,
  readCommand,
  writeCommand,
} from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { readMessage } from '../../../protocol/monitor/message.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { encodeMessage } from './encode-message.ts'
import { commandVectors, messageVectors, refusedVectors } from './vectors.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

function decodeCommand(payload: Uint8Array) {
  const reader = new XdrReader(payload)
  const command = commandName(reader.uint32())!
  const seq = reader.uint32()
  return { command, seq, fields: readCommand(commands[command] as CommandDeclaration, reader) }
}

function encodeCommand(vector: ReturnType<typeof decodeCommand>): Uint8Array {
  const writer = new XdrWriter(4)
  writeCommand(writer, commands[vector.command] as CommandDeclaration, vector.seq, vector.fields)
  return writer.copy()
}

/** toEqual takes seconds for a mebibyte of bytes; it is asked only when there is a difference to show. */
function expectSame(actual: unknown, expected: unknown) {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected)
}

/** Feeds one byte at a time and looks at the framer after each; gives the payload. */
function feed(frame: Uint8Array, settles: boolean): Uint8Array {
  const framer = new Framer(MAX_FRAME_BYTES)
  for (let i = 0; i < frame.length; i++) {
    framer.push(frame.subarray(i, i + 1))
    const whole = framer.next()
    if (whole !== (i === frame.length - 1)) throw new Error(`next() gave ${whole} after ${i + 1} bytes`)
    const pending = whole ? 0 : i + 1
    if (framer.pending !== pending) throw new Error(`${framer.pending} bytes pending after ${i + 1} bytes`)
    if (settles && !whole) {
      framer.settle()
      if (framer.pending !== pending) throw new Error(`${framer.pending} bytes pending after settle at ${i + 1}`)
    }
  }
  const payload = framer.bytes.slice(framer.start, framer.end)
  framer.settle()
  expect(framer.pending).toBe(0)
  expect(framer.next()).toBe(false)
  return payload
}

function itDecodes(frame: Uint8Array, decoded: unknown, decode: (payload: Uint8Array) => unknown) {
  it('decodes', () => {
    expect(new DataView(frame.buffer).getUint32(0)).toBe(frame.length - 4)
    expectSame(decode(frame.subarray(4)), decoded)
  })
  it('comes out of the framer, fed byte by byte', () => {
    expect(hex(feed(frame, false))).toBe(hex(frame.subarray(4)))
    expect(hex(feed(frame, true))).toBe(hex(frame.subarray(4)))
  })
}

function itEncodes(frame: Uint8Array, canonical: boolean, encode: () => Uint8Array) {
  if (canonical) it('encodes', () => expect(hex(encode())).toBe(hex(frame)))
  else it('is read, but written in another form', () => expect(hex(encode())).not.toBe(hex(frame)))
}

describe.each(commandVectors())('$title', ({ frame, canonical, command, seq, fields }) => {
  itDecodes(frame, { command, seq, fields }, decodeCommand)
  itEncodes(frame, canonical, () => encodeCommand({ command, seq, fields }))
  it('survives a round trip', () => {
    const again = encodeCommand(decodeCommand(frame.subarray(4)))
    expectSame(decodeCommand(again.subarray(4)), { command, seq, fields })
  })
})

describe.each(messageVectors())('$title', ({ frame, canonical, message }) => {
  const decode = (payload: Uint8Array) => readMessage(new XdrReader(payload))
  itDecodes(frame, message, decode)
  itEncodes(frame, canonical, () => encodeMessage(message))
  it('survives a round trip', () => {
    expectSame(decode(encodeMessage(decode(frame.subarray(4))).subarray(4)), message)
  })
})

describe('the vectors', () => {
  it('hold every command', () => {
    expect(new Set(commandVectors().map((vector) => vector.command))).toEqual(new Set(Object.keys(commands)))
  })

  it('hold every message', () => {
    const kinds = new Set(messageVectors().map(({ message }) => message.kind))
    expect(kinds).toEqual(new Set(['response', 'caps', 'auth', 'gap', 'notice', 'value']))
  })

  it('hold every basic type, bare and as element of an array', () => {
    const values = messageVectors().flatMap(({ message }) => (message.kind === 'value' ? [message.value] : []))
    const elements = values.flatMap((value: Value) => (value.type === BasicType.ARRAY ? [value.value.element] : []))
    expect(new Set(values.map((value) => value.type))).toEqual(new Set(Object.values(BasicType)))
    expect(new Set(elements)).toEqual(new Set(Object.values(BasicType)))
  })
})

function refusal(payload: Uint8Array, isCommand: boolean): unknown {
  const decode = isCommand ? decodeCommand : (bytes: Uint8Array) => readMessage(new XdrReader(bytes))
  try {
    decode(payload)
  } catch (error) {
    return error
  }
  return undefined
}

test.each(refusedVectors())('$title is refused with $code', ({ payload, command, code, offset }) => {
  const error = refusal(payload, command !== undefined)
  expect(error).toBeInstanceOf(ProtocolError)
  expect(error).toMatchObject({ code, offset })
})

test('a frame cut before its end is refused, except where the rest is optional', () => {
  const short = (frame: Uint8Array) => frame.length < 4096
  for (const { title, frame, command } of commandVectors().filter(({ frame }) => short(frame))) {
    for (let end = 12; end < frame.length; end += 4) {
      if (command === 'COMMIT' && end === 20) continue
      expect(refusal(frame.subarray(4, end), true), `${title} cut to ${end} bytes`).toBeInstanceOf(ProtocolError)
    }
  }
  for (const { title, frame } of messageVectors().filter(({ frame }) => short(frame))) {
    for (let end = 8; end < frame.length; end += 4) {
      expect(refusal(frame.subarray(4, end), false), `${title} cut to ${end} bytes`).toBeInstanceOf(ProtocolError)
    }
  }
})
