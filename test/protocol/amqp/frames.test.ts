import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Assembly, encodeFrames, FrameAssembler } from '../../../protocol/amqp/frames.ts'
import {
  type AmqpCommand,
  type AmqpControl,
  decodeCommand,
  decodeControl,
  decodeHeader,
  encodeCommand,
  encodeControl,
  encodeHeader,
} from '../../../protocol/amqp/methods.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { hex, join, toHex } from '../../support/bytes.ts'
import { command, control, derived, derivedTransfer, frame, live, liveStartOk, start, transfer } from './vectors.ts'

const MAX_BODY_BYTES = 1000

/** All that is in a stream, handed over in chunks that end at `cuts`; each is spoilt once it was taken. */
function assemble(stream: Uint8Array, cuts: readonly number[] = []): Assembly[] {
  const assembler = new FrameAssembler(MAX_BODY_BYTES)
  const found: Assembly[] = []
  let begin = 0
  for (const cut of [...cuts, stream.length]) {
    const chunk = stream.slice(begin, cut)
    begin = cut
    assembler.push(chunk)
    for (let next = assembler.next(); next; next = assembler.next()) found.push(next)
    chunk.fill(0xee)
  }
  return found
}
const everyByte = (stream: Uint8Array) => Array.from(stream, (_, i) => i)

function said(assembly: Assembly) {
  if (assembly.isControl) return decodeControl(assembly.method)
  const { command, isSync } = decodeCommand(assembly.method)
  expect(isSync).toBe(false)
  return command
}

function encoded(says: AmqpControl | AmqpCommand): Uint8Array {
  const isControl = /^(connection|session)[.]/.test(says.name)
  const method = isControl ? encodeControl(says as AmqpControl) : encodeCommand(says as AmqpCommand)
  return encodeFrames({ channel: 0, isControl, method }, 65_535)
}

describe.each([...live, ...derived])('the frame "$name"', ({ hex: digits, says }) => {
  test('is read', () => {
    expect(assemble(hex(digits)).map(said)).toEqual([says])
  })
  test('is written byte for byte', () => {
    expect(toHex(encoded(says))).toBe(digits)
  })
  test('is read byte by byte', () => {
    expect(assemble(hex(digits), everyByte(hex(digits))).map(said)).toEqual([says])
  })
})

describe('what is written another way than it is read', () => {
  test('connection.start', () => {
    const [says] = assemble(start).map(said)
    expect(says).toMatchObject({ mechanisms: ['ANONYMOUS', 'PLAIN'], locales: ['en_US'] })
    expect(says).toHaveProperty('serverProperties.size', 5)
  })
  test('an empty map of size 0', () => {
    const clientProperties = new Map()
    const response = new Uint8Array(0)
    const startOk = { name: 'connection.start-ok', clientProperties, mechanism: 'ANONYMOUS', response, locale: 'en_US' }
    expect(assemble(hex(liveStartOk)).map(said)).toEqual([startOk])
  })
  test('fields and bytes after the known ones', () => {
    expect(assemble(command('0802 0100 0900', Uint8Array.of(1, 0x71, 5, 5, 5))).map(said)).toEqual([
      { name: 'queue.delete', queue: 'q' },
    ])
  })
  test('methods that are in no table', () => {
    const stream = join(control(1, '020d0100', Uint8Array.of(0, 0)), command('0402 0100 0100', Uint8Array.of(0, 0)))
    expect(assemble(stream).map(said)).toEqual([
      { name: 'unknown', code: 0x020d },
      { name: 'unknown', code: 0x0402 },
    ])
  })
})

