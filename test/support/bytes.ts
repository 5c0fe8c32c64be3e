/**
 * Frames built by hand from the specification, independent of our own encoder: `frame(u32(1), u32(seq), str('host.load.one'))`.
 * All return Uint8Arrays in XDR.
 */
const utf8 = new TextEncoder()

export function hex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replaceAll(/\s+/g, ''), 'hex'))
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

export function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts))
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

export function i32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setInt32(0, value)
  return bytes
}

export function u64(value: bigint | number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value))
  return bytes
}

export function f64(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setFloat64(0, value)
  return bytes
}

export function opaque(bytes: Uint8Array): Uint8Array {
  return join(u32(bytes.length), bytes, new Uint8Array(-bytes.length & 3))
}

export function str(text: string): Uint8Array {
  return opaque(utf8.encode(text))
}

/** An argument list: name, basic type, value in XDR. */
export function args(...list: readonly (readonly [string, number, Uint8Array])[]): Uint8Array {
  return join(u32(list.length), ...list.flatMap(([name, type, value]) => [str(name), u32(type), value]))
}

/** A value of gmetric, in the older family of packets: one that needs no other. Slope both, tmax 60, dmax 0. */
export function gmetricPacket(
  type: 'string' | 'uint32' | 'double',
  name: string,
  value: string,
  unit = '',
): Uint8Array {
  return join(u32(0), str(type), str(name), str(value), str(unit), u32(3), u32(60), u32(0))
}

export function frame(...parts: readonly Uint8Array[]): Uint8Array {
  const payload = join(...parts)
  return join(u32(payload.length), payload)
}

/** The statuses, by the numbers of section 4. */
export const status = {
  OK: 0,
  AUTH_NEEDED: 1,
  AUTH_FAILED: 2,
  NOT_AUTHENTICATED: 3,
  ALREADY_AUTHENTICATED: 4,
  UNKNOWN_COMMAND: 5,
  INVALID_ARGUMENT: 6,
  NO_SUCH_METRIC: 7,
  NO_SUCH_ID: 8,
  NO_SUCH_CHANNEL: 9,
  NO_SUCH_CONTROL: 10,
  PERMISSION_DENIED: 11,
  UNSUPPORTED: 12,
  BUSY: 13,
  NO_SUCH_TRANSACTION: 14,
  INTERNAL: 15,
  QUOTA_EXCEEDED: 16,
  STORAGE_FULL: 17,
}

/** The basic types, by the numbers of the specification. */
export const type = {
  int32: 1,
  uint32: 2,
  int64: 3,
  uint64: 4,
  double: 5,
  boolean: 6,
  string: 7,
  opaque: 8,
  rec: 9,
  array: 10,
  void: 11,
}

const number = {
  NOP: 0,
  COLLECT: 1,
  STOP: 2,
  SUBSCRIBE: 3,
  BUFFER: 4,
  GET: 5,
  AUTH: 6,
  DEF_CHANNEL: 7,
  SET_CHANNEL: 8,
  DEL_CHANNEL: 9,
  COMMIT: 10,
  EXECUTE: 11,
  QUERY: 12,
  WRAP: 13,
}
export const ALL = 0xffffffff
const none = args()

/** Whole command frames, by the table of section 2. */
export const command = {
  nop: (seq: number) => frame(u32(number.NOP), u32(seq)),
  collect: (seq: number, metric: string, list = none) => frame(u32(number.COLLECT), u32(seq), str(metric), list),
  stop: (seq: number, metric: number, channel = 0) => frame(u32(number.STOP), u32(seq), u32(metric), u32(channel)),
  subscribe: (seq: number, metric: number, channel = 0) =>
    frame(u32(number.SUBSCRIBE), u32(seq), u32(metric), u32(channel)),
  buffer: (seq: number, metric: number, channel = 0) => frame(u32(number.BUFFER), u32(seq), u32(metric), u32(channel)),
  get: (seq: number, metric: number, channel = 0) => frame(u32(number.GET), u32(seq), u32(metric), u32(channel)),
  auth: (seq: number, method: string, data: Uint8Array) => frame(u32(number.AUTH), u32(seq), str(method), opaque(data)),
  defChannel: (seq: number, url = '', list = none) => frame(u32(number.DEF_CHANNEL), u32(seq), str(url), list),
  setChannel: (seq: number, channel: number) => frame(u32(number.SET_CHANNEL), u32(seq), u32(channel)),
  delChannel: (seq: number, channel: number) => frame(u32(number.DEL_CHANNEL), u32(seq), u32(channel)),
  commit: (seq: number, transaction: number) => frame(u32(number.COMMIT), u32(seq), u64(transaction)),
  commitThrough: (seq: number, transaction: number) => frame(u32(number.COMMIT), u32(seq), u64(transaction), u32(1)),
  execute: (seq: number, control: string, list = none) => frame(u32(number.EXECUTE), u32(seq), str(control), list),
  query: (seq: number, metric: string, list = none) => frame(u32(number.QUERY), u32(seq), str(metric), list),
  wrap: (seq: number, layer: string) => frame(u32(number.WRAP), u32(seq), str(layer)),
  unknown: (seq: number, code: number) => frame(u32(code), u32(seq)),
}
