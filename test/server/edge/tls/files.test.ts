import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmodSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { PeerCertificate } from '../../../../auth/mechanism.ts'
import { TlsFiles } from '../../../../server/edge/tls/files.ts'
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
const cut = (text: string) => text.slice(0, -100)
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
    ['a chain that is cut off', 'cert', cut(first.cert + authority.cert), /server.pem contains .*a part of one/],
    ['no key', 'key', 'nothing', /contains no usable private key.*`tls.key`/],
    ['the key of another', 'key', second.key, /does not belong to the certificate in .*server.pem.*`tls.key`/],
    ['a public key', 'key', first.cert, /contains no usable private key/],
    [
      'authorities that are cut off',
      'clientCa',
      cut(authority.cert + authority.cert),
      /ca.pem contains .*a part of one/,
    ],
    ['a block that is cut off in its first line', 'clientCa', `${authority.cert}-----BEG`, /a part of one/],
    ['a block that is cut off in its last dash', 'clientCa', authority.cert.trim().slice(0, -1), /a part of one/],
    ['no authority', 'clientCa', '', /contains no certificate.*`tls.client_ca`/],
    ['no numbers', 'clientRevoked', '01\n# fine\n\nxyz\n', /line 4; hexadecimal is needed .*`tls.client_revoked`/],
    ['a number that is cut off', 'clientRevoked', '01\n02', /revoked.txt is cut off.*`tls.client_revoked`/],
    [
      'a file that is too large',
      'clientRevoked',
      '# \n'.repeat(400_000),
      /more than 1048576 bytes.*`tls.client_revoked`/,
    ],
    ['a file that is not there', 'key', undefined, /cannot be read: ENOENT.*`tls.key`/],
  ])('(%s: %s) are named, with what to do', (_, which, text, message) => {
    if (text === undefined) rmSync(paths[which])
    else writeFileSync(paths[which], text)
    expect(() => open()).toThrow(message)
  })

  it('may be no pipes and no devices', () => {
    rmSync(paths.clientRevoked)
    execFileSync('mkfifo', [paths.clientRevoked])
    expect(() => open()).toThrow(/revoked.txt cannot be read: it is not a regular file .*`tls.client_revoked`/)
    rmSync(paths.clientRevoked)
    symlinkSync('/dev/zero', paths.clientRevoked)
    expect(() => open()).toThrow(/not a regular file/)
    rmSync(paths.clientRevoked)
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

it('a list of revocations that is cut off, also to nothing, revokes what it did before', async () => {
  const bad = shown(await authority.client('a'))
  directory.write('revoked.txt', `${bad.serial}\n`)
  const files = open()
  for (const text of ['', bad.serial.slice(0, 10)]) {
    directory.write('revoked.txt', text)
    expect(files.reloadIfChanged()).toMatchObject({ severity: 'error', detail: expect.stringContaining('revoked.txt') })
    expect(files.isTrusted(bad)).toBe(false)
  }
  directory.write('revoked.txt', '# none\n')
  expect(files.reloadIfChanged()).toMatchObject({ severity: 'info' })
  expect(files.isTrusted(bad)).toBe(true)
})

describe('a new certificate that is not valid', () => {
  const HOUR_MS = 3_600_000
  const later = (hours: number) => new Date(clock.wallMs() + hours * HOUR_MS)
  const renewed = async (from: number, until: number) => {
    const made = await authority.server(['localhost'], { from: later(from), until: later(until) })
    directory.server(made)
    return made
  }

  it('does not replace one that is, as long as that is valid; changes of other files come into force', async () => {
    const files = open()
    const expired = await renewed(-2, -1)
    const bad = shown(await authority.client('a'))
    directory.write('revoked.txt', `${bad.serial}\n`)
    expect(files.reloadIfChanged()).toEqual({
      severity: 'error',
      detail: expect.stringMatching(
        /server\.pem contains a certificate that has expired .*`tls.cert`.*previous .*in force/,
      ),
    })
    expect([files.options.cert, files.options.key]).toEqual([first.cert, first.key])
    expect(files.isTrusted(bad)).toBe(false)
    expect(files.reloadIfChanged()).toBeUndefined()
    expect(files.status()).toMatchObject({ state: 'failed', counters: { read: 1, refused: 1 } })
    clock.advance(25 * HOUR_MS)
    expect(files.reloadIfChanged()).toMatchObject({ severity: 'info' })
    expect(files.options.cert).toBe(expired.cert)
    expect(files.warnings()).toEqual([expect.stringContaining('has expired')])
  })

  it('comes into force when it becomes valid', async () => {
    const files = open()
    const early = await renewed(2, 48)
    expect(files.reloadIfChanged()).toMatchObject({
      severity: 'error',
      detail: expect.stringContaining('contains a certificate that is not valid before 20'),
    })
    expect(files.options.cert).toBe(first.cert)
    clock.advance(2 * HOUR_MS)
    expect(files.reloadIfChanged()).toMatchObject({ severity: 'info' })
    expect(files.options.cert).toBe(early.cert)
    expect(files.reloadIfChanged()).toBeUndefined()
    expect(files.status()).toMatchObject({ state: 'ok', counters: { read: 2, refused: 1 } })
  })

  it('replaces one that has expired too', async () => {
    const files = open()
    clock.advance(25 * HOUR_MS)
    const expired = await renewed(-2, -1)
    expect(files.reloadIfChanged()).toMatchObject({ severity: 'info' })
    expect(files.options.cert).toBe(expired.cert)
    expect(files.warnings()).toEqual([expect.stringContaining('has expired')])
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