describe('a transfer', () => {
  const bytes = hex(derivedTransfer.command + derivedTransfer.header + derivedTransfer.body)
  const header = {
    delivery: { routingKey: 'broker' },
    message: {
      replyTo: { exchange: 'amq.direct', routingKey: 'reply-console-1' },
      contentType: 'x-application/qmf',
    },
  }
  const method = encodeCommand({ name: 'message.transfer', destination: 'qpid.management' })
  const body = hex('414d324200000000')

  test('is read with its header and body', () => {
    const [assembly] = assemble(bytes)
    expect(said(assembly!)).toEqual({ name: 'message.transfer', destination: 'qpid.management' })
    expect(decodeHeader(assembly!.header!)).toEqual(header)
    expect(toHex(assembly!.body!)).toBe(toHex(body))
  })
  test('is written byte for byte', () => {
    const assembly = { channel: 0, isControl: false, method, header: encodeHeader(header), body }
    expect(toHex(encodeFrames(assembly, 65_535))).toBe(toHex(bytes))
  })
  test('is the same wherever it is cut', () => {
    const whole = assemble(bytes)
    for (let cut = 0; cut <= bytes.length; cut++) expect(assemble(bytes, [cut])).toEqual(whole)
    expect(assemble(bytes, everyByte(bytes))).toEqual(whole)
  })
  test('may have no body, and no header', () => {
    const parts = (assembly?: Assembly) => [assembly?.header?.length, assembly?.body?.length]
    expect(parts(assemble(join(frame(0xb, 1, 1, method), frame(7, 2, 1, hex('')))).at(0))).toEqual([0, undefined])
    expect(parts(assemble(frame(0xf, 1, 1, method)).at(0))).toEqual([undefined, undefined])
  })
  test('says its properties in any order, with structs that are not known', () => {
    const unknown = '00000006 0909 01020304'
    const delivery = '00000008 0401 0002 03 6b6579'
    const message = '0000000c 0403 0100 0000000000000018'
    const { delivery: d, message: m } = decodeHeader(hex(message + unknown + delivery))
    expect([d.routingKey, m.contentLength]).toEqual(['key', 24n])
  })
})

describe('a body over several frames', () => {
  const body = Uint8Array.from({ length: 700 }, (_, i) => i & 0xff)
  const method = encodeCommand({ name: 'message.transfer', destination: 'x' })

  test('is written in frames that none is longer than agreed on', () => {
    const bytes = encodeFrames({ channel: 1, isControl: false, method, header: new Uint8Array(0), body }, 312)
    const expected = [
      frame(0xb, 1, 1, method),
      frame(0x3, 2, 1, hex('')),
      frame(0x6, 3, 1, body.subarray(0, 300)),
      frame(0x4, 3, 1, body.subarray(300, 600)),
      frame(0x5, 3, 1, body.subarray(600)),
    ]
    expect(toHex(bytes)).toBe(toHex(join(...expected)))
  })
  test('has frames of exactly that size where it divides', () => {
    const bytes = encodeFrames({ channel: 1, isControl: false, method, body: body.subarray(0, 600) }, 312)
    expect(assemble(bytes)[0]?.body).toEqual(body.subarray(0, 600))
    expect(bytes.length).toBe(12 + method.length + 2 * 312)
  })
  test('is put together, as are a command and a header over several', () => {
    const stream = join(
      ...everyByte(method).map((i) =>
        frame(8 | (i === 0 ? 2 : 0) | (i === method.length - 1 ? 1 : 0), 1, 1, method.subarray(i, i + 1)),
      ),
      frame(2, 2, 1, hex('0000')),
      frame(1, 2, 1, hex('0006 0909 01020304')),
      frame(6, 3, 1, hex('')),
      ...everyByte(body).map((i) => frame(4, 3, 1, body.subarray(i, i + 1))),
      frame(5, 3, 1, hex('')),
    )
    expect(assemble(stream)).toEqual([
      { channel: 1, isControl: false, method, header: hex('00000006090901020304'), body },
    ])
  })
  test('may be mixed with those of other channels and with controls of its own', () => {
    const [first, second] = [body.subarray(0, 5), body.subarray(5, 20)]
    const parts = (channel: number) => [
      frame(0xb, 1, channel, method),
      frame(0x6, 3, channel, first),
      frame(0x5, 3, channel, second),
    ]
    const [a, b, c] = [parts(1), parts(2), control(1, '020c0400')]
    const stream = join(a[0]!, b[0]!, b[1]!, c, a[1]!, b[2]!, c, a[2]!)
    expect(assemble(stream).map(({ channel, body }) => [channel, body?.length])).toEqual([
      [1, undefined],
      [2, 20],
      [1, undefined],
      [1, 20],
    ])
  })
})

