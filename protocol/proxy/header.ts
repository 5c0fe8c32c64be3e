/**
 * The binary header of the PROXY protocol, version 2: with it a proxy begins a connection that it passes on, and says who is at
 * the other end. The specification is doc/proxy-protocol.txt of HAProxy. TCP over IPv4 and IPv6 is read and written; a LOCAL
 * header says that the connection is the proxy's own. The checksum (PP2_TYPE_CRC32C) is passed on as a TLV and not checked.
 */
import ipaddr from 'ipaddr.js'
import { ProtocolError } from '../errors.ts'

/** Readable text would look like a header of version 1, or like a request of another protocol; this looks like neither. */
const SIGNATURE = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a)
/** The signature, version and command, family and transport, and the length of the rest. */
const FIXED_BYTES = SIGNATURE.length + 4
const VERSION = 0x2
const [LOCAL, PROXY] = [0x0, 0x1]
/** The family is in the upper half of the byte, the transport (1 for a stream) in the lower one. */
const [UNSPECIFIED, TCP_OVER_IPV4, TCP_OVER_IPV6] = [0x00, 0x11, 0x21]
const [IPV4_BYTES, IPV6_BYTES, PORT_BYTES] = [4, 16, 2]
/** The type and the length of a TLV. */
const TLV_FIXED_BYTES = 3
const MAX_REST_BYTES = 0xffff
/** A TLV without meaning, which fills space. */
const NOOP = 0x04
/** The bytes after the fixed part that a reader accepts unless told otherwise: both addresses of TCP over IPv6, and small TLVs. */
const DEFAULT_MAX_BYTES = 512

export interface ProxyEndpoint {
  /** An IPv4 or IPv6 address, as node:net writes it. */
  readonly address: string
  readonly port: number
}

/** A field of type, length and value. Types from 0xe0 to 0xef are left to applications. */
export interface ProxyTlv {
  readonly type: number
  readonly value: Uint8Array
}

export interface ProxyHeader {
  /**
   * Who connected to the proxy, and where; undefined if the proxy speaks for itself (LOCAL), or could not say it (an
   * unspecified family).
   */
  readonly route: { readonly from: ProxyEndpoint; readonly to: ProxyEndpoint } | undefined
  /** In their order. A LOCAL header has none, because whatever it has after its fixed part means nothing. */
  readonly tlvs: readonly ProxyTlv[]
}

/** Throws RangeError if the two addresses are not of one family, or the header would be longer than headers may be. */
export function encodeProxyHeader({ route, tlvs }: ProxyHeader): Uint8Array {
  const [from, to] = route ? [ipaddr.parse(route.from.address), ipaddr.parse(route.to.address)] : []
  if (from?.kind() !== to?.kind()) throw new RangeError('the two addresses of a PROXY header are of different families')
  const addresses = [...(from?.toByteArray() ?? []), ...(to?.toByteArray() ?? [])]
  const ports = route ? [...bigEndian(route.from.port), ...bigEndian(route.to.port)] : []
  const fields = route ? tlvs : []
  const rest =
    addresses.length + ports.length + fields.reduce((sum, { value }) => sum + TLV_FIXED_BYTES + value.length, 0)
  if (rest > MAX_REST_BYTES) throw new RangeError(`a PROXY header has at most ${MAX_REST_BYTES} bytes, not ${rest}`)
  const family = from === undefined ? UNSPECIFIED : from.kind() === 'ipv4' ? TCP_OVER_IPV4 : TCP_OVER_IPV6
  const command = route ? PROXY : LOCAL
  const header = new Uint8Array(FIXED_BYTES + rest)
  header.set([...SIGNATURE, (VERSION << 4) | command, family, ...bigEndian(rest), ...addresses, ...ports])
  let at = FIXED_BYTES + addresses.length + ports.length
  for (const { type, value } of fields) {
    header.set([type, ...bigEndian(value.length)], at)
    header.set(value, at + TLV_FIXED_BYTES)
    at += TLV_FIXED_BYTES + value.length
  }
  return header
}

/** Reads one header from the beginning of a stream, in pieces of any size. */
export class ProxyHeaderReader {
  readonly #maxBytes: number
  #held = new Uint8Array(0)

