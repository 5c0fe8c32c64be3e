/** What the bytes of a sample and its timestamp say. */
import { MonoType } from './constants.ts'

const TICKS_PER_MICROSECOND = 10n
/** 1970-01-01 in ticks of 100 ns since 0001-01-01 (.NET, and Mono until 2014), and since 1601-01-01 (Mono since). */
const UNIX_SINCE_1 = 621_355_968_000_000_000n
const UNIX_SINCE_1601 = 116_444_736_000_000_000n
/** Ticks from here on count from the year 1: it is the year 1268 there, and 2868 by the other count. */
const LEAST_SINCE_1 = 400_000_000_000_000_000n

/** A number for INT and DOUBLE, a bigint for LONG and WORD; undefined if these bytes cannot be of the type. */
export function readSample(type: MonoType, bytes: Uint8Array): number | bigint | undefined {
  const { length } = bytes
  const view = new DataView(bytes.buffer, bytes.byteOffset, length)
  switch (type) {
    case MonoType.INT:
      return length === 4 ? view.getInt32(0, true) : undefined
    case MonoType.DOUBLE:
      return length === 8 ? view.getFloat64(0, true) : undefined
    case MonoType.WORD:
      if (length === 4) return BigInt(view.getInt32(0, true))
      return length === 8 ? view.getBigInt64(0, true) : undefined
    default:
      return length === 8 ? view.getBigInt64(0, true) : undefined
  }
}

/** Microseconds since 1970 of a Sampling's timestamp, whichever year it counts from; undefined if that is no time after 1970. */
export function microsecondsOf(ticks: bigint): number | undefined {
  const since = ticks >= LEAST_SINCE_1 ? UNIX_SINCE_1 : UNIX_SINCE_1601
  const microseconds = (ticks - since) / TICKS_PER_MICROSECOND
  return microseconds > 0n && microseconds <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(microseconds) : undefined
}