describe('bounds', () => {
  const method = hex('0401 0100 0000')
  const begun = frame(0xb, 1, 1, method)
  const onTrack0 = hex('0702000c0000000100000000')
  const refused: readonly (readonly [name: string, code: string, frames: readonly Uint8Array[]])[] = [
    ['a frame shorter than its header', 'FRAME_TOO_SHORT', [hex('0f00000b0000000000000000')]],
    ['flags that do not exist', 'BAD_NUMBER', [hex('4f0000100000000000000000020c0400')]],
    ['a type that does not exist', 'BAD_TYPE', [frame(0xf, 4, 1, hex(''))]],
    ['a header in front', 'BAD_TYPE', [frame(0xb, 2, 1, hex(''))]],
    ['a body in front of its header', 'BAD_TYPE', [begun, frame(3, 3, 1, hex('')), frame(7, 2, 1, hex(''))]],
    ['two bodies', 'BAD_TYPE', [begun, frame(3, 3, 1, hex('')), frame(7, 3, 1, hex(''))]],
    ['a header after a control', 'BAD_TYPE', [frame(0xb, 0, 1, method), onTrack0]],
    ['a new command inside another', 'UNKNOWN_MESSAGE', [begun, begun]],
    ['a continuation of nothing', 'UNKNOWN_MESSAGE', [frame(4, 3, 1, hex(''))]],
    ['a continuation of a segment that is whole', 'UNKNOWN_MESSAGE', [begun, frame(9, 1, 1, hex(''))]],
    ['a header before the command is whole', 'BAD_TYPE', [frame(0xa, 1, 1, method), frame(7, 2, 1, hex(''))]],
    ['five commands begun', 'BAD_COUNT', [1, 2, 3, 4, 5].map((channel) => frame(0xb, 1, channel, method))],
    ['a body that is too long', 'TOO_LONG', [begun, frame(7, 3, 1, new Uint8Array(MAX_BODY_BYTES + 1))]],
    [
      'a body that is too long over two frames',
      'TOO_LONG',
      [begun, frame(6, 3, 1, new Uint8Array(MAX_BODY_BYTES)), frame(5, 3, 1, new Uint8Array(1))],
    ],
    [
      'a header of more than 64 KiB',
      'TOO_LONG',
      [begun, frame(2, 2, 1, new Uint8Array(65_000)), frame(5, 2, 1, new Uint8Array(537))],
    ],
  ]
  test.each(refused)('refuse %s', (_, code, frames) => {
    expect(() => assemble(join(...frames))).toThrow(expect.objectContaining({ name: 'ProtocolError', code }))
  })
  test('take what is just as long as allowed, and four commands begun', () => {
    expect(assemble(transfer(new Uint8Array(MAX_BODY_BYTES)))).toHaveLength(1)
    expect(assemble(join(...[1, 2, 3, 4].map((channel) => frame(0xb, 1, channel, method))))).toEqual([])
  })
  test('are where the frame ends', () => {
    expect(() => assemble(join(transfer(hex('00')), frame(4, 3, 1, hex(''))))).toThrow(
      expect.objectContaining({ offset: transfer(hex('00')).length + 12 }),
    )
  })
})

describe('whatever comes', () => {
  const onlyProtocolErrors = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError)
    }
  }
  const sample = join(start, ...live.map((v) => hex(v.hex)), ...derived.map((v) => hex(v.hex)), transfer(hex('0102')))

  test('random bytes give assemblies or a ProtocolError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        onlyProtocolErrors(() => assemble(bytes))
        onlyProtocolErrors(() => decodeControl(bytes))
        onlyProtocolErrors(() => decodeCommand(bytes))
        onlyProtocolErrors(() => decodeHeader(bytes))
      }),
    )
  })
  test('changed bytes give assemblies or a ProtocolError', () => {
    const changes = fc.array(fc.tuple(fc.nat(sample.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(changes, (list) => {
        const bytes = sample.slice()
        for (const [at, byte] of list) bytes[at] = byte
        onlyProtocolErrors(() => {
          for (const { isControl, method, header } of assemble(bytes)) {
            if (isControl) decodeControl(method)
            else decodeCommand(method)
            if (header) decodeHeader(header)
          }
        })
      }),
    )
  })
  test('what is written is read again, wherever it is cut and however small the frames are', () => {
    const bytes = fc.uint8Array({ maxLength: 300 })
    const frameBytes = fc.integer({ min: 13, max: 400 })
    const part = fc.option(bytes, { nil: undefined })
    const cuts = fc.array(fc.nat(5000), { maxLength: 6 })
    fc.assert(
      fc.property(bytes, part, part, frameBytes, cuts, (method, header, body, most, places) => {
        const assembly = { channel: 1, isControl: false, method, header, body }
        const stream = encodeFrames(assembly, most)
        const sorted = places.filter((place) => place < stream.length).sort((a, b) => a - b)
        expect(assemble(stream, sorted)).toEqual([assembly])
      }),
    )
  })
})