  /** `maxBytes`: how many bytes may follow the fixed part of 16 bytes. */
  constructor(maxBytes = DEFAULT_MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /**
   * Takes what arrived next; returns the header once it is complete, with the bytes after it. Throws ProtocolError as soon as
   * the bytes cannot become a header; it must not be called again then, nor after the header was returned.
   */
  take(chunk: Uint8Array): { readonly header: ProxyHeader; readonly rest: Uint8Array } | undefined {
    const held = joined(this.#held, chunk)
    this.#held = held
    checkSignature(held)
    if (held.length < FIXED_BYTES) return undefined
    const length = uint16(held, FIXED_BYTES - 2)
    if (length > this.#maxBytes) {
      const problem = `the PROXY header has ${length} bytes after its first ${FIXED_BYTES}; at most ${this.#maxBytes} are read`
      throw new ProtocolError('TOO_LONG', problem, FIXED_BYTES - 2)
    }
    checkKind(held)
    const end = FIXED_BYTES + length
    if (held.length < end) return undefined
    return { header: decode(held.subarray(0, end)), rest: held.subarray(end) }
  }
}

function checkSignature(held: Uint8Array): void {
  const wrong = SIGNATURE.findIndex((byte, at) => at < held.length && held[at] !== byte)
  if (wrong < 0) return
  throw new ProtocolError(
    'UNKNOWN_MESSAGE',
    'the connection does not begin with a header of the PROXY protocol, version 2',
    wrong,
  )
}

function checkKind(held: Uint8Array): void {
  const [versionAndCommand = 0, family = 0] = held.subarray(SIGNATURE.length)
  if (versionAndCommand >> 4 !== VERSION) {
    const problem = `the PROXY header has version ${versionAndCommand >> 4}; only ${VERSION} is known`
    throw new ProtocolError('BAD_TYPE', problem, SIGNATURE.length)
  }
  const command = versionAndCommand & 0xf
  if (command === LOCAL) return
  if (command !== PROXY) {
    throw new ProtocolError('BAD_TYPE', `the PROXY header has the unknown command ${command}`, SIGNATURE.length)
  }
  if ([UNSPECIFIED, TCP_OVER_IPV4, TCP_OVER_IPV6].includes(family)) return
  const problem = `the PROXY header is about a connection of kind 0x${family.toString(16).padStart(2, '0')}; only TCP over IPv4 and IPv6 is passed on`
  throw new ProtocolError('BAD_TYPE', problem, SIGNATURE.length + 1)
}

/** `bytes` is exactly one header. */
function decode(bytes: Uint8Array): ProxyHeader {
  const [versionAndCommand = 0, family] = bytes.subarray(SIGNATURE.length)
  if ((versionAndCommand & 0xf) === LOCAL) return { route: undefined, tlvs: [] }
  if (family === UNSPECIFIED) return { route: undefined, tlvs: decodeTlvs(bytes, FIXED_BYTES) }
  const size = family === TCP_OVER_IPV4 ? IPV4_BYTES : IPV6_BYTES
  const ports = FIXED_BYTES + 2 * size
  const end = ports + 2 * PORT_BYTES
  if (bytes.length < end) {
    const problem = `the PROXY header has ${bytes.length - FIXED_BYTES} bytes where its addresses need ${end - FIXED_BYTES}`
    throw new ProtocolError('TRUNCATED', problem, bytes.length)
  }
  const endpoint = (index: number): ProxyEndpoint => {
    const at = FIXED_BYTES + index * size
    return {
      address: addressText(bytes.subarray(at, at + size)),
      port: uint16(bytes, ports + index * PORT_BYTES),
    }
  }
  return { route: { from: endpoint(0), to: endpoint(1) }, tlvs: decodeTlvs(bytes, end) }
}

function decodeTlvs(bytes: Uint8Array, start: number): ProxyTlv[] {
  const tlvs: ProxyTlv[] = []
  let at = start
  while (at < bytes.length) {
    const from = at + TLV_FIXED_BYTES
    const end = from > bytes.length ? Number.POSITIVE_INFINITY : from + uint16(bytes, at + 1)
    if (end > bytes.length) {
      throw new ProtocolError('TRUNCATED', 'a TLV of the PROXY header goes on after the end of the header', at)
    }
    const type = bytes[at] as number
    if (type !== NOOP) tlvs.push({ type, value: bytes.slice(from, end) })
    at = end
  }
  return tlvs
}

/** As node:net writes it, which writes the last part of a mapped IPv4 address with dots. */
function addressText(bytes: Uint8Array): string {
  const ip = ipaddr.fromByteArray([...bytes])
  return ip instanceof ipaddr.IPv6 && ip.isIPv4MappedAddress() ? `::ffff:${ip.toIPv4Address()}` : ip.toString()
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}

function uint16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
}

function bigEndian(value: number): [number, number] {
  return [value >> 8, value & 0xff]
}
