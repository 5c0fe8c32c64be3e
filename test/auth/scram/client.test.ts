import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ScramClient } from '../../../auth/scram/client.ts'
import { RfcScram } from '../../support/rfc-scram.ts'
import { bytes, RFC_7677, text } from './vector.ts'

function rfcClient(): ScramClient {
  return new ScramClient({ identity: RFC_7677.identity, password: RFC_7677.password, nonce: RFC_7677.clientNonce })
}

function refused(code: string): { code: string } {
  return expect.objectContaining({ code })
}

test('the client sends what RFC 7677 prints and accepts what the server answers there', async () => {
  const client = rfcClient()
  expect(text(client.first())).toBe(RFC_7677.clientFirst)
  expect(text(await client.final(bytes(RFC_7677.serverFirst)))).toBe(RFC_7677.clientFinal)
  client.verify(bytes(RFC_7677.serverFinal))
})

test('the identity is sent in its one spelling and escaped', () => {
  const first = (identity: string): string => text(new ScramClient({ identity, nonce: 'x' }).first())
  expect(first('default/alice')).toBe('n,,n=alice,r=x')
  expect(first('acme/a=b,c')).toBe('n,,n=acme/a=3Db=2Cc,r=x')
  expect(() => first('a/b/c')).toThrow(refused('BAD_IDENTITY'))
})

// RFC 9266 section 3 and RFC 5802 section 7, put together by hand: cbind-input is the header and the exporter's bytes.
test('a client with an exporter binds to it, in the first message and in the last', async () => {
  const exporter = new Uint8Array(32).fill(0xab)
  const client = new ScramClient({
    identity: 'user',
    password: 'pencil',
    nonce: RFC_7677.clientNonce,
    channelBinding: exporter,
  })
  expect(client.method).toBe('scram-sha-256-plus')
  expect(text(client.first())).toBe('p=tls-exporter,,n=user,r=rOprNGfwEbeRWgbNEkqO')
  const binding = Buffer.from(`703d746c732d6578706f727465722c2c${'ab'.repeat(32)}`, 'hex').toString('base64')
  const independent = new RfcScram({ username: 'user', password: 'pencil', nonce: RFC_7677.clientNonce, exporter })
  const final = text(await client.final(bytes(RFC_7677.serverFirst)))
  expect(final).toMatch(`c=${binding},r=`)
  expect(final).toBe(independent.clientFinal(bytes(RFC_7677.serverFirst)).toString())
})

test('a client that could bind says so to a server that does not offer it', () => {
  const client = new ScramClient({ identity: 'user', password: 'pencil', nonce: 'x', channelBinding: 'not-offered' })
  expect(client.method).toBe('scram-sha-256')
  expect(text(client.first())).toBe('y,,n=user,r=x')
})

test('two clients use two nonces', () => {
  const first = (): string => text(new ScramClient({ identity: 'alice', password: 'x' }).first())
  expect(first()).not.toBe(first())
})

test.each([
  ['a nonce that does not begin with ours', 'r=zzz,s=AAAA,i=4096', 'SCRAM_REFUSED'],
  ['a nonce to which the server added nothing', `r=${RFC_7677.clientNonce},s=AAAA,i=4096`, 'SCRAM_REFUSED'],
  ['too few iterations', `r=${RFC_7677.clientNonce}x,s=AAAA,i=4095`, 'SCRAM_REFUSED'],
  ['too many iterations', `r=${RFC_7677.clientNonce}x,s=AAAA,i=10000001`, 'SCRAM_REFUSED'],
  ['a message that is none', 'hello', 'SCRAM_MALFORMED'],
])('the client goes no further after %s', async (_, serverFirst, code) => {
  const client = rfcClient()
  await expect(client.final(bytes(serverFirst))).rejects.toMatchObject({ code })
  expect(() => client.verify(bytes(RFC_7677.serverFinal))).toThrow(refused('SERVER_NOT_PROVEN'))
})

test('a server signature with any one bit changed proves nothing', async () => {
  const signature = Buffer.from(RFC_7677.serverFinal.slice(2), 'base64')
  const client = rfcClient()
  await client.final(bytes(RFC_7677.serverFirst))
  const { keys } = client
  for (let bit = 0; bit < 256; bit++) {
    const changed = Buffer.from(signature)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    const attempt = new ScramClient({ identity: RFC_7677.identity, keys, nonce: RFC_7677.clientNonce })
    await attempt.final(bytes(RFC_7677.serverFirst))
    expect(() => attempt.verify(bytes(`v=${changed.toString('base64')}`))).toThrow(refused('SERVER_NOT_PROVEN'))
  }
})

test('a server-final-message that is short, an error or nonsense proves nothing', async () => {
  const verify = async (message: string): Promise<void> => {
    const client = rfcClient()
    await client.final(bytes(RFC_7677.serverFirst))
    client.verify(bytes(message))
  }
  await expect(verify('v=AAAA')).rejects.toMatchObject({ code: 'SERVER_NOT_PROVEN' })
  await expect(verify('e=other-error')).rejects.toThrow(/refused: other-error/)
  await expect(verify('')).rejects.toMatchObject({ code: 'SCRAM_MALFORMED' })
})

test('a signature is good once, and not before the client has proven itself', async () => {
  const client = rfcClient()
  expect(() => client.verify(bytes(RFC_7677.serverFinal))).toThrow(refused('SERVER_NOT_PROVEN'))
  await client.final(bytes(RFC_7677.serverFirst))
  client.verify(bytes(RFC_7677.serverFinal))
  expect(() => client.verify(bytes(RFC_7677.serverFinal))).toThrow(refused('SERVER_NOT_PROVEN'))
})

test('kept keys stand for the password until the server has another salt', async () => {
  const first = rfcClient()
  await first.final(bytes(RFC_7677.serverFirst))
  const { keys } = first
  const options = { identity: RFC_7677.identity, nonce: RFC_7677.clientNonce, keys }
  const second = new ScramClient(options)
  expect(text(await second.final(bytes(RFC_7677.serverFirst)))).toBe(RFC_7677.clientFinal)
  second.verify(bytes(RFC_7677.serverFinal))

  const salted = bytes(RFC_7677.serverFirst.replace('s=W', 's=X'))
  const more = bytes(RFC_7677.serverFirst.replace('i=4096', 'i=4097'))
  await expect(new ScramClient(options).final(salted)).rejects.toThrow(/kept keys no longer match/)
  await expect(new ScramClient(options).final(more)).rejects.toThrow(/kept keys no longer match/)
  const third = new ScramClient({ ...options, password: RFC_7677.password })
  await third.final(salted)
  expect(third.keys).not.toBe(keys)
})

test('no file the client is made of needs Node', () => {
  const seen = new Set<string>()
  const walk = (file: URL): void => {
    if (seen.has(file.href)) return
    seen.add(file.href)
    for (const [, from] of readFileSync(file, 'utf8').matchAll(/from '([^']+)'/g)) {
      expect(from, file.pathname).not.toMatch(/^node:/)
      if (from!.startsWith('.')) walk(new URL(from!, file))
    }
  }
  walk(new URL('../../../auth/scram/client.ts', import.meta.url))
  expect(seen.size).toBeGreaterThan(4)
})
