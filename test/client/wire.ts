/** Frames as a producer writes them, put together by hand: the tests of the client do not lean on our own encoder. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'

const word = (number: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}
const long = (number: number | bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(number))
  return bytes
}
const opaque = (data: string | Uint8Array) => {
  const bytes = Buffer.from(data)
  return Buffer.concat([word(bytes.length), bytes, Buffer.alloc(-bytes.length & 3)])
}

export function frame(...parts: readonly Uint8Array[]): Buffer {
  const payload = Buffer.concat(parts)
  return Buffer.concat([word(payload.length), payload])
}

export function caps(...auth: readonly string[]): Buffer {
  const methods = auth.map((method) => Buffer.concat([opaque('auth'), word(7), opaque(method)]))
  const limit = Buffer.concat([opaque('max_frame'), word(2), word(65536)])
  return frame(word(0xfffffffe), word(1), word(1), word(auth.length + 1), ...methods, limit)
}

export function response(seq: number, status: number, result: number, detail?: string): Buffer {
  const rest = detail === undefined ? [] : [opaque(detail)]
  return frame(word(0xffffffff), word(seq), word(status), word(result), ...rest)
}

export const auth = (data: string) => frame(word(0xfffffffd), opaque(data))
export const notice = (code: number, detail: string) => frame(word(0xfffffffb), word(code), word(9), opaque(detail))
/** A UINT32 of the time 1700000000 s. */
export const value = (metric: number, transaction: number, number: number) =>
  frame(word(metric), long(transaction), long(1_700_000_000_000_000n), word(2), word(number))
/** Five lost by overflow at that time. */
export const gap = (transaction: number, metric: number) => {
  const time = long(1_700_000_000_000_000n)
  return frame(word(0xfffffffc), long(transaction), word(metric), long(5), time, time, word(1))
}

/** A command that the client sent: its number, seq and the bytes behind them. */
export interface Sent {
  readonly command: number
  readonly seq: number
  readonly rest: Buffer
}

/** The two fields of the AUTH command. */
export function authOf({ rest }: Sent): { method: string; data: string } {
  const length = rest.readUInt32BE(0)
  const at = 4 + length + (-length & 3)
  const size = rest.readUInt32BE(at)
  return { method: rest.toString('utf8', 4, 4 + length), data: rest.toString('utf8', at + 4, at + 4 + size) }
}

/** A producer's half of RFC 7677 for the password "pencil". */
export function scramServer(clientFirst: string) {
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
  const bare = clientFirst.slice('n,,'.length)
  const nonce = `${/r=(.*)$/.exec(bare)?.[1]}server`
  const serverFirst = `r=${nonce},s=${salt.toString('base64')},i=4096`
  const hmac = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text).digest()
  const salted = pbkdf2Sync('pencil', salt, 4096, 32, 'sha256')
  return {
    serverFirst,
    final(clientFinal: string) {
      const [withoutProof = '', proof] = clientFinal.split(',p=')
      const message = `${bare},${serverFirst},${withoutProof}`
      const clientKey = hmac(salted, 'Client Key')
      const signature = hmac(createHash('sha256').update(clientKey).digest(), message)
      const isProven = Buffer.from(clientKey.map((byte, i) => byte ^ signature[i]!)).toString('base64') === proof
      return { isProven, serverFinal: `v=${hmac(hmac(salted, 'Server Key'), message).toString('base64')}` }
    },
  }
}
