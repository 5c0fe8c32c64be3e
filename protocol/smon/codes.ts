/**
 * The numbers of smon: a lead byte, followed by up to 8 bytes of payload, big-endian.
 *
 * 00..DF base + lead    E0..E7 base + 0xE0 + payload    E8..EF base - payload    F0..F7 payload
 *
 * Only the positive step is biased by 0xE0, because a smaller step fits the lead. `base` depends on the role of the number.
 */
export const STEP_UP = 0xe0
export const STEP_DOWN = 0xe8
export const ABSOLUTE = 0xf0
/** The first lead that does not begin a number: F8 and F9 are reserved for wider numbers. */
export const NO_NUMBER = 0xf8
export const INDEX_PUSH = 0xfa
export const INDEX_LAST = 0xfb
export const INDEX_BEFORE_LAST = 0xfc
export const INDEX_CLEAR = 0xfd
/** After 16 FF in a string it is dropped; after more, it ends the resynchronisation. */
export const BREAK = 0xfe
export const FILL = 0xff

/** The largest number of consecutive FF in a valid stream. */
export const LONGEST_RUN = 16

const TWO_32 = 0x1_0000_0000
const MAX_UINT64 = 0xffff_ffff_ffff_ffffn

/** Bytes of payload after a lead of E0..F7. */
export function payloadBytes(lead: number): number {
  return (lead & 7) + 1
}

/** The decoded number, as long as everything is below 2^53. `payload` is ignored for leads below E0. */
export function apply(lead: number, base: number, payload: number): number {
  if (lead < STEP_UP) return base + lead
  if (lead < STEP_DOWN) return base + STEP_UP + payload
  return lead < ABSOLUTE ? base - payload : payload
}

/**
 * The exact decoded number, from the two halves of the payload: a number below 2^53, a bigint from there on, and undefined
 * outside 0 to 2^64-1.
 */
export function applyExactly(
  lead: number,
  base: number | bigint,
  high: number,
  low: number,
): number | bigint | undefined {
  if (typeof base === 'number') {
    const near = apply(lead, base, high * TWO_32 + low)
    if (near >= 0 && near <= Number.MAX_SAFE_INTEGER) return near
  }
  const payload = (BigInt(high) << 32n) | BigInt(low)
  const from = BigInt(base)
  let result = payload
  if (lead < STEP_UP) result = from + BigInt(lead)
  else if (lead < STEP_DOWN) result = from + BigInt(STEP_UP) + payload
  else if (lead < ABSOLUTE) result = from - payload
  if (result < 0n || result > MAX_UINT64) return undefined
  return result <= Number.MAX_SAFE_INTEGER ? Number(result) : result
}
