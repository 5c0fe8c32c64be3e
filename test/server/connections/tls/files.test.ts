import { X509Certificate } from 'node:crypto'
import { chmodSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { PeerCertificate } from '../../../../auth/mechanism.ts'
import { TlsFiles } from '../../../../server/connections/tls/files.ts'
import { Authority, type Issued, OperatorDirectory } from '../../../support/certificates.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const authority = await Authority.make()
const first = await authority.server()
const second = await authority.server()
const directory = new OperatorDirectory()
afterAll(() => directory.remove())

let clock: FakeClock
let paths: { cert: string; key: string; clientCa: string; clientRevoked: string }
beforeEach(() => {
  clock = new FakeClock(Date.now())
  const clientCa = directory.write('ca.pem', authority.cert)
  paths = { ...directory.server(first), clientCa, clientRevoked: directory.write('revoked.txt', '') }
})
const open = (changed: Partial<typeof paths> = {}) => TlsFiles.open({ ...paths, ...changed }, clock) as TlsFiles

function shown({ cert }: Issued): PeerCertificate {
  const { serialNumber, fingerprint256, raw, validTo } = new X509Certificate(cert)
  const validUntil = Date.parse(validTo)
  return { subject: 'x', serial: serialNumber, fingerprint: fingerprint256, raw, validUntil }
}

describe('files that are no good at the start', () => {
  it.each<[string, keyof typeof paths, string | undefined, RegExp]>([
    ['no certificate', 'cert', 'nothing', /server.pem contains no certificate; a PEM file is needed .*`tls.cert`/],
    ['a damaged one', 'cert', first.cert.replace(/\n.{10}/, '\n----------'), /contains a damaged certificate/],
    ['no key', 'key', 'nothing', /contains no usable private key.*`tls.key`/],
    ['the key of another', 'key', second.key, /does not belong to the certificate in .*server.pem.*`tls.key`/],
    ['a public key', 'key', first.cert, /contains no usable private key/],
    ['no authority', 'clientCa', '', /contains no certificate.*`tls.client_ca`/],
    ['no numbers', 'clientRevoked', '01\n# fine\n\nxyz\n', /line 4; hexadecimal is needed .*`tls.client_revoked`/],
    ['a file that is not there', 'key', undefined, /cannot be read: ENOENT.*`tls.key`/],
  ])('(%s: %s) are named, with what to do', (_, which, text, message) => {
    if (text === undefined) rmSync(paths[which])
    else writeFileSync(paths[which], text)
    expect(() => open()).toThrow(message)
  })

  it('show nothing of what is in them', () => {
    writeFileSync(paths.key, first.key.replace(/\n.{10}/, '\n!!!!!!!!!!'))
    const secret = first.key.split('\n')[2] as string
    expect(() => open()).toThrow(expect.objectContaining({ message: expect.not.stringContaining(secret.slice(0, 8)) }))
  })

  it('are none where no certificate is configured', () => {
    const none = { cert: undefined, key: undefined, clientCa: undefined, clientRevoked: undefined }
    expect(TlsFiles.open(none, clock)).toBeUndefined()
  })
})

describe('what can be used but should not stay so', () => {
  it('is a key that everybody can read', () => {
    expect(open().warnings()).toEqual([])
    chmodSync(paths.key, 0o644)
    expect(open().warnings()).toEqual([expect.stringMatching(/everybody.*server\.key; run chmod 600/)])
  })

  it('is a certificate that has expired', () => {
    clock.advance(365 * 86_400_000)
    expect(open().warnings()).toEqual([expect.stringContaining('has expired')])
    expect(open().status()).toMatchObject({ state: 'failed' })
  })
})

describe('a change', () => {
  const inForce = (files: TlsFiles) => files.options.cert

  it('is seen by what the file looks like, also behind a link that is pointed elsewhere', () => {
    writeFileSync(`${directory.path}/a.pem`, first.cert)
    writeFileSync(`${directory.path}/b.pem`, second.cert)
    writeFileSync(`${directory.path}/b.key`, second.key)
    const [cert, key] = [`${directory.path}/link.pem`, `${directory.path}/link.key`]
    rmSync(cert, { force: true })
    rmSync(key, { force: true })
    symlinkSync('a.pem', cert)
    symlinkSync(paths.key, key)
    const files = open({ cert, key })
    expect(files.reloadIfChanged()).toBeUndefined()
    for (const [target, link] of [
      ['b.pem', cert],
      ['b.key', key],
    ] as const) {
      symlinkSync(target, `${link}.new`)
      renameSync(`${link}.new`, link)
    }
    expect(files.reloadIfChanged()).toMatchObject({ severity: 'info' })
    expect(inForce(files)).toBe(second.cert)
    expect(files.reloadIfChanged()).toBeUndefined()
  })

  it('that is no good is reported once, shows until it is mended, and the previous contents stay in force', () => {
    const files = open()
    const followed: unknown[] = []
    files.onRenewal(({ cert }) => followed.push(cert))
    directory.write('server.pem', second.cert)
    expect(files.reloadIfChanged()).toEqual({
      severity: 'error',
      detail: expect.stringMatching(/does not belong.*; the previous contents stay in force$/),
    })
    expect(files.reloadIfChanged()).toBeUndefined()
    expect(files.status()).toMatchObject({ state: 'failed', counters: { read: 1, refused: 1 } })
    expect([inForce(files), followed]).toEqual([first.cert, []])
    directory.write('server.key', second.key)
    expect(files.reloadIfChanged()).toMatchObject({ severity: 'info' })
    expect(files.status()).toMatchObject({ state: 'ok', counters: { read: 2, refused: 1 } })
    expect([inForce(files), followed]).toEqual([second.cert, [second.cert]])
  })

  it('that takes a file away is no good', () => {
    const files = open()
    rmSync(paths.clientRevoked)
    expect(files.reloadIfChanged()).toMatchObject({
      severity: 'error',
      detail: expect.stringContaining('cannot be read'),
    })
    expect(readFileSync(paths.cert, 'utf8')).toBe(inForce(files))
  })
})

describe('a client certificate', () => {
  it('is trusted while an authority has issued it, and it has not expired', async () => {
    const files = open()
    const good = shown(await authority.client('a'))
    expect(files.isTrusted(good)).toBe(true)
    expect(files.isTrusted(shown(await (await Authority.make()).client('a')))).toBe(false)
    clock.advance(good.validUntil - clock.wallMs() - 1)
    expect(files.isTrusted(good)).toBe(true)
    clock.advance(1)
    expect(files.isTrusted(good)).toBe(false)
  })

  it.each<[string, (certificate: PeerCertificate) => string]>([
    ['serial number', ({ serial }) => serial],
    ['serial number in lower case with colons', ({ serial }) => (serial.toLowerCase().match(/../g) ?? []).join(':')],
    ['serial number with zeros before it', ({ serial }) => `00${serial}`],
    ['fingerprint', ({ fingerprint }) => fingerprint],
    ['fingerprint without colons', ({ fingerprint }) => `  ${fingerprint.replaceAll(':', '')}  # stolen`],
  ])('is revoked by its %s', async (_, line) => {
    const files = open()
    const [bad, other] = [shown(await authority.client('a')), shown(await authority.client('a'))]
    expect(files.isTrusted(bad)).toBe(true)
    directory.write('revoked.txt', `# these are gone\n\n${line(bad)}\n`)
    files.reloadIfChanged()
    expect([files.isTrusted(bad), files.isTrusted(other)]).toEqual([false, true])
  })
})
