import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ProtocolError, type ProtocolErrorCode } from '../../../protocol/errors.ts'
import { encodeProxyHeader, type ProxyHeader, ProxyHeaderReader } from '../../../protocol/proxy/header.ts'
import { hex, toHex } from '../../support/bytes.ts'
import { times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

interface Vector {
  readonly name: string
  readonly hex: string
  readonly from: { readonly address: string; readonly port: number } | null
  readonly to: { readonly address: string; readonly port: number } | null
  readonly tlvs: readonly { readonly type: number; readonly hex: string }[]
}

const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL('../../vectors/proxy/haproxy.json', import.meta.url), 'utf8'),
)
const headerOf = ({ from, to, tlvs }: Vector): ProxyHeader => ({
  route: from && to ? { from, to } : undefined,
  tlvs: tlvs.map(({ type, hex: value }) => ({ type, value: hex(value) })),
})

/** The beginning of every header, from section 2.2 of the specification. */
const SIGNATURE = '0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A'
const IPV4 = 'c0000201 c6336402 c000 01bb'

const read = (bytes: Uint8Array, maxBytes?: number) => new ProxyHeaderReader(maxBytes).take(bytes)

function readByteByByte(bytes: Uint8Array) {
  const reader = new ProxyHeaderReader()
  for (const [at, byte] of bytes.entries()) {
    const done = reader.take(Uint8Array.of(byte))
    if (done !== undefined) return { ...done, at }
  }
  return undefined
}

