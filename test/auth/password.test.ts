import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { checkPassword, PasswordHasher, type PasswordHasherOptions } from '../../auth/password.ts'

const open: PasswordHasher[] = []

function hasher(options: PasswordHasherOptions = {}): PasswordHasher {
  const made = new PasswordHasher({ rounds: 4, ...options })
  open.push(made)
  return made
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()))
})

// From the self-test of crypt_blowfish.
const KNOWN = { password: 'U*U', hash: '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' }

test('a known bcrypt hash is recognised, and only with its password', async () => {
  const it = hasher()
  expect(await it.verify(KNOWN.password, KNOWN.hash)).toBe(true)
  expect(await it.verify('U*V', KNOWN.hash)).toBe(false)
})

test('a hash is bcrypt with the cost asked for and a salt of its own', async () => {
  const it = hasher()
  const [one, two] = await Promise.all([it.hash('correct horse'), it.hash('correct horse')])
  expect(one).toMatch(/^\$2b\$04\$[./A-Za-z0-9]{53}$/)
  expect(two).not.toBe(one)
  expect(await it.verify('correct horse', one)).toBe(true)
  expect(await it.verify('correct horse', two)).toBe(true)
})

test('answers reach those who asked, whatever else is asked at the same time', async () => {
  const it = hasher()
  const hash = await it.hash('b')
  const tries = ['a', 'b', 'c', 'b'].map((password) => it.verify(password, hash))
  expect(await Promise.all(tries)).toEqual([false, true, false, true])
})

test('an unknown user costs a comparison and never matches', async () => {
  const it = hasher()
  const verifying = it.verify('anything', undefined)
  expect(it.waiting).toBe(1)
  expect(await verifying).toBe(false)
  expect(it.waiting).toBe(0)
})

test('passwords that bcrypt could not tell apart are refused', async () => {
  const it = hasher()
  await expect(it.hash('')).rejects.toMatchObject({ code: 'BAD_PASSWORD', message: 'the password is empty' })
  await expect(it.hash('\u00e9'.repeat(37))).rejects.toThrow(/74 bytes, at most 72/)
  await expect(it.verify('a'.repeat(73), KNOWN.hash)).rejects.toMatchObject({ code: 'BAD_PASSWORD' })
  expect(() => checkPassword('\u00e9'.repeat(36))).not.toThrow()
})

test('beyond the limit of waiting jobs the next is refused, and later ones are taken again', async () => {
  const it = hasher({ maxWaiting: 2 })
  const jobs = [it.hash('a'), it.hash('b')]
  await expect(it.hash('c')).rejects.toMatchObject({ code: 'HASHER_BUSY' })
  await Promise.all(jobs)
  expect(await it.hash('c')).toHaveLength(60)
})

test('a damaged hash is an error for its own job only', async () => {
  const it = hasher()
  const damaged = it.verify('a', `$9z$04$${'.'.repeat(53)}`)
  const good = it.verify(KNOWN.password, KNOWN.hash)
  await expect(damaged).rejects.toThrow(/stored hash/)
  expect(await good).toBe(true)
})

test('closing refuses who waits and who comes later', async () => {
  const it = hasher()
  const waiting = it.hash('a')
  const closing = it.close()
  await expect(waiting).rejects.toMatchObject({ code: 'HASHER_CLOSED' })
  await closing
  await expect(it.hash('a')).rejects.toMatchObject({ code: 'HASHER_CLOSED' })
})

test('closing what never started is fine', async () => {
  await expect(hasher().close()).resolves.toBeUndefined()
})

// In a process of its own: the worker must be found, be waited for, and then not be in the way.
test('a process waits for a hash that is asked for, and ends although the hasher is still open', () => {
  const module = JSON.stringify(new URL('../../dist/auth/password.js', import.meta.url))
  const source = `
    import(${module})
      .then(({ PasswordHasher }) => new PasswordHasher({ rounds: 4 }).hash('a'))
      .then((hash) => console.log(hash.length))
  `
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--eval', source], {
    cwd: fileURLToPath(new URL('file:///')),
    encoding: 'utf8',
    timeout: 50_000,
  })
  expect({ stdout, stderr, status }).toEqual({ stdout: '60\n', stderr: '', status: 0 })
})
