/**
 * As much XDR as the kit needs: where a field ends, and what it says. Written from RFC 4506 and the tables of the
 * specification, apart from every codec of a server that might be tested with it.
 */
import { types } from './words.ts'

/** Bytes that are no such field. `at`: the offset in what was given. */
export class NotXdr extends Error {
  readonly at: number

  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}

export function double(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(value)
  return bytes
}

export function opaque(bytes: Uint8Array): Buffer {
  return Buffer.concat([uint32(bytes.length), bytes, Buffer.alloc(-bytes.length & 3)])
}

export function string(text: string): Buffer {
  return opaque(Buffer.from(text))
}

export function isWhole(bytes: Buffer, at: number, length: number): number {
  if (at + length > bytes.length) throw new NotXdr('the frame ends inside a field', at)
  return at + length
}

/** Where an opaque or string that begins at `at` ends. */
export function opaqueEnd(bytes: Buffer, at: number): number {
  isWhole(bytes, at, 4)
  const length = bytes.readUInt32BE(at)
  const end = isWhole(bytes, at + 4, length)
  const padded = isWhole(bytes, end, -length & 3)
  if (bytes.subarray(end, padded).some((byte) => byte !== 0)) throw new NotXdr('padding that is not zero', end)
  return padded
}

/** The bytes inside an opaque or string that begins at `at`. */
export function inside(bytes: Buffer, at = 0): Buffer {
  opaqueEnd(bytes, at)
  return bytes.subarray(at + 4, at + 4 + bytes.readUInt32BE(at))
}

/** Where a value of a type ends. */
export function valueEnd(bytes: Buffer, at: number, type: number, depth = 1): number {
  switch (type) {
    case types.INT32:
    case types.UINT32:
      return isWhole(bytes, at, 4)
    case types.BOOLEAN:
      isWhole(bytes, at, 4)
      if (bytes.readUInt32BE(at) > 1) throw new NotXdr('a boolean that is neither 0 nor 1', at)
      return at + 4
    case types.INT64:
    case types.UINT64:
    case types.DOUBLE:
      return isWhole(bytes, at, 8)
    case types.STRING:
    case types.OPAQUE:
      return opaqueEnd(bytes, at)
    case types.VOID:
      return at
    case types.REC:
      return fieldsEnd(bytes, at, nested(at, depth))
    case types.ARRAY: {
      isWhole(bytes, at, 8)
      const element = bytes.readUInt32BE(at)
      let end = at + 8
      for (let left = bytes.readUInt32BE(at + 4); left > 0; left--)
        end = valueEnd(bytes, end, element, nested(at, depth))
      return end
    }
    default:
      throw new NotXdr(`${type} is no basic type`, at)
  }
}

function nested(at: number, depth: number): number {
  if (depth > 4) throw new NotXdr('RECs and ARRAYs nested deeper than four', at)
  return depth + 1
}

/** Where a count with so many (name, type, value) ends: a REC, an arglist. */
export function fieldsEnd(bytes: Buffer, at: number, depth = 1): number {
  let end = isWhole(bytes, at, 4)
  for (let left = bytes.readUInt32BE(at); left > 0; left--) end = typedEnd(bytes, opaqueEnd(bytes, end), depth)
  return end
}

/** Where a type with its value ends. */
export function typedEnd(bytes: Buffer, at: number, depth = 1): number {
  isWhole(bytes, at, 4)
  return valueEnd(bytes, at + 4, bytes.readUInt32BE(at), depth)
}