function refusal(text: string, maxBytes?: number): ProtocolErrorCode {
  try {
    read(hex(text), maxBytes)
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
  throw new Error('it was not refused')
}

describe.each(vectors)('the header $name of HAProxy', (vector) => {
  const bytes = hex(vector.hex)
  const header = headerOf(vector)

  it('is read', () => {
    expect(read(bytes)).toEqual({ header, rest: new Uint8Array(0) })
  })

  it('is read byte by byte, and what follows is left', () => {
    expect(readByteByByte(Uint8Array.of(...bytes, 1, 2))).toMatchObject({ header, at: bytes.length - 1 })
    expect(read(Uint8Array.of(...bytes, 1, 2))).toEqual({ header, rest: Uint8Array.of(1, 2) })
  })

  it('is not complete before its last byte', () => {
    for (const end of bytes.keys()) expect(read(bytes.subarray(0, end))).toBeUndefined()
  })

  it('is written', () => {
    expect(toHex(encodeProxyHeader(header))).toBe(vector.hex)
  })
})

describe('the layouts of the specification', () => {
  it('of TCP over IPv4: addresses of 4 bytes, then ports', () => {
    expect(read(hex(`${SIGNATURE} 21 11 000c ${IPV4}`))?.header).toEqual({
      route: { from: { address: '192.0.2.1', port: 49152 }, to: { address: '198.51.100.2', port: 443 } },
      tlvs: [],
    })
  })

  it('of TCP over IPv6: addresses of 16 bytes, then ports', () => {
    const addresses = '20010db8000000000000000000000001 00000000000000000000ffffc0000201'
    expect(read(hex(`${SIGNATURE} 21 21 0024 ${addresses} c000 01bb`))?.header.route).toEqual({
      from: { address: '2001:db8::1', port: 49152 },
      to: { address: '::ffff:192.0.2.1', port: 443 },
    })
  })

  it('of LOCAL: whatever follows is left out', () => {
    const none = { route: undefined, tlvs: [] }
    expect(read(hex(`${SIGNATURE} 20 00 0000`))?.header).toEqual(none)
    expect(read(hex(`${SIGNATURE} 20 11 000c ${IPV4}`))?.header).toEqual(none)
    expect(read(hex(`${SIGNATURE} 20 ff 0003 ffffff 01`))).toEqual({ header: none, rest: Uint8Array.of(1) })
  })

  it('of an unspecified family: nobody is named', () => {
    expect(read(hex(`${SIGNATURE} 21 00 0000`))?.header).toEqual({ route: undefined, tlvs: [] })
  })

  it('of TLVs: those without meaning (PP2_TYPE_NOOP) are left out, those of an application are kept', () => {
    const tlvs = '04 0002 0000 e0 0003 746370 ee 0000'
    expect(read(hex(`${SIGNATURE} 21 11 001a ${IPV4} ${tlvs}`))?.header.tlvs).toEqual([
      { type: 0xe0, value: new TextEncoder().encode('tcp') },
      { type: 0xee, value: new Uint8Array(0) },
    ])
  })
})

describe('a header is refused', () => {
  it.each<[string, string, ProtocolErrorCode]>([
    ['with another signature', '0D 0A 0D 0A 00 0D 0A 51 55 49 54 0B', 'UNKNOWN_MESSAGE'],
    ['of version 1', `${Buffer.from('PROXY TCP4 192.0.2.1').toString('hex')}`, 'UNKNOWN_MESSAGE'],
    ['that is a handshake of TLS', '16 03 01 02 00 01', 'UNKNOWN_MESSAGE'],
    ['of another version', `${SIGNATURE} 31 11 000c ${IPV4}`, 'BAD_TYPE'],
    ['with an unknown command', `${SIGNATURE} 22 11 000c ${IPV4}`, 'BAD_TYPE'],
    ['about UDP', `${SIGNATURE} 21 12 000c ${IPV4}`, 'BAD_TYPE'],
    ['about a Unix socket', `${SIGNATURE} 21 31 0000`, 'BAD_TYPE'],
    ['without room for its addresses', `${SIGNATURE} 21 11 000b c0000201 c6336402 c000 01`, 'TRUNCATED'],
    ['without addresses', `${SIGNATURE} 21 21 0000`, 'TRUNCATED'],
    ['with a TLV that is cut off in its length', `${SIGNATURE} 21 11 000e ${IPV4} e0 00`, 'TRUNCATED'],
    ['with a TLV that is longer than the header', `${SIGNATURE} 21 11 0010 ${IPV4} e0 0002 00`, 'TRUNCATED'],
  ])('%s', (_what, text, code) => {
    expect(refusal(text)).toBe(code)
  })

  it('if it is longer than the reader accepts, before the rest has come', () => {
    expect(refusal(`${SIGNATURE} 21 11 0201`)).toBe('TOO_LONG')
    expect(refusal(`${SIGNATURE} 21 11 ffff`)).toBe('TOO_LONG')
    expect(refusal(`${SIGNATURE} 21 11 000d`, 12)).toBe('TOO_LONG')
    expect(read(hex(`${SIGNATURE} 21 11 0200`))).toBeUndefined()
  })

  it('at the first byte that is wrong', () => {
    const reader = new ProxyHeaderReader()
    expect(reader.take(hex('0d0a'))).toBeUndefined()
    expect(() => reader.take(hex('0a'))).toThrow('does not begin with a header of the PROXY protocol')
  })
})

it('random bytes after the signature are a header, or an error of ours', () => {
  const random = new Random(1)
  for (let i = 0; i < times({ short: 1_000, long: 5_000 }); i++) {
    const rest = Uint8Array.from({ length: random.below(48) }, () => random.below(256))
    const kind = [0x20, 0x21, 0x21, random.below(256)][random.below(4)] as number
    const family = [0x11, 0x21, 0x00, random.below(256)][random.below(4)] as number
    const bytes = Uint8Array.of(...hex(SIGNATURE), kind, family, 0, random.below(48), ...rest)
    let whole: unknown
    try {
      whole = read(bytes)?.header
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      expect(() => readByteByByte(bytes)).toThrow(ProtocolError)
      continue
    }
    expect(readByteByByte(bytes)?.header).toEqual(whole)
  }
})

describe('a header is not written', () => {
  const endpoint = { address: '192.0.2.1', port: 1 }

  it('from one family to the other', () => {
    const route = { from: endpoint, to: { address: '::1', port: 1 } }
    expect(() => encodeProxyHeader({ route, tlvs: [] })).toThrow(RangeError)
  })

  it('beyond its greatest length', () => {
    const tlvs = [{ type: 0xe0, value: new Uint8Array(65_535 - 15 + 1) }]
    expect(() => encodeProxyHeader({ route: { from: endpoint, to: endpoint }, tlvs })).toThrow(RangeError)
  })
})
