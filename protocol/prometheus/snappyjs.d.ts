/** The part of SnappyJS that is used here; the package has no types of its own. */
declare module 'snappyjs' {
  /** Throws Error if the bytes are not Snappy's block format, or hold more than `maxLength` bytes. */
  export function uncompress(compressed: Uint8Array, maxLength?: number): Uint8Array
  export function compress(uncompressed: Uint8Array): Uint8Array
}
