import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { afterAll, expect, it } from 'vitest'
import { JwtKeysFile, OperatorFiles } from '../../../../server/edge/tls/operator-files.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import type { ProducerNotice } from '../../../../server/kernel/producer/notices.ts'
import { Authority, OperatorDirectory } from '../../../support/certificates.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

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

it('an error that a library throws for a changed file is reported, and nothing else happens', () => {
  const file = new JwtKeysFile(directory.write('jwks.json', jwks('a')))
  file.keys.reload = () => {
    throw Object.assign(new Error('secret'), { code: 'ERR_CRYPTO_JWK_UNSUPPORTED_CURVE' })
  }
  directory.write('jwks.json', jwks('b'))
  expect(file.reloadIfChanged()).toEqual({
    severity: 'error',
    detail: expect.stringMatching(/jwks\.json cannot be used: ERR_CRYPTO_JWK_UNSUPPORTED_CURVE; .*stay in force/),
  })
  expect(has(file, 'a')).toBe(true)
})

it('a renewed key that everybody can read is reported, and one that is gone keeps the previous one', async () => {
  const authority = await Authority.make()
  const server = directory.server(await authority.server())
  const clientless = { ...server, clientCa: undefined, clientRevoked: undefined }
  const logged: string[] = []
  const log = createLogger('warn', { write: (line) => logged.push(JSON.parse(line).msg) })
  const options = { tls: clientless, jwt: { keys: undefined }, dial: { ca: undefined } }
  const files = new OperatorFiles(options, new FakeClock(Date.now()), log)
  const events: ProducerNotice[] = []
  const look = () => files.reloadChanged({ emit: (event) => events.push(event) })
  look()
  expect([logged, events]).toEqual([[], []])
  directory.server(await authority.server())
  chmodSync(server.key, 0o644)
  look()
  const warning = expect.stringMatching(/everybody.*server\.key; run chmod 600/)
  expect(logged).toEqual([warning])
  expect(events).toMatchObject([{ severity: 'info' }, { severity: 'warning', subject: 'files', detail: warning }])
  rmSync(server.key)
  look()
  expect(logged.slice(1)).toEqual([expect.stringMatching(/server\.key cannot be read.*stay in force/)])
  expect(files.tls?.options.key).toContain('PRIVATE KEY')
})
