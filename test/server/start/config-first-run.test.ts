/** The first start: the users it makes, the secret it leaves, and what a second start finds. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { PasswordHasher } from '../../../auth/password.ts'
import { deriveKeys } from '../../../auth/scram/keys.ts'
import type { AuditEntry } from '../../../server/accounts/audit/log.ts'
import { Tenants } from '../../../server/accounts/tenants.ts'
import { Users } from '../../../server/accounts/users.ts'
import { defaultConfig } from '../../../server/start/config.ts'
import { firstRun, warnOfOtherData } from '../../../server/start/first-run.ts'
import type { Change } from '../../../storage/store.ts'

const hasher = new PasswordHasher({ rounds: 4 })
let dataDir: string
let changes: Change[]
let recorded: string[]
let accounts: Users
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  changes = []
  recorded = []
  const change = (one: Change): void => void changes.push(one)
  accounts = new Users(
    [],
    new Tenants([], () => ({ ...defaultConfig().quota, queuedBytes: 0 }), change),
    1,
    change,
    () => 5,
  )
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const audit = { record: ({ object, outcome }: AuditEntry) => void recorded.push(`${object} ${outcome}`) }
const run = (adminPassword?: string) => firstRun({ accounts, audit, hasher, iterations: 4096, dataDir, adminPassword })
const secret = (): string => readFileSync(join(dataDir, 'admin.secret'), 'utf8')

async function proves(password: string, name: string): Promise<boolean> {
  const scram = accounts.find('default', name)?.scram
  if (scram === undefined) throw new Error(`${name} has no verifier`)
  const keys = await deriveKeys(password, scram.salt, scram.iterations)
  return Buffer.from(keys.serverKey).equals(Buffer.from(scram.serverKey))
}

test('an empty database gets an admin with a password that is given back once', async () => {
  const shown = await run()
  expect(shown).toMatch(/^[\w-]{20}$/)
  const admin = accounts.find('default', 'admin')
  expect(admin).toMatchObject({ role: 'admin', loopbackOnly: false })
  expect(await hasher.verify(shown as string, admin?.bcrypt)).toBe(true)
  expect(await proves(shown as string, 'admin')).toBe(true)
  expect(await run()).toBeUndefined()
})

test('what it does to users is in the audit log', async () => {
  await run()
  expect(recorded).toEqual(['admin added', 'local added'])
  await run()
  expect(recorded.length).toBe(2)
  rmSync(join(dataDir, 'admin.secret'))
  await run()
  expect(recorded.slice(2)).toEqual(['local secret made anew'])
})

test('a password from the environment is used, and not shown', async () => {
  expect(await run('a chosen password')).toBeUndefined()
  expect(await hasher.verify('a chosen password', accounts.find('default', 'admin')?.bcrypt)).toBe(true)
})

test('an empty one is none', async () => {
  expect(await run('')).toMatch(/^[\w-]{20}$/)
})

test('one that cannot be used is refused, and no user is made', async () => {
  await expect(run('x'.repeat(73))).rejects.toMatchObject({ code: 'BAD_PASSWORD' })
  await expect(run('x'.repeat(7))).rejects.toThrow('at least 8')
  expect([accounts.size, changes]).toEqual([0, []])
})

test('`local` has no password: role admin, loopback only, its secret in a file that only the owner reads', async () => {
  await run()
  expect(accounts.find('default', 'local')).toMatchObject({ role: 'admin', loopbackOnly: true, bcrypt: undefined })
  expect(statSync(join(dataDir, 'admin.secret')).mode & 0o777).toBe(0o600)
  expect(secret()).toMatch(/^[\w-]{43}\n$/)
  expect(await proves(secret().trim(), 'local')).toBe(true)
})

test('data in a place where it may be expected is pointed out if nobody has named the empty one', () => {
  const warnings: object[] = []
  const log = { warn: (...said: readonly unknown[]) => void warnings.push(said) }
  warnOfOtherData({ dataDir: './data' }, log, ['/nowhere', dataDir])
  expect(warnings).toEqual([])
  writeFileSync(join(dataDir, 'cinnabar.db'), '')
  warnOfOtherData({ dataDir: '/srv/other' }, log, [dataDir])
  expect(warnings).toEqual([])
  warnOfOtherData({ dataDir: './data' }, log, ['/nowhere', dataDir])
  expect(warnings).toEqual([[expect.anything(), expect.stringContaining(`start it with --data ${dataDir}`)]])
})

test('a second start changes nothing', async () => {
  await run()
  const before = { secret: secret(), changes: changes.length }
  await run('another password')
  expect({ secret: secret(), changes: changes.length }).toEqual(before)
})

test('a lost secret is made anew, and the old one is worth nothing', async () => {
  await run()
  const old = secret().trim()
  rmSync(join(dataDir, 'admin.secret'))
  await run()
  expect(secret().trim()).not.toBe(old)
  expect([await proves(secret().trim(), 'local'), await proves(old, 'local')]).toEqual([true, false])
  expect(accounts.size).toBe(2)
})

test('a file that others can read, left by somebody, does not keep its mode', async () => {
  writeFileSync(join(dataDir, 'admin.secret'), 'planted\n', { mode: 0o644 })
  await run()
  expect(existsSync(join(dataDir, 'admin.secret'))).toBe(true)
  expect(statSync(join(dataDir, 'admin.secret')).mode & 0o777).toBe(0o600)
  expect(await proves(secret().trim(), 'local')).toBe(true)
  expect(await proves('planted', 'local')).toBe(false)
})
