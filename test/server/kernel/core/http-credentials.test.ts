/** What the server shows to others, from files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { authorizationFrom, tlsFrom } from '../../../../server/kernel/core/http-credentials.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-credentials-'))
afterAll(() => rmSync(directory, { recursive: true }))
function file(text: string): string {
  const path = join(directory, 'secret')
  writeFileSync(path, text)
  return path
}

describe('the header', () => {
  it('is a token, the first line of its file as it is now', async () => {
    const tokenFile = file('one\ntwo\n')
    expect(await authorizationFrom({ tokenFile })).toBe('Bearer one')
    writeFileSync(tokenFile, 'three')
    expect(await authorizationFrom({ tokenFile })).toBe('Bearer three')
  })

  it('is a user with a password', async () => {
    // The example of RFC 7617, 2.
    const passwordFile = file('open sesame\r\n')
    expect(await authorizationFrom({ username: 'Aladdin', passwordFile })).toBe('Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==')
  })

  it('is nothing without files', async () => expect(await authorizationFrom({ username: 'x' })).toBeUndefined())

  it.each(['', 'two words', '\u0000'])('is no file that holds %j, and nothing says what it holds', async (text) => {
    const tokenFile = file(text)
    const failed = await authorizationFrom({ tokenFile }).catch((error: Error) => error.message)
    expect(failed).toBe(`${tokenFile} holds no token: it is empty, or has blanks in it`)
  })

  it('names a file that is not there', async () => {
    await expect(authorizationFrom({ tokenFile: join(directory, 'nothing') })).rejects.toThrow(/nothing/)
  })
})

describe('a TLS connection', () => {
  it('is verified, by the authorities of a file or by those of Node, and names its host', async () => {
    const strict = { rejectUnauthorized: true, minVersion: 'TLSv1.2' }
    expect(await tlsFrom({}, 'a.example')).toEqual({ ...strict, servername: 'a.example' })
    expect(await tlsFrom({ ca: file('pem') }, '[::1]')).toEqual({ ...strict, ca: Buffer.from('pem') })
    expect(await tlsFrom({ serverName: 'b.example' }, '192.0.2.1')).toEqual({ ...strict, servername: 'b.example' })
  })
})
