/** MurmurHash3 of 32 bits: fast, even, and no secret, so bytes with a given hash are easily made by somebody who knows the seed. */

/** A step for four bytes, little-endian. */
export function mixed(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e2d51)
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
  mixed ^= hash
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0
}

/** The last step, after which each bit depends on all bytes. */
function finished(hash: number): number {
  let mixed = hash
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) | 0
}

/** The hash of bytes whose number is a multiple of four, as all that XDR writes is. */
export function murmurOf(bytes: Uint8Array, seed: number): number {
  const { length } = bytes
  let hash = seed
  for (let at = 0; at < length; at += 4) {
    const low = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
    hash = mixed(hash, low | ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24))
  }
  return finished(hash ^ length)
}
