/** Changes to the messages of a producer, for wrong servers. */
import type { Mutation } from './mutating-proxy.ts'

export const mid = (frame: Buffer): number => frame.readUInt32BE(4)
export const isResponse = (frame: Buffer): boolean => mid(frame) === 0xffffffff
export const isValue = (frame: Buffer): boolean => mid(frame) <= 0x7fffffff
export const isCapabilities = (frame: Buffer): boolean => mid(frame) === 0xfffffffe

/** The same for every message of every connection. */
export function always(change: (frame: Buffer) => Buffer | readonly Buffer[]): Mutation {
  return () => (frame) => {
    const changed = change(frame)
    return Buffer.isBuffer(changed) ? [changed] : changed
  }
}

export function put(frame: Buffer, at: number, number: number): Buffer {
  frame.writeUInt32BE(number, at)
  return frame
}

/** With the length that it has. */
export function resized(frame: Buffer): Buffer {
  return put(frame, 0, frame.length - 4)
}

/** Each text in place of another of the same length. */
export function saying(other: string, instead: string): Mutation {
  return always((frame) => replaced(frame, other, instead))
}

function replaced(frame: Buffer, other: string, instead: string): Buffer {
  if (other.length !== instead.length) throw new Error(`${other} and ${instead} differ in length`)
  for (let at = frame.indexOf(other); at >= 0; at = frame.indexOf(other, at + 1)) frame.write(instead, at)
  return frame
}

/** Responses with one status have another. `seq`: only those to this. */
export function answering(status: number, instead: number, seq?: number): Mutation {
  return always((frame) => {
    const isMeant = isResponse(frame) && frame.readUInt32BE(12) === status
    if (!isMeant || (seq !== undefined && frame.readUInt32BE(8) !== seq)) return frame
    put(frame, 12, instead)
    // OK and AUTH_NEEDED have no detail [MON 3.1].
    return instead > 1 ? frame : resized(frame.subarray(0, 20))
  })
}

/** PRODUCER_CAPS that offer one thing more, from the `from`th on. */
export function offering(name: string, word: string, from = 1): Mutation {
  return () => {
    let seen = 0
    return (frame) => {
      if (!isCapabilities(frame) || ++seen < from) return [frame]
      put(frame, 16, frame.readUInt32BE(16) + 1)
      return [resized(Buffer.concat([frame, xdrString(name), Buffer.from('00000007', 'hex'), xdrString(word)]))]
    }
  }
}

/** No PRODUCER_CAPS but the first; the next message stands where they should: nothing has to be waited for. */
export function withoutSecondCapabilities(): Mutation {
  return () => {
    let seen = 0
    return (frame) => {
      if (!isCapabilities(frame) || ++seen < 2) return [frame]
      return [Buffer.from('00000010fffffffffffffffd0000000000000000', 'hex')]
    }
  }
}

function xdrString(text: string): Buffer {
  const bytes = Buffer.alloc(4 + text.length + (-text.length & 3))
  bytes.writeUInt32BE(text.length)
  bytes.write(text, 4)
  return bytes
}
