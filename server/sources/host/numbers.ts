/**
 * Numbers in kernel text. A token that is missing, is not a number or does not fit becomes `undefined`, which is VOID on
 * the wire: never NaN, and never a wrapped or rounded counter.
 */

const MAX_UINT32 = 0xffff_ffff
const MAX_UINT64 = 0xffff_ffff_ffff_ffffn
const DIGITS = /^\d{1,20}$/
const DECIMAL = /^\d{1,300}(\.\d{1,300})?$/

export function uint64(token: string | undefined): bigint | undefined {
  if (token === undefined || !DIGITS.test(token)) return undefined
  return fit64(BigInt(token))
}

/** `count` times `unit`, for values that the kernel counts in KiB or sectors; undefined if the product exceeds 64 bits. */
export function scaled(count: bigint | undefined, unit: bigint): bigint | undefined {
  return count === undefined ? undefined : fit64(count * unit)
}

export function uint32(token: string | undefined): number | undefined {
  const value = uint53(token)
  return value !== undefined && value <= MAX_UINT32 ? value : undefined
}

export function uint53(token: string | undefined): number | undefined {
  if (token === undefined || !DIGITS.test(token)) return undefined
  const value = Number(token)
  return Number.isSafeInteger(value) ? value : undefined
}

export function decimal(token: string | undefined): number | undefined {
  return token !== undefined && DECIMAL.test(token) ? Number(token) : undefined
}

/** The words of a line; none for an empty one. */
export function words(line: string): readonly string[] {
  return line.match(/\S+/g) ?? []
}

/** Adds up one counter of several devices, modulo 2^64 as the kernel does; undefined if no device has it. */
export function sumOf(counts: Iterable<bigint | undefined>): bigint | undefined {
  let sum: bigint | undefined
  for (const count of counts) {
    if (count !== undefined) sum = BigInt.asUintN(64, (sum ?? 0n) + count)
  }
  return sum
}

function fit64(value: bigint): bigint | undefined {
  return value <= MAX_UINT64 ? value : undefined
}
