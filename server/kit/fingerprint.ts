/** By which alerts are known: the hash of their labels, ascending by name, that Alertmanager has for them. */

/** FNV-1a of 64 bits, in two halves: numbers are exact up to 53 bits. The prime is 2^40 + 435. */
const FNV_OFFSET = [0xcbf29ce4, 0x84222325] as const
const FNV_PRIME = 0x1b3
const HALF = 2 ** 32
const SEPARATOR = 0xff
const encoder = new TextEncoder()

/** The hash of labels by which Alertmanager knows an alert: FNV-1a of names and texts, each followed by the byte 255, as hex. */
export function fingerprintOf(labels: Iterable<readonly [name: string, text: string]>): string {
  let [high, low]: readonly [number, number] = FNV_OFFSET
  const add = (byte: number): void => {
    const mixed = (low ^ byte) >>> 0
    const product = mixed * FNV_PRIME
    low = product >>> 0
    high = (high * FNV_PRIME + Math.floor(product / HALF) + ((mixed << 8) >>> 0)) % HALF
  }
  for (const pair of labels)
    for (const text of pair) {
      for (const byte of encoder.encode(text)) add(byte)
      add(SEPARATOR)
    }
  return [high, low].map((half) => half.toString(16).padStart(8, '0')).join('')
}
