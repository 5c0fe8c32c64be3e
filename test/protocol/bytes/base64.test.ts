/** Base64 with the vectors of RFC 4648 10. */
import fc from 'fast-check'
import { expect, it, test } from 'vitest'
import { fromBase64, toBase64 } from '../../../protocol/bytes/base64.ts'

const utf8 = (text: string) => new TextEncoder().encode(text)

test.each([
  ['', ''],
  ['f', 'Zg=='],
  ['fo', 'Zm8='],
  ['foo', 'Zm9v'],
  ['foob', 'Zm9vYg=='],
  ['fooba', 'Zm9vYmE='],
  ['foobar', 'Zm9vYmFy'],
])('"%s" is "%s"', (text, base64) => {
  expect(toBase64(utf8(text))).toBe(base64)
  expect(fromBase64(base64)).toEqual(utf8(text))
})

it.each(['Zg', 'Zg=', 'Z===', '====', 'Zm9v\n', 'Zm 9', 'Zm-_', 'Zg==Zg==', 'Zmö='])('"%s" is no base64', (text) => {
  expect(fromBase64(text)).toBeUndefined()
})

it('goes both ways for any bytes, and for more than one call can take as arguments', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(fromBase64(toBase64(bytes))).toEqual(bytes)
    }),
  )
  const large = new Uint8Array(200_000).map((_, index) => index & 0xff)
  expect(Buffer.from(fromBase64(toBase64(large))!).equals(large)).toBe(true)
})

it('gives bytes or undefined for any text', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const bytes = fromBase64(text)
      if (bytes) expect(bytes).toEqual(new Uint8Array(Buffer.from(text, 'base64')))
    }),
  )
})
