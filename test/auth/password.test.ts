import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { checkPassword, PasswordHasher, type PasswordWaiter } from '../../auth/password.ts'

const open: PasswordHasher[] = []

function hasher(): PasswordHasher {
  const made = new PasswordHasher({ rounds: 4 })
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

const somebody = (lane: string, more: Partial<PasswordWaiter> = {}): PasswordWaiter => {
  return { lane, isKnown: false, isGone: () => false, ...more }
}

/** The names of those who are answered, in order; those who are refused end with `!`. */
async function answered(checks: Readonly<Record<string, Promise<unknown>>>): Promise<string[]> {
  const order: string[] = []
  const noted = Object.entries(checks).map(([name, check]) => {
    return check.then(
      () => order.push(name),
      ({ code }) => order.push(`${name} ${code}`),
    )
  })
  await Promise.all(noted)
  return order
}

test('beyond the limit of waiting jobs the next is refused and counted, and later ones are taken again', async () => {
  const it = hasher()
  const jobs = Array.from({ length: 65 }, () => it.hash('a'))
  await expect(it.hash('b')).rejects.toMatchObject({ code: 'HASHER_BUSY' })
  expect(it.refused).toBe(1)
  await Promise.all(jobs)
  expect(await it.hash('b')).toHaveLength(60)
})

test('whoever sets very many passwords takes no place of others who set one', async () => {
  const it = hasher()
  const flood = Array.from({ length: 80 }, () => it.hash('a', 'flood').catch(() => 'refused'))
  const other = it.hash('b', 'other').then(() => 'other')
  expect(await Promise.race([other, flood[2] as Promise<string>])).toBe('other')
  const refused = (await Promise.all(flood)).filter((hash) => hash === 'refused')
  // One was under way, 64 waited, and the last of them made room for the other.
  expect([refused.length, it.refused]).toEqual([80 - 64, 80 - 64])
})

test('whoever has filled the queue delays others by one check, and those who are known and those who set by no more', async () => {
  const it = hasher()
  const flood = Array.from({ length: 100 }, () => it.verify('a', undefined, somebody('flood')))
  const refused = flood.map((check) => check.then(() => 0).catch(() => 1))
  const checks = {
    known: it.verify('a', undefined, somebody('alice', { isKnown: true })),
    other: it.verify('a', undefined, somebody('elsewhere')),
    set: it.hash('a'),
    last: flood[20] as Promise<boolean>,
  }
  expect(await answered(checks)).toEqual(['set', 'known', 'other', 'last'])
  const sum = (await Promise.all(refused)).reduce((all: number, each) => all + each, 0)
  // One was under way, 32 waited, and the last of them made room for the other.
  expect([sum, it.refused]).toEqual([100 - 32, 100 - 32])
})

test('a check whose connection has ended is left out', async () => {
  const it = hasher()
  let isGone = false
  const under = it.verify('a', undefined, somebody('a'))
  const left = it.verify(KNOWN.password, KNOWN.hash, somebody('a', { isGone: () => isGone }))
  isGone = true
  await under
  await expect(left).rejects.toMatchObject({ code: 'HASHER_BUSY' })
  expect([it.waiting, it.refused]).toEqual([0, 0])
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

// Threads are counted in /proc.
test.skipIf(process.platform !== 'linux')('a thread without a job ends, and the next job starts another', () => {
  const module = JSON.stringify(new URL('../../dist/auth/password.js', import.meta.url))
  // The clock rings when the script says so.
  const source = `
    const { readdirSync } = require('node:fs')
    const threads = () => readdirSync('/proc/self/task').length
    const rings = []
    const clock = { setTimeout: (ring, ms) => (rings.push([ring, ms]), { cancel: () => rings.pop() }) }
    const run = async () => {
      const { PasswordHasher } = await import(${module})
      const hasher = new PasswordHasher({ rounds: 4, clock })
      const hash = await hasher.hash('a')
      const during = threads()
      const verifying = hasher.verify('a', hash)
      console.log('while it works:', rings.length)
      console.log(await verifying)
      const [[ring, ms]] = rings
      ring()
      while (threads() >= during) await new Promise(setImmediate)
      console.log('ended after', ms)
      console.log(await hasher.verify('a', hash), rings.length, threads() >= during)
    }
    run()
  `
  const { stdout, stderr } = spawnSync(process.execPath, ['--eval', source], {
    encoding: 'utf8',
    timeout: 50_000,
  })
  expect({ stdout, stderr }).toEqual({
    stdout: 'while it works: 0\ntrue\nended after 10000\ntrue 1 true\n',
    stderr: '',
  })
})

test('a thread that cannot be started fails its jobs, and the next job tries again', () => {
  const module = JSON.stringify(new URL('../../dist/auth/password.js', import.meta.url))
  // As Node does where the kernel refuses a thread.
  const source = `
    const threads = require('node:worker_threads')
    const { syncBuiltinESMExports } = require('node:module')
    const { Worker } = threads
    threads.Worker = class { constructor() { throw new Error('EAGAIN') } }
    syncBuiltinESMExports()
    const run = async () => {
      const { PasswordHasher } = await import(${module})
      const hasher = new PasswordHasher({ rounds: 4 })
      const failed = ({ message, cause }) => message + ': ' + cause.message
      console.log(await Promise.all([hasher.hash('a').catch(failed), hasher.hash('b').catch(failed)]))
      threads.Worker = Worker
      syncBuiltinESMExports()
      console.log((await hasher.hash('a')).length, hasher.waiting)
    }
    run()
  `
  const { stdout, stderr } = spawnSync(process.execPath, ['--eval', source], { encoding: 'utf8', timeout: 50_000 })
  const failed = "'the thread that checks passwords could not be started: EAGAIN'"
  expect({ stdout, stderr }).toEqual({ stdout: `[\n  ${failed},\n  ${failed}\n]\n60 0\n`, stderr: '' })
})

test('nothing goes on after closing, though the thread has answered meanwhile', async () => {
  const rings = new Set<() => void>()
  const setTimeout = (ring: () => void) => {
    rings.add(ring)
    return { cancel: () => void rings.delete(ring) }
  }
  const it = new PasswordHasher({ rounds: 4, clock: { setTimeout } })
  await it.hash('a')
  const late = it.verify(KNOWN.password, KNOWN.hash)
  // The answer is there, and this thread has not seen it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
  const closing = it.close()
  await expect(late).rejects.toMatchObject({ code: 'HASHER_CLOSED' })
  await closing
  expect(rings.size).toBe(0)
})
