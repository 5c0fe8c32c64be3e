import { expect, test } from 'vitest'
import { ScramClient } from '../../auth/scram/client.ts'
import type { ScramVerifier } from '../../auth/scram/keys.ts'
import { ScramServer } from '../../auth/scram/server.ts'
import { DEFAULT_ITERATIONS, makeSecretVerifier, makeVerifiers, preparePassword } from '../../auth/verifiers.ts'

const hasher = { hash: async (password: string) => `hash of ${password}` }

async function logsIn(password: string, verifier: ScramVerifier): Promise<boolean> {
  const client = new ScramClient({ identity: 'alice', password })
  const find = (identity: string) => ({ identity, verifier })
  const server = new ScramServer({ serverSecret: new Uint8Array(32), iterations: 4096, find })
  const first = server.step(client.first())
  if (first.outcome !== 'continue') return false
  return server.step(await client.final(first.data)).outcome === 'proven'
}

test('one password makes what every method needs', async () => {
  const { bcrypt, scram } = await makeVerifiers('cafe\u0301', hasher, 4096)
  expect(bcrypt).toBe('hash of caf\u00e9')
  expect(scram.iterations).toBe(4096)
  expect(await logsIn('caf\u00e9', scram)).toBe(true)
  expect(await logsIn('cafe', scram)).toBe(false)
})

test("a person's password gets 600,000 iterations unless told otherwise", async () => {
  expect(DEFAULT_ITERATIONS).toBe(600_000)
  expect((await makeVerifiers('pencil', hasher)).scram.iterations).toBe(600_000)
})

test('a random secret gets 4,096 iterations and may be longer than bcrypt could take', async () => {
  const secret = 'f'.repeat(100)
  const verifier = await makeSecretVerifier(secret)
  expect(verifier.iterations).toBe(4096)
  expect(await logsIn(secret, verifier)).toBe(true)
})

test('the same password is salted anew each time', async () => {
  const [one, two] = await Promise.all([makeSecretVerifier('pencil'), makeSecretVerifier('pencil')])
  expect(one.salt).toHaveLength(16)
  expect(Buffer.from(one.salt).equals(two.salt)).toBe(false)
  expect(Buffer.from(one.storedKey).equals(two.storedKey)).toBe(false)
})

test('a password that could not be used again is refused, and not repeated in the message', async () => {
  const refused = async (password: string): Promise<string> => {
    const error = await makeVerifiers(password, hasher, 4096).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'BAD_PASSWORD' })
    return (error as Error).message
  }
  expect(await refused('')).toMatch(/empty/)
  expect(await refused('a'.repeat(73))).toMatch(/73 bytes/)
  expect(await refused('secret\u0007')).not.toMatch(/secret/)
  expect(await refused('\u00ad')).toMatch(/characters/)
})

test('the limit of 72 bytes holds for the prepared form too', () => {
  // U+FDFA, three bytes, becomes 33 in its compatibility form.
  expect(() => preparePassword('\ufdfa\ufdfa\ufdfa')).toThrow(/at most 72/)
})
