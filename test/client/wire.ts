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

export const caps = (...auth: readonly string[]): Buffer => offers({ auth })

export function offers({
  auth = [],
  layer = [],
  generation = [],
}: {
  readonly auth?: readonly string[]
  readonly layer?: string[]
  readonly generation?: readonly string[]
}) {
  const text = (name: string) => (value: string) => Buffer.concat([opaque(name), word(7), opaque(value)])
  const texts = [...auth.map(text('auth')), ...layer.map(text('layer')), ...generation.map(text('generation'))]
  const limit = Buffer.concat([opaque('max_frame'), word(2), word(65536)])
  return frame(word(0xfffffffe), word(1), word(1), word(texts.length + 1), ...texts, limit)
}

export function response(seq: number, status: number, result: number, detail?: string): Buffer {
  const rest = detail === undefined ? [] : [opaque(detail)]
  return frame(word(0xffffffff), word(seq), word(status), word(result), ...rest)
}

export const auth = (data: string) => frame(word(0xfffffffd), opaque(data))
export const notice = (code: number, detail: string) => frame(word(0xfffffffb), word(code), word(9), opaque(detail))
/** A value of the time 1700000000 s: its type, and the bytes of it. */
const message = (metric: number, transaction: number, type: number, ...parts: readonly Uint8Array[]) =>
  frame(word(metric), long(transaction), long(1_700_000_000_000_000n), word(type), ...parts)
/** A UINT32. */
export const value = (metric: number, transaction: number, number = 0) => message(metric, transaction, 2, word(number))
export const values = (metric: number, ...transactions: readonly number[]) =>
  Buffer.concat(transactions.map((transaction) => value(metric, transaction)))
/** An OPAQUE of so many bytes. */
export const large = (metric: number, transaction: number, size: number) =>
  message(metric, transaction, 8, opaque(new Uint8Array(size)))
/** What a control gives. */
export const outcome = (id: number, transaction: number, text: string, detail = '') =>
  message(id, transaction, 9, record({ outcome: opaque(text), detail: opaque(detail) }, 7))

export interface TestBinding {
  readonly name: string
  /** UINT32s. */
  readonly args?: Readonly<Record<string, number>>
  readonly mode?: string
}

/** What `producer.bindings` reports of a channel: the ids that it binds, with their names or more. */
export function bindingsAnswer(
  id: number,
  channel: number,
  bound: Readonly<Record<number, string | TestBinding>>,
): Buffer {
  const bindings = Object.entries(bound).map(([metric, binding]) => {
    const { name, args = {}, mode = 'subscribe' } = typeof binding === 'string' ? { name: binding } : binding
    const given = Object.fromEntries(Object.entries(args).map(([arg, number]) => [arg, word(number)]))
    return Buffer.concat([
      word(5),
      field('channel', 2, word(channel)),
      field('metric', 2, word(Number(metric))),
      field('name', 7, opaque(name)),
      field('mode', 7, opaque(mode)),
      field('arguments', 9, record(given, 2)),
    ])
  })
  return message(id, 0, 10, word(9), word(bindings.length), ...bindings)
}
/** It does not know that channel. */
export const noBindingsAnswer = (id: number) => message(id, 0, 10, word(9), word(0))

function field(name: string, type: number, ...bytes: readonly Uint8Array[]): Buffer {
  return Buffer.concat([opaque(name), word(type), ...bytes])
}
function record(fields: Readonly<Record<string, Uint8Array>>, type: number): Buffer {
  const entries = Object.entries(fields)
  return Buffer.concat([word(entries.length), ...entries.map(([name, bytes]) => field(name, type, bytes))])
}
/** Five lost by overflow at that time. */
export const gap = (transaction: number, metric: number) => {
  const time = long(1_700_000_000_000_000n)
  return frame(word(0xfffffffc), long(transaction), word(metric), long(5), time, time, word(1))
}

/** A command that the client sent: its number, seq and the bytes after them. */
export interface Sent {
  readonly command: number
  readonly seq: number
  readonly rest: Buffer
}

const NAMES = [
  'NOP',
  'COLLECT',
  'STOP',
  'SUBSCRIBE',
  'BUFFER',
  'GET',
  'AUTH',
  'DEF_CHANNEL',
  'SET_CHANNEL',
  'DEL_CHANNEL',
]
NAMES.push('COMMIT', 'EXECUTE', 'QUERY', 'WRAP')

/** A command in a few words: `COLLECT gmetric.* host=n1`, `SUBSCRIBE 7 on 0`, `COMMIT 5 through`. */
export function textOf({ command, rest }: Sent): string {
  const words = [NAMES[command]]
  const isNamed = [1, 6, 7, 11, 12, 13].includes(command)
  if (isNamed) words.push(...namedOf(rest, command !== 6 && command !== 13))
  else if (command === 10) {
    words.push(String(rest.readBigUInt64BE(0)))
    if (rest.length > 8 && rest.readUInt32BE(8) === 1) words.push('through')
  } else if (rest.length > 0) words.push(String(rest.readUInt32BE(0)))
  if (command >= 2 && command <= 5) words.push('on', String(rest.readUInt32BE(4)))
  return words.join(' ')
}

/** A name, and the arguments after it as `name=value`. */
function namedOf(rest: Buffer, hasArguments: boolean): string[] {
  let at = 0
  const take = (size: number) => {
    at += size
    return rest.subarray(at - size, at)
  }
  const number = () => take(4).readUInt32BE()
  const text = () => {
    const length = number()
    return take(length + (-length & 3)).toString('utf8', 0, length)
  }
  const words = [text()]
  for (let left = hasArguments ? number() : 0; left > 0; left--) {
    const name = text()
    const type = number()
    if (type === 3) words.push(`${name}=${take(8).readBigInt64BE()}`)
    else if (type === 6) words.push(`${name}=${number() === 1}`)
    else if (type === 7) words.push(`${name}=${text()}`)
    else throw new Error(`an argument of type ${type}`)
  }
  return words
}

/** The two fields of the AUTH command. */
export function authOf({ rest }: Sent): { method: string; data: string } {
  const length = rest.readUInt32BE(0)
  const at = 4 + length + (-length & 3)
  const size = rest.readUInt32BE(at)
  return { method: rest.toString('utf8', 4, 4 + length), data: rest.toString('utf8', at + 4, at + 4 + size) }
}

/** A producer's half of RFC 7677; a header of the client's that binds nothing. */
export function scramServer(clientFirst: string, password = 'pencil') {
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
  const bare = clientFirst.slice(clientFirst.indexOf(',,') + 2)
  const nonce = `${/r=(.*)$/.exec(bare)?.[1]}server`
  const serverFirst = `r=${nonce},s=${salt.toString('base64')},i=4096`
  const hmac = (key: Uint8Array, text: string) => createHmac('sha256', key).update(text).digest()
  const salted = pbkdf2Sync(password, salt, 4096, 32, 'sha256')
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
