import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { ProtocolError } from '../../../protocol/errors.ts'
import { decodePacket } from '../../../protocol/gmetric/decode.ts'
import { PacketDecoder } from '../../../protocol/gmetric/decoder.ts'
import { vectors } from './vectors.ts'

function outcome(decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): unknown {
  try {
    return decode(bytes)
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

describe.each(vectors)('$name', ({ bytes, packet }) => {
  it('decodes the same when it comes again, with another value, cut off, and with bytes after it', () => {
    const decoder = new PacketDecoder()
    for (let round = 0; round < 3; round++) {
      expect(decoder.decode(bytes)).toEqual(packet)
      const other = Uint8Array.from(bytes)
      other[other.length - 1] = round
      const longer = Buffer.concat([bytes, Buffer.from('more')])
      for (const datagram of [other, bytes.subarray(0, bytes.length - 4), longer]) {
        expect(outcome((each) => decoder.decode(each), datagram)).toEqual(outcome(decodePacket, datagram))
      }
    }
  })

  it('keeps nothing of the buffer', () => {
    const decoder = new PacketDecoder()
    const buffer = Buffer.from(bytes)
    decoder.decode(buffer)
    buffer.fill(0xee)
    expect(decoder.decode(bytes)).toEqual(packet)
  })
})

test('whatever came before, a datagram is decoded as by itself', () => {
  const bytes = fc.constantFrom(...vectors).map((vector) => Uint8Array.from(vector.bytes))
  const changed = fc.tuple(bytes, fc.nat(), fc.nat(255)).map(([datagram, at, byte]) => {
    datagram[at % datagram.length] = byte
    return datagram
  })
  fc.assert(
    fc.property(fc.array(changed, { maxLength: 20 }), (datagrams) => {
      const decoder = new PacketDecoder()
      for (const datagram of datagrams) {
        expect(outcome((each) => decoder.decode(each), datagram)).toEqual(outcome(decodePacket, datagram))
      }
    }),
  )
})
