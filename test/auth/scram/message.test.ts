import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  channelBindingOf,
  decodeMessage,
  escapeName,
  MAX_MESSAGE_BYTES,
  parseClientFinal,
  parseClientFirst,
  parseServerFinal,
  parseServerFirst,
} from '../../../auth/scram/message.ts'
import { bytes, RFC_7677 } from './vector.ts'

test('the four messages of RFC 7677 are taken apart', () => {
  expect(parseClientFirst(RFC_7677.clientFirst)).toEqual({
    gs2Header: 'n,,',
    binding: 'n',
    bare: 'n=user,r=rOprNGfwEbeRWgbNEkqO',
    username: 'user',
    nonce: 'rOprNGfwEbeRWgbNEkqO',
  })
  const serverFirst = parseServerFirst(RFC_7677.serverFirst)
  expect(serverFirst?.nonce).toBe(RFC_7677.clientNonce + RFC_7677.serverNonce)
  expect(Buffer.from(serverFirst!.salt).equals(RFC_7677.salt)).toBe(true)
  expect(serverFirst?.iterations).toBe(4096)
  const clientFinal = parseClientFinal(RFC_7677.clientFinal)
  expect(Buffer.from(clientFinal!.channelBinding).toString()).toBe('n,,')
  expect(clientFinal?.withoutProof).toBe(RFC_7677.clientFinal.split(',p=')[0])
  expect(Buffer.from(clientFinal!.proof).toString('base64')).toBe(RFC_7677.clientFinal.split(',p=')[1])
  const serverFinal = parseServerFinal(RFC_7677.serverFinal)
  expect(serverFinal && 'signature' in serverFinal && serverFinal.signature.length).toBe(32)
})

test('channel binding is named in front', () => {
  const first = parseClientFirst('p=tls-exporter,,n=user,r=x')
  expect(first).toMatchObject({ gs2Header: 'p=tls-exporter,,', binding: 'p=tls-exporter', bare: 'n=user,r=x' })
})

// RFC 5802 section 7: cbind-input = gs2-header [ cbind-data ]
test('what the channel is bound to stands after the header', () => {
  expect(Buffer.from(channelBindingOf('n,,', undefined)).toString('base64')).toBe('biws')
  const bound = Buffer.from(channelBindingOf('p=tls-exporter,,', Uint8Array.of(0, 255)))
  expect(bound.toString('hex')).toBe('703d746c732d6578706f727465722c2c00ff')
})

test('commas and equals signs in a name are escaped', () => {
  expect(escapeName('a=b,c')).toBe('a=3Db=2Cc')
  expect(parseClientFirst('n,,n=a=3Db=2Cc,r=x')?.username).toBe('a=b,c')
  expect(parseClientFirst('n,,n==3D2C,r=x')?.username).toBe('=2C')
})

test.each([
  ['an equals sign that escapes nothing', 'n,,n=a=b,r=x'],
  ['a lower-case escape', 'n,,n=a=2c,r=x'],
  ['no name', 'n,,n=,r=x'],
  ['no nonce', 'n,,n=user,r='],
  ['a nonce with a space', 'n,,n=user,r=a b'],
  ['a nonce that is too long', `n,,n=user,r=${'a'.repeat(129)}`],
  ['a NUL in the name', 'n,,n=us\0er,r=x'],
  ['channel binding without a name', 'p=,,n=user,r=x'],
  ['channel binding with a name that may not be', 'p=tls_exporter,,n=user,r=x'],
  ['an authorization identity', 'n,a=root,n=user,r=x'],
  ['a mandatory extension in front', 'n,,m=x,n=user,r=x'],
  ['a mandatory extension after', 'n,,n=user,r=x,m=x'],
  ['an unknown gs2 flag', 'q,,n=user,r=x'],
  ['no gs2 header', 'n=user,r=x'],
  ['a line feed after', 'n,,n=user,r=x\n'],
])('a client-first-message is refused for %s', (_, message) => {
  expect(parseClientFirst(message)).toBeUndefined()
})

test('optional extensions are passed over', () => {
  expect(parseClientFirst('y,,n=user,r=x,z=1')).toMatchObject({ gs2Header: 'y,,', bare: 'n=user,r=x,z=1', nonce: 'x' })
  expect(parseServerFirst('r=xy,s=AAAA,i=4096,z=1=2')?.iterations).toBe(4096)
})

test.each([
  ['zero iterations', 'r=xy,s=AAAA,i=0'],
  ['negative iterations', 'r=xy,s=AAAA,i=-1'],
  ['leading zeros', 'r=xy,s=AAAA,i=04096'],
  ['iterations beyond ten digits', 'r=xy,s=AAAA,i=10000000000'],
  ['a salt that is not base64', 'r=xy,s=AAA,i=4096'],
  ['no salt', 'r=xy,s=,i=4096'],
  ['a mandatory extension', 'm=1,r=xy,s=AAAA,i=4096'],
])('a server-first-message is refused for %s', (_, message) => {
  expect(parseServerFirst(message)).toBeUndefined()
})

test('base64 has one form for the same bytes', () => {
  expect(parseServerFinal('v=AA==')).toBeDefined()
  expect(parseServerFinal('v=AB==')).toBeUndefined()
  expect(parseServerFinal('v=AA=')).toBeUndefined()
})

test("a server's refusal is read as such", () => {
  expect(parseServerFinal('e=invalid-proof')).toEqual({ error: 'invalid-proof' })
})

test('what is too long or not UTF-8 is no text', () => {
  expect(decodeMessage(new Uint8Array(MAX_MESSAGE_BYTES).fill(97))).toHaveLength(MAX_MESSAGE_BYTES)
  expect(decodeMessage(new Uint8Array(MAX_MESSAGE_BYTES + 1).fill(97))).toBeUndefined()
  expect(decodeMessage(Uint8Array.of(0xc3, 0x28))).toBeUndefined()
  expect(decodeMessage(bytes('\ufeffn'))).toBe('\ufeffn')
})

test('an escaped name comes back as it was', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 64 }), (name) => {
      fc.pre(!name.includes('\0'))
      expect(parseClientFirst(`n,,n=${escapeName(name)},r=x`)?.username).toBe(name)
    }),
  )
})
