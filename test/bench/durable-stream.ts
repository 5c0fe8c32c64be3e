/**
 * An smon stream as small as the protocol makes it: 100 `u` tokens, each value one more than the last, so that a pair is
 * two bytes. By hand and not by `protocol/smon`: an encoder of its own is also a check of the decoder it feeds.
 *
 *   definition  00 | length 'u' name | number | value      later ones begin with F0 00: token number, absolute, 0
 *   pair        01 | 01                                    the next token; its last value plus 1
 *   wrap        E8 63 | 01                                 99 tokens back, to the first
 */
export const SERIES = 100
const PAIR = [0x01, 0x01]
const WRAP = [0xe8, SERIES - 1, 0x01]
export const ROUND_BYTES = WRAP.length + (SERIES - 1) * PAIR.length

/** All series, each with its first value, 0. The last one is the current token then. */
export function definitions(): Uint8Array {
  const parts = Array.from({ length: SERIES }, (_, index) => {
    const number = index + 1
    const name = Buffer.from(`ureading.${String(number).padStart(4, '0')}`)
    const zero = index === 0 ? [0x00] : [0xf0, 0x00]
    // Behind token 0 the new number stands as a difference to 0.
    return Buffer.concat([Buffer.from([...zero, name.length]), name, Buffer.from([number, 0x00])])
  })
  return Buffer.concat(parts)
}

/** So many rounds through all series; each begins after the last token. */
export function roundsOf(count: number): Uint8Array {
  const round = Buffer.from([...WRAP, ...Array.from({ length: SERIES - 1 }, () => PAIR).flat()])
  return Buffer.concat(Array.from({ length: count }, () => round))
}

/** Bytes of the first `values` values of what `roundsOf` gives. */
export function bytesOf(values: number): number {
  const rest = values % SERIES
  const restBytes = rest === 0 ? 0 : WRAP.length + (rest - 1) * PAIR.length
  return Math.floor(values / SERIES) * ROUND_BYTES + restBytes
}
