/** The first start: the users it makes, the secret it leaves, and what a second start finds. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PasswordHasher } from '../../../auth/password.ts'
import { deriveKeys } from '../../../auth/scram/keys.ts'
import type { AuditEntry } from '../../../server/kernel/accounts/audit/log.ts'
import { Tenants } from '../../../server/kernel/accounts/tenants.ts'
import { Users } from '../../../server/kernel/accounts/users.ts'
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
  warned = []
  stored = async () => {}
  const change = (one: Change): void => void changes.push(one)
  accounts = new Users(
    [],
    new Tenants([], () => ({ ...defaultConfig().quota, queuedBytes: 0, historyBytes: 0 }), change),
    1,
    change,
    () => 5,
  )
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const audit = { record: ({ object, outcome }: AuditEntry) => void recorded.push(`${object} ${outcome}`) }
let stored: () => Promise<void>
let warned: string[]
const log = { warn: (_: unknown, text?: string) => void warned.push(String(text)) }
function run(adminPassword?: string, node?: string): Promise<string | undefined> {
  return firstRun({ accounts, audit, hasher, iterations: 4096, dataDir, adminPassword, node, stored, log })
}
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
  warnOfOtherData({ dataDir: './data', configFile: undefined }, log, ['/nowhere', dataDir])
  expect(warnings).toEqual([])
  writeFileSync(join(dataDir, 'cinnabar.db'), '')
  warnOfOtherData({ dataDir: '/srv/other', configFile: undefined }, log, [dataDir])
  expect(warnings).toEqual([])
  warnOfOtherData({ dataDir: './data', configFile: undefined }, log, ['/nowhere', dataDir])
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

describe('a node of a cluster', () => {
  /** The nodes share the users, and each has a directory of its own. */
  const lead = async (node: string | undefined, directory: string): Promise<void> => {
    mkdirSync(join(shared, directory), { recursive: true })
    dataDir = join(shared, directory)
    await run(undefined, node)
  }
  const secretOf = (directory: string) => readFileSync(join(shared, directory, 'admin.secret'), 'utf8').split('\n')
  let shared: string
  beforeEach(() => {
    shared = dataDir
  })
  afterEach(() => {
    dataDir = shared
  })

  test('makes a user of its own when it leads for the first time, and replaces that of no other', async () => {
    await lead('n1', 'n1')
    await lead('n2', 'n2')
    await lead('n1', 'n1')
    expect(recorded).toEqual(['admin added', 'local@n1 added', 'local@n2 added'])
    for (const node of ['n1', 'n2']) {
      const [secret = '', user] = secretOf(node)
      expect(user).toBe(`local@${node}`)
      expect(await proves(secret, `local@${node}`)).toBe(true)
      expect(accounts.find('default', `local@${node}`)).toMatchObject({ role: 'admin', loopbackOnly: true })
      expect(statSync(join(shared, node, 'admin.secret')).mode & 0o777).toBe(0o600)
    }
    expect(accounts.find('default', 'local')).toBeUndefined()
  })

  test('goes on with the database of a single server, and back', async () => {
    await lead(undefined, 'n1')
    expect(secretOf('n1')).toEqual([expect.any(String), ''])
    await lead('n1', 'n1')
    expect(await proves(secretOf('n1')[0] as string, 'local@n1')).toBe(true)
    await lead(undefined, 'n1')
    expect(secretOf('n1')).toEqual([expect.any(String), ''])
    expect(await proves(secretOf('n1')[0] as string, 'local')).toBe(true)
    expect(recorded.slice(1)).toEqual(['local added', 'local@n1 added', 'local secret made anew'])
  })

  test('makes its secret anew if the file is that of another database, or lost', async () => {
    await lead('n1', 'n1')
    await lead('n2', 'n2')
    writeFileSync(join(shared, 'n2', 'admin.secret'), 'of the single server that n2 was\n')
    await lead('n2', 'n2')
    rmSync(join(shared, 'n1', 'admin.secret'))
    await lead('n1', 'n1')
    expect(recorded.slice(3)).toEqual(['local@n2 secret made anew', 'local@n1 secret made anew'])
    expect(await proves(secretOf('n2')[0] as string, 'local@n2')).toBe(true)
    expect(await proves(secretOf('n1')[0] as string, 'local@n1')).toBe(true)
  })

  test('has no secret whose verifier was never stored', async () => {
    await lead('n1', 'n1')
    rmSync(join(shared, 'n1', 'admin.secret'))
    stored = () => Promise.reject(new Error('another node leads'))
    await expect(lead('n1', 'n1')).rejects.toThrow('another node leads')
    expect(existsSync(join(shared, 'n1', 'admin.secret'))).toBe(false)
  })

  test('leaves a user alone that has the name of its own', async () => {
    await lead('n1', 'n1')
    const none = { bcrypt: undefined, scram: undefined }
    const other = accounts.add({ tenant: 'default', name: 'local@n2', role: 'consumer', ...none, loopbackOnly: false })
    await lead('n2', 'n2')
    expect(accounts.byId(other.id)).toEqual(other)
    expect(existsSync(join(shared, 'n2', 'admin.secret'))).toBe(false)
    expect(warned).toEqual([expect.stringContaining('`cinnabar user remove`')])
  })
})
