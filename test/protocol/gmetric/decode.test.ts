import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ProtocolError, type ProtocolErrorCode } from '../../../protocol/errors.ts'
import { CORE_METRICS, decodePacket, MAX_EXTRA_ELEMENTS } from '../../../protocol/gmetric/decode.ts'
import { MAX_METRIC_BYTES } from '../../../protocol/gmetric/packet.ts'
import { times } from '../../support/long.ts'
import { vector, vectors } from './vectors.ts'

/** XDR by hand: numbers are words, text is a string with zero padding. */
function xdr(...fields: (number | string)[]): Uint8Array {
  const parts = fields.map((field) => {
    const bytes = typeof field === 'string' ? Buffer.from(field) : undefined
    const word = Buffer.alloc(4)
    word.writeUInt32BE(bytes ? bytes.length : Number(field))
    return bytes ? Buffer.concat([word, bytes, Buffer.alloc(-bytes.length & 3)]) : word
  })
  return new Uint8Array(Buffer.concat(parts))
}

function refusal(bytes: Uint8Array): ProtocolErrorCode | undefined {
  try {
    decodePacket(bytes)
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

describe('every vector', () => {
  test.each(vectors)('$name decodes', ({ bytes, packet }) => {
    expect(decodePacket(bytes)).toEqual(packet)
  })

  test.each(vectors)('$name is refused wherever it is cut off', ({ bytes, ignored }) => {
    for (let length = 0; length < bytes.length - ignored; length++) {
      expect(refusal(bytes.subarray(0, length)), `${length} bytes`).toBe('TRUNCATED')
    }
  })

  test.each(vectors)('$name decodes the same with anything after it', ({ bytes, packet }) => {
    expect(decodePacket(Buffer.concat([bytes, Buffer.from('anything')]))).toEqual(packet)
  })

  test.each(vectors)('$name decodes inside a larger buffer, of which nothing is kept', ({ bytes, packet }) => {
    const buffer = Buffer.concat([Buffer.alloc(7, 0xff), bytes, Buffer.alloc(7, 0xff)])
    const decoded = decodePacket(buffer.subarray(7, 7 + bytes.length))
    buffer.fill(0xee)
    expect(decoded).toEqual(packet)
  })
})

test('random bytes give a packet or a ProtocolError', () => {
  const ids = fc.constantFrom(0, 1, 8, 33, 50, 128, 129, 133, 134, 135, 136, 0xc0, 0xc8, 4096, 4097)
  const words = fc.array(fc.oneof(fc.constantFrom(0, 1, 2, 3, 0xffffffff), fc.string({ maxLength: 9 })))
  const packets = fc.oneof(
    fc.uint8Array({ maxLength: 2000 }),
    fc.tuple(ids, words).map(([id, fields]) => xdr(id, ...fields)),
  )
  fc.assert(fc.property(packets, (bytes) => void refusal(bytes)))
})

test('a vector with one byte changed gives a packet or a ProtocolError', () => {
  fc.assert(
    fc.property(fc.constantFrom(...vectors), fc.nat(), fc.nat(255), ({ bytes }, at, byte) => {
      const changed = bytes.slice()
      changed[at % changed.length] = byte
      refusal(changed)
    }),
    { numRuns: times({ short: 500, long: 2_000 }) },
  )
})

test.each([51, 127, 137, 0xbf, 0xc9, 255, 4095, 4098, 0x80000000, 0xffffffff])('number %i is no message', (id) => {
  expect(refusal(xdr(id, 'vm', 'foo', 0, '%s', '1'))).toBe('UNKNOWN_MESSAGE')
})

describe('lengths', () => {
  test('a string as long as a number can say is refused before anything is made for it', () => {
    for (const length of [0xffffffff, 0xfffffffd, 0x7fffffff]) {
      expect(refusal(xdr(133, length))).toBe('TRUNCATED')
    }
  })

  test('a string whose last padding is missing is refused', () => {
    const whole = xdr(8, 'Linux')
    expect(refusal(whole.subarray(0, whole.length - 1))).toBe('TRUNCATED')
  })

  test('the number of extra elements has a limit, and one more is refused', () => {
    const head = [128, 'vm', 'foo', 0, 'int8', 'foo', '', 3, 60, 0] as const
    const elements = (count: number) => Array.from({ length: count }, () => ['GROUP', 'a']).flat()
    const most = decodePacket(xdr(...head, MAX_EXTRA_ELEMENTS, ...elements(MAX_EXTRA_ELEMENTS)))
    expect(most).toMatchObject({ metadata: { extra: { length: MAX_EXTRA_ELEMENTS } } })
    expect(refusal(xdr(...head, MAX_EXTRA_ELEMENTS + 1, ...elements(MAX_EXTRA_ELEMENTS + 1)))).toBe('BAD_COUNT')
    expect(refusal(xdr(...head, 0xffffffff))).toBe('BAD_COUNT')
  })

  test('a datagram of 64 KiB decodes', () => {
    const value = 'x'.repeat(65_000)
    expect(decodePacket(xdr(133, 'vm', 'foo', 0, '%s', value))).toMatchObject({ value })
  })
})

describe('metric names', () => {
  const named = (name: string) => xdr(133, 'vm', name, 0, '%s', '1')

  test('are refused when empty or with a control character', () => {
    for (const name of ['', 'a\nb', '\0', 'foo\0', '\x1f']) expect(refusal(named(name))).toBe('BAD_NAME')
  })

  test('are refused when not UTF-8', () => {
    const bytes = named('a?')
    bytes[bytes.indexOf(0x3f)] = 0xe9
    expect(refusal(bytes)).toBe('BAD_NAME')
  })

  test('leave room for the prefix: 247 bytes are the most', () => {
    expect(MAX_METRIC_BYTES).toBe(247)
    expect(decodePacket(named('n'.repeat(247)))).toMatchObject({ metric: 'n'.repeat(247) })
    expect(refusal(named('n'.repeat(248)))).toBe('BAD_NAME')
    expect(refusal(named('é'.repeat(124)))).toBe('BAD_NAME')
  })

  test('may have what gmond lets through: spaces, punctuation, letters of any script', () => {
    for (const name of ['a b&c', 'disk:/', 'Wärme', '温度'])
      expect(decodePacket(named(name))).toMatchObject({ metric: name })
  })

  test('are judged in the older family too', () => {
    expect(refusal(xdr(0, 'int8', 'a\tb', '1', '', 3, 60, 0))).toBe('BAD_NAME')
  })
})

describe('a spoofed host', () => {
  test.each(['', 'name', ':', ':name', '10.0.0.9:', '10.0.0.9', 'a\n:b', 'a:b\n', `a:${'n'.repeat(256)}`])(
    'written %j is refused',
    (host) => {
      expect(refusal(xdr(133, host, 'foo', 1, '%s', '1'))).toBe('BAD_NAME')
    },
  )

  test('of the older family needs both halves', () => {
    for (const [name, address] of [
      ['', '10.0.0.9'],
      ['web1', ''],
      ['we\nb1', '10.0.0.9'],
    ] as const) {
      expect(refusal(xdr(4097, name, address))).toBe('BAD_NAME')
      expect(refusal(xdr(4096, name, address, 'int8', 'x', '1', '', 3, 60, 0))).toBe('BAD_NAME')
    }
  })

  test('is the same host in both families', () => {
    const newer = vector('133 spoofed by a boolean that is neither 0 nor 1').packet
    expect(decodePacket(xdr(4097, 'host.xy', '10.0.0.9')).host).toEqual(newer.host)
  })
})

test('an unspoofed host of more than 255 bytes is no label', () => {
  expect(decodePacket(xdr(136, 'h'.repeat(255), 'foo', 0)).host).toEqual({ spoofed: false, label: 'h'.repeat(255) })
  expect(decodePacket(xdr(136, 'h'.repeat(256), 'foo', 0)).host).toEqual({ spoofed: false, label: '' })
})

test('a value that is a byte order mark and text keeps the mark', () => {
  expect(decodePacket(xdr(8, '\ufeffLinux'))).toMatchObject({ value: '\ufeffLinux' })
})

test('the table of fixed metrics is the one that is documented', () => {
  const page = readFileSync(new URL('../../../docs/protocol/gmetric.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| (\d+) \| `(\w+)` \| (\w+) \|$/gm)].map(([, id, name, type]) => ({
    id,
    name,
    type,
  }))
  expect(rows.map(({ id }) => Number(id))).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
  expect(CORE_METRICS).toEqual([undefined, ...rows.map(({ name, type }) => ({ name, type }))])
})
