import { generateKeyPairSync } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { JwtKeysFile } from '../../../../server/connections/tls/operator-files.ts'
import { OperatorDirectory } from '../../../support/certificates.ts'

const directory = new OperatorDirectory()
afterAll(() => directory.remove())

function jwks(...kids: string[]): string {
  const keys = kids.map((kid) => ({ ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }), kid }))
  return JSON.stringify({ keys })
}

const has = (file: JwtKeysFile, kid: string) => file.keys.find('EdDSA', kid) !== undefined

it('the file of JWT keys is read again when it changes, and a bad one keeps the keys read before', () => {
  const path = directory.write('jwks.json', jwks('a'))
  const file = new JwtKeysFile(path)
  expect([has(file, 'a'), file.reloadIfChanged()]).toEqual([true, undefined])
  directory.write('jwks.json', jwks('b'))
  expect(file.reloadIfChanged()).toMatchObject({ severity: 'info' })
  expect([has(file, 'a'), has(file, 'b')]).toEqual([false, true])
  directory.write('jwks.json', '{"keys": 1}')
  expect(file.reloadIfChanged()).toEqual({
    severity: 'error',
    detail: expect.stringMatching(/jwks\.json.*`jwt.keys`.*stay in force/),
  })
  expect(has(file, 'b')).toBe(true)
})

it('a file of JWT keys that is no good at the start is reported, with the key of the configuration', () => {
  const path = directory.write('none.json', 'x')
  expect(() => new JwtKeysFile(path)).toThrow(/none\.json cannot be used: .*`jwt.keys`/)
  expect(() => new JwtKeysFile(`${path}.not`)).toThrow(/cannot be read/)
})
