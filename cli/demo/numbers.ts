/**
 * The numbers as an smon stream (docs/protocol/smon.md), of which two forms are enough: a definition with its first
 * value, and then two bytes for each next number. smon has no answers: what the server has taken, its ledger tells.
 */
const NAME = 'demo.number'
export const METRIC = `smon.${NAME}`

/** The token is the one before; its value one more. */
const NEXT = Buffer.from([0x00, 0x01])

/** How a stream begins: token 1, of type `u`, with the value `first` (32 bits). */
export function beginning(first: number): Uint8Array {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(first)
  return Buffer.concat([
    Buffer.from([0x00, 1 + NAME.length]),
    Buffer.from(`u${NAME}`),
    Buffer.from([0x01, 0xf3]),
    value,
  ])
}

/** The next `count` numbers. */
export function following(count: number): Uint8Array {
  return Buffer.alloc(NEXT.length * count, NEXT)
}
