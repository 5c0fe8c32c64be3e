/**
 * Values as two 32-bit words each, the lower one first, as every machine that Node runs on here has them. A stale marker is a NaN
 * whose bits are lost if it passes through a variable: what may be one is copied and compared by words.
 */

/** The stale marker of Prometheus: its series has ended, or is away. */
export const STALE_HIGH = 0x7ff00000
export const STALE_LOW = 2

/** The words of these values, without a copy. */
export function wordsOf(values: Float64Array): Uint32Array {
  return new Uint32Array(values.buffer, values.byteOffset, 2 * values.length)
}

export function isStaleMarker(words: Uint32Array, index: number): boolean {
  return words[2 * index + 1] === STALE_HIGH && words[2 * index] === STALE_LOW
}
