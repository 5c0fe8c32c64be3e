/**
 * The recorded connections of test/vectors/qmf: their chunks as they were read, and the AMQP 0-10 transfers in them. Reads the
 * frames by hand, independent of our own code, and only what a transfer needs.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

export interface Chunk {
  readonly from: 'client' | 'broker'
  /** Since the recording began. */
  readonly ms: number
  readonly bytes: Uint8Array
}
export interface Transfer {
  readonly from: Chunk['from']
  readonly ms: number
  /** To the broker: the exchange; from it: what the console called its subscription. */
  readonly destination: string
  /** '' where the header has none. */
  readonly exchange: string
  readonly routingKey: string
  /** Of the reply-to of a request. */
  readonly replyKey?: string
  readonly body: Uint8Array
}

/** The console of QMF v1, or that of v2, whose files are compressed. */
type Recording = 'console' | 'v2-console'

const file = (name: string) => readFileSync(new URL(`../../vectors/qmf/${name}`, import.meta.url))
const textOf = (recording: Recording, name: string) =>
  (recording === 'console' ? file(name) : gunzipSync(file(`${name}.gz`))).toString('utf8')
const lines = (text: string) => text.split('\n').filter((line) => line !== '')

export function capturedChunks(recording: Recording = 'console'): Chunk[] {
  return lines(textOf(recording, `${recording}.jsonl`)).map((line) => {
    const { from, ms, hex } = JSON.parse(line) as { from: Chunk['from']; ms: number; hex: string }
    return { from, ms, bytes: new Uint8Array(Buffer.from(hex, 'hex')) }
  })
}

/** What an independent console made of it; integers too large for a number are bigints. */
export function capturedConclusions(recording: Recording = 'console'): Record<string, unknown>[] {
  const large = /(?<=[[:,] ?)-?\d{16,}(?=[,\]}])/g
  const revive = (_: string, value: unknown) =>
    typeof value === 'string' && value.startsWith('bigint:') ? BigInt(value.slice(7)) : value
  return lines(textOf(recording, `${recording}.expected.jsonl`)).map((line) =>
    JSON.parse(line.replace(large, '"bigint:$&"'), revive),
  )
}

/** All transfers in the order of their last bytes. */
export function capturedTransfers(chunks: readonly Chunk[] = capturedChunks()): Transfer[] {
  const streams = { client: Buffer.alloc(0), broker: Buffer.alloc(0) }
  const segments: Record<Chunk['from'], Buffer[]> = { client: [], broker: [] }
  const transfers: Transfer[] = []
  for (const { from, ms, bytes } of chunks) {
    let rest = Buffer.concat([streams[from], bytes])
    while (rest.length >= 8) {
      const size = rest.toString('latin1', 0, 4) === 'AMQP' ? 8 : rest.readUInt16BE(2)
      if (rest.length < size) break
      const [flags, type] = [rest[0]!, rest[1]!]
      // Controls come between anything; type 1 begins a command, its header and body follow.
      if (size > 8 && type >= 1) segments[from][type] = joined(segments[from][type], flags, rest.subarray(12, size))
      if (size > 8 && type >= 1 && (flags & 0x05) === 0x05) {
        const [, command, header, body] = segments[from]
        if (command?.readUInt16BE(0) === 0x0401) transfers.push({ from, ms, ...transfer(command, header!, body!) })
        segments[from] = []
      }
      rest = rest.subarray(size)
    }
    streams[from] = rest
  }
  return transfers
}

/** The payload of a segment; its first frame has the flag 2. */
function joined(before: Buffer | undefined, flags: number, payload: Buffer): Buffer {
  return before && (flags & 0x02) === 0 ? Buffer.concat([before, payload]) : payload
}

function transfer(command: Buffer, header: Buffer, body: Buffer): Omit<Transfer, 'from' | 'ms'> {
  const found = { destination: text(command, 6), exchange: '', routingKey: '', body: new Uint8Array(body) }
  let replyKey: string | undefined
  for (let at = 0; at < header.length; at += 4 + header.readUInt32BE(at)) {
    const code = header.readUInt16BE(at + 4)
    const flags = header.readUInt16LE(at + 6)
    if (code === 0x0401) {
      let next = at + 8 + widths(flags, [0, 0, 0, 1, 1, 8, 8, 8])
      if (flags & 0x100) found.exchange = text(header, next)
      if (flags & 0x100) next += 1 + header[next]!
      if (flags & 0x200) found.routingKey = text(header, next)
    }
    if (code === 0x0403 && (flags & 0x08) !== 0) {
      if (flags & 0x04) throw new Error('a correlation id was not expected in this recording')
      const reply = at + 8 + widths(flags, [8, 16]) + 4
      replyKey = text(header, reply + 1 + header[reply]!)
    }
  }
  return replyKey === undefined ? found : { ...found, replyKey }
}

function widths(flags: number, bytes: readonly number[]): number {
  return bytes.reduce((sum, width, bit) => sum + (flags & (1 << bit) ? width : 0), 0)
}

function text(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at + 1, at + 1 + bytes[at]!)
}
