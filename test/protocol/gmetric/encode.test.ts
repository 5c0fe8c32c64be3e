import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodePacket } from '../../../protocol/gmetric/decode.ts'
import { encodeMetadata, encodeText, encodeUint32 } from '../../../protocol/gmetric/encode.ts'
import type { GmetricPacket, PacketHost } from '../../../protocol/gmetric/packet.ts'
import { captured, vector } from './vectors.ts'

/** What the encoder makes of a packet, if it is of a kind that it writes. */
function encode(packet: GmetricPacket): Uint8Array | undefined {
  if (packet.kind === 'metadata') return encodeMetadata(packet.host, packet.metric, packet.metadata)
  if (packet.kind === 'value' && typeof packet.value !== 'number') {
    return encodeText(packet.host, packet.metric, packet.value)
  }
  if (packet.kind === 'value' && packet.type === 'uint32' && typeof packet.value === 'number') {
    return encodeUint32(packet.host, packet.metric, packet.value)
  }
  return undefined
}

describe('what gmetric and gmond were seen to send is written byte for byte', () => {
  const written = captured.filter(({ packet }) => encode(packet))

  test('for all that they send as metadata, text or uint32', () => {
    expect(written.length).toBe(23)
  })

  test.each(written)('$name', ({ packet, bytes }) => {
    expect(Buffer.from(encode(packet)!).toString('hex')).toBe(Buffer.from(bytes).toString('hex'))
  })
})

test.each(['Ruby 128 foo: an empty host, an empty GROUP', 'Ruby 133 foo'])('%s is written byte for byte', (name) => {
  const { packet, bytes } = vector(name)
  expect(encode(packet)).toEqual(bytes)
})

test('a value that is no UTF-8 is written as the bytes it is', () => {
  const { packet, bytes } = vector('133 with a Latin-1 value')
  expect(encode(packet)).toEqual(bytes)
})

test('what is written decodes to what was given', () => {
  const name = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 60 })
  const address = fc.ipV4()
  const host: fc.Arbitrary<PacketHost> = fc.oneof(
    fc.record({ spoofed: fc.constant(false as const), label: fc.oneof(fc.constant(''), name) }),
    fc.record({ spoofed: fc.constant(true as const), address, name }),
  )
  const word = fc.nat(0xffffffff)
  const label = fc.string({ unit: 'grapheme', maxLength: 20 })
  const extra = fc.array(fc.record({ key: label, data: label }), { maxLength: 64 })
  const metadata = fc.record({ type: label, units: label, slope: word, tmax: word, dmax: word, extra })
  fc.assert(
    fc.property(host, name, metadata, label, (host, metric, metadata, value) => {
      expect(decodePacket(encodeMetadata(host, metric, metadata))).toEqual({ kind: 'metadata', host, metric, metadata })
      const packet = { kind: 'value', host, metric, format: '%s', type: 'string', value }
      expect(decodePacket(encodeText(host, metric, value))).toEqual(packet)
    }),
  )
})
