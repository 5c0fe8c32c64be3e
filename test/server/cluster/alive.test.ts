/** What a node says of itself: as JSON and back, and what is no such message. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Alive, decodeAlive, encodeAlive, MAX_ALIVE_BYTES } from '../../../server/cluster/alive.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** By hand. */
const WIRE = {
  node: 'n1',
  run: 'a1b2',
  role: 'leader',
  epoch: 8,
  since: 1_700_000_000_000,
  address: '[2001:db8::1]:7652',
  log: 2,
  logEpoch: 8,
  sequence: 4711,
  hash: `00ff${'ab'.repeat(30)}`,
  lag: 12,
  obstacle: 'its disk is full',
  leaves: false,
  format: 1,
  version: 'cinnabar/0.1.0',
  configuration: '0123abcd',
  answers: true,
}
const ALIVE: Alive = {
  node: 'n1',
  run: 'a1b2',
  role: 'leader',
  epoch: 8,
  since: 1_700_000_000_000,
  address: '[2001:db8::1]:7652',
  place: { log: 2, epoch: 8, sequence: 4711, hash: Uint8Array.of(0, 0xff, ...Array(30).fill(0xab)) },
  lagMs: 12,
  obstacle: 'its disk is full',
  leaves: false,
  format: 1,
  version: 'cinnabar/0.1.0',
  configuration: '0123abcd',
  answers: true,
}

describe('a message', () => {
  test('is JSON', () => {
    expect(JSON.parse(new TextDecoder().decode(encodeAlive(ALIVE)))).toEqual(WIRE)
    expect(decodeAlive(bytes(JSON.stringify(WIRE)))).toEqual(ALIVE)
  })

  test('may have no obstacle, fields of a newer version, and not all of this one', () => {
    const { answers, ...first } = WIRE
    expect(decodeAlive(bytes(JSON.stringify(first)))).toEqual({ ...ALIVE, answers: !answers })
    const { obstacle: _, ...rest } = WIRE
    expect(decodeAlive(bytes(JSON.stringify({ ...rest, later: [1, 2] })))).toEqual({ ...ALIVE, obstacle: undefined })
    expect(JSON.parse(new TextDecoder().decode(encodeAlive({ ...ALIVE, obstacle: undefined })))).toEqual(rest)
  })

  test('is short, however long an obstacle is', () => {
    const long = encodeAlive({ ...ALIVE, obstacle: '\u0000'.repeat(10_000) })
    expect(long.length).toBeLessThan(MAX_ALIVE_BYTES)
    expect(decodeAlive(long)?.obstacle).toHaveLength(400)
    const cut = encodeAlive({ ...ALIVE, obstacle: `${'x'.repeat(399)}😀` })
    expect(decodeAlive(cut)?.obstacle).toBe('x'.repeat(399))
  })
})

describe('no message', () => {
  test.each([
    ['without a node', { node: undefined }],
    ['with an empty name', { node: '' }],
    ['with control characters', { node: 'n\n1' }],
    ['with a long name', { node: 'n'.repeat(65) }],
    ['with another role', { role: 'king' }],
    ['with a negative epoch', { epoch: -1 }],
    ['with a fraction', { sequence: 1.5 }],
    ['with a number beyond those that are exact', { sequence: 2 ** 60 }],
    ['with a short hash', { hash: 'ab' }],
    ['with a text for a truth', { leaves: 'no' }],
    ['with a negative lag', { lag: -1 }],
    ['with a lag that is no whole number of any size', { lag: 1e300 }],
    ['with a time that is no date', { since: 8.64e15 + 1 }],
    ['with half of a character', { obstacle: 'a\ud800b' }],
    ['with a long obstacle', { obstacle: 'x'.repeat(401) }],
  ])('%s', (_, change) => {
    expect(decodeAlive(bytes(JSON.stringify({ ...WIRE, ...change })))).toBeUndefined()
  })

  test('is one that is too long', () => {
    const text = JSON.stringify({ ...WIRE, later: 'x'.repeat(MAX_ALIVE_BYTES) })
    expect(decodeAlive(bytes(text))).toBeUndefined()
  })

  test('is the beginning of one, at any length', () => {
    const whole = bytes(JSON.stringify(WIRE))
    for (let length = 0; length < whole.length; length++) expect(decodeAlive(whole.subarray(0, length))).toBeUndefined()
  })

  test('are random bytes, or random JSON', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (random) => decodeAlive(random) === undefined))
    fc.assert(fc.property(fc.jsonValue(), (value) => decodeAlive(bytes(JSON.stringify(value))) === undefined))
  })

  test('is one with a byte changed, unless it is still valid', () => {
    const whole = bytes(JSON.stringify(WIRE))
    const change = fc.record({ at: fc.nat(whole.length - 1), to: fc.nat(255) })
    fc.assert(
      fc.property(change, ({ at, to }) => {
        const alive = decodeAlive(whole.with(at, to))
        if (alive !== undefined) expect(decodeAlive(encodeAlive(alive))).toEqual(alive)
      }),
    )
  })
})
