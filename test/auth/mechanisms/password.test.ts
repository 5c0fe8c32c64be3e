import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fixture, LOCAL, passwordData, REMOTE, SECURE } from '../fixture.ts'

const failedAs = (identity: string) => ({ outcome: 'failed', identity })

test('the right password gives the account', async () => {
  const it = new Fixture()
  const step = await it.password('acme/alice', 'wonderland')
  expect(step).toEqual({ outcome: 'ok', account: it.accounts[0], credential: { method: 'password' } })
})

test('the data are two XDR strings, byte for byte', async () => {
  const data = Buffer.from('0000000a61636d652f616c69636500000000000a776f6e6465726c616e640000', 'hex')
  expect(Buffer.from(passwordData('acme/alice', 'wonderland')).equals(data)).toBe(true)
  expect((await new Fixture().begin().step('password', data)).outcome).toBe('ok')
})

test('a view into a larger frame is read in its place, before the frame is used again', async () => {
  const frame = Buffer.concat([Buffer.alloc(5, 0xff), passwordData('acme/alice', 'wonderland'), Buffer.alloc(3, 0xff)])
  const stepping = new Fixture().begin().step('password', frame.subarray(5, frame.length - 3))
  frame.fill(0)
  expect((await stepping).outcome).toBe('ok')
})

test('a wrong password, an unknown user and a user without password fail alike, after the same work', async () => {
  const it = new Fixture()
  expect(await it.password('acme/alice', 'looking-glass')).toEqual(failedAs('acme/alice'))
  expect(await it.password('acme/mallory', 'looking-glass')).toEqual(failedAs('acme/mallory'))
  expect(await it.password('default/local', 'machine')).toEqual(failedAs('local'))
  expect(it.compared).toEqual([
    ['looking-glass', 'hash of wonderland'],
    ['looking-glass', undefined],
    ['machine', undefined],
  ])
})

test('an identity or a password that nobody can have just fails', async () => {
  const it = new Fixture()
  for (const identity of ['', '/', 'a/b/c', 'a\nb']) {
    expect(await it.password(identity, 'x')).toEqual({ outcome: 'failed' })
  }
  for (const password of ['', 'a\u0000', 'a'.repeat(73)]) {
    expect(await it.password('acme/alice', password)).toEqual(failedAs('acme/alice'))
  }
  expect(it.compared).toEqual([])
})

test('names and passwords are compared in their prepared form', async () => {
  const it = new Fixture()
  expect((await it.password('acme/\uff41lice', 'wonder\u00adland')).outcome).toBe('ok')
})

test.each([
  ['nothing', ''],
  ['one string', '00000000'],
  ['a string cut short', '0000000461626300'],
  ['a length of 4 GiB', 'ffffffff61626364'],
  ['padding that is not zero', '000000016100000100000001 62000000'],
  ['padding that is missing', '00000001610000000000000162'],
  ['something left over', '0000000161000000000000016200000000000000'],
  ['a string that is not UTF-8', '00000002c328000000000001 62000000'],
  ['a string of 1,025 bytes', `00000401${'61'.repeat(1025)}000000 0000000162000000`],
])('undecodable data are invalid: %s', async (_, hex) => {
  const it = new Fixture()
  const step = await it.begin().step('password', Buffer.from(hex.replaceAll(' ', ''), 'hex'))
  expect(step.outcome).toBe('invalid')
  expect(it.compared).toEqual([])
})

test('random bytes are invalid or fail, and never throw', async () => {
  const it = new Fixture()
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (data) => {
      expect(['invalid', 'failed']).toContain((await it.begin().step('password', data)).outcome)
    }),
  )
})

test('a password is taken only over TLS, or on a loopback listener where that is allowed', () => {
  const offered = (peer: typeof LOCAL, plain: boolean): boolean =>
    new Fixture({ plainOnLoopback: plain }).authenticator.methods(peer).includes('password')
  expect(offered(SECURE, false)).toBe(true)
  expect(offered(LOCAL, true)).toBe(true)
  expect(offered(LOCAL, false)).toBe(false)
  expect(offered(REMOTE, true)).toBe(false)
  expect(offered({ ...REMOTE, address: '127.0.0.1' }, true)).toBe(false)
})

test('whoever is removed, replaced or given another password during the check fails', async () => {
  const it = new Fixture()
  const [alice, local] = it.accounts as [(typeof it.accounts)[0], (typeof it.accounts)[0]]
  const failsWith = async (accounts: typeof it.accounts): Promise<void> => {
    it.accounts = [alice, local]
    it.duringVerify = () => {
      it.accounts = accounts
    }
    expect(await it.password('acme/alice', 'wonderland')).toEqual(failedAs('acme/alice'))
  }
  await failsWith([])
  await failsWith([{ ...alice, id: 9 }])
  await failsWith([{ ...alice, bcrypt: 'hash of another' }])
  await failsWith([{ ...alice, scram: local.scram }])
})

test('the account is given as it is after the check', async () => {
  const it = new Fixture()
  it.duringVerify = () => {
    it.accounts = it.accounts.map((account) => ({ ...account, role: 'operator' }))
  }
  expect(await it.password('acme/alice', 'wonderland')).toMatchObject({ account: { role: 'operator' } })
})

test('from the sixth failure on a guess is not looked at, until the minute is over', async () => {
  const it = new Fixture()
  for (let i = 0; i < 6; i++) await it.password('acme/alice', `guess ${i}`)
  expect(it.compared).toHaveLength(6)
  expect(await it.password('acme/alice', 'wonderland')).toEqual({ ...failedAs('acme/alice'), waitMs: 60_000 })
  expect(it.compared).toHaveLength(6)
  expect((await it.password('acme/alice', 'wonderland', SECURE)).outcome).toBe('ok')
  it.now += 60_000
  expect((await it.password('acme/alice', 'wonderland')).outcome).toBe('ok')
})

test('an unknown user is throttled like a known one', async () => {
  const it = new Fixture()
  for (let i = 0; i < 7; i++) await it.password('mallory', 'x')
  expect(it.compared).toHaveLength(6)
})

test('guesses made side by side tell no more than six in a row', async () => {
  const it = new Fixture()
  const guesses = ['1', '2', '3', '4', '5', '6', 'wonderland'].map((guess) => it.password('acme/alice', guess))
  expect((await Promise.all(guesses)).map((step) => step.outcome)).toEqual(new Array(7).fill('failed'))
})

test('many right passwords side by side all get in', async () => {
  const it = new Fixture()
  const logins = Array.from({ length: 20 }, () => it.password('acme/alice', 'wonderland'))
  expect((await Promise.all(logins)).map((step) => step.outcome)).toEqual(new Array(20).fill('ok'))
})

test('more than twenty guesses at one password side by side are asked to come again, and are no failures', async () => {
  const it = new Fixture()
  const logins = Array.from({ length: 21 }, () => it.password('acme/alice', 'wonderland'))
  const answers = await Promise.allSettled(logins)
  expect(answers.slice(0, 20).map(({ status }) => status)).toEqual(new Array(20).fill('fulfilled'))
  expect(answers[20]).toMatchObject({ status: 'rejected', reason: { code: 'HASHER_BUSY' } })
  expect((await it.password('acme/alice', 'wonderland')).outcome).toBe('ok')
})

test('a place is given back by a check that could not be made', async () => {
  const it = new Fixture()
  it.duringVerify = () => {
    throw new Error('the thread that checks passwords ended')
  }
  for (let i = 0; i < 30; i++) await expect(it.password('acme/alice', 'x')).rejects.toThrow('ended')
})
