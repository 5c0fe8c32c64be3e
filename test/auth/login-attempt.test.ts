/** The promise about guessing, kept by all the parts together: very many guesses, and the owner in between. */
import { expect, test } from 'vitest'
import type { AuthPeer } from '../../auth/mechanism.ts'
import { times } from '../support/long.ts'
import { Fixture, LOCAL } from './fixture.ts'

const GUESSES = times({ short: 4_000, long: 20_000 })
const MINUTE = 60_000
const MOST = 20

const from = (address: string): AuthPeer => ({ ...LOCAL, address })

/** One guess by SCRAM that cannot be right; whether it was looked at. */
async function guess(it: Fixture, peer: AuthPeer): Promise<boolean> {
  const exchange = it.begin(peer)
  const first = await exchange.step('scram-sha-256', Buffer.from('n,,n=acme/alice,r=x'))
  if (first.outcome !== 'continue') return false
  const [nonce] = Buffer.from(first.data).toString().split(',')
  const final = await exchange.step('', Buffer.from(`c=biws,${nonce},p=${Buffer.alloc(32).toString('base64')}`))
  expect(final.outcome).toBe('failed')
  return final.outcome === 'failed' && final.waitMs === undefined
}

test.each<[string, number, (n: number) => string]>([
  ['one address', 1, () => '192.0.2.1'],
  ['500 loopback addresses', 500, (n) => `127.0.${n >> 7}.${1 + (n & 127)}`],
  ['500 networks', 500, (n) => `10.${n >> 7}.${1 + (n & 127)}.1`],
])('of guesses from %s at most twenty a minute are looked at', async (_, addresses, addressOf) => {
  const it = new Fixture()
  const looked: number[] = []
  let owned = 0
  const ownerComes = async (address: string): Promise<void> => {
    expect((await it.password('acme/alice', 'wonderland', from(address))).outcome).toBe('ok')
    owned++
  }
  await ownerComes('203.0.113.1')
  for (let n = 0; n < GUESSES; n++) {
    if (await guess(it, from(addressOf(n % addresses)))) looked.push(it.now)
    // Ten minutes in all.
    it.now += (10 * MINUTE) / GUESSES
    if (n % (GUESSES / 10) === 0) await ownerComes('203.0.113.2')
  }
  expect(owned).toBe(11)
  for (const [i, at] of looked.entries()) {
    expect(at - (looked[i - MOST] ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(MINUTE)
  }
})

test('of guesses by password from 500 networks at once no more than twenty are reported', async () => {
  const it = new Fixture()
  const guesses = Array.from({ length: 500 }, (_, i) => {
    return it.password('acme/alice', i === 499 ? 'wonderland' : `${i}`, from(`10.${i >> 7}.${1 + (i & 127)}.1`))
  })
  const answers = await Promise.all(guesses)
  expect(answers.filter(({ outcome }) => outcome === 'ok')).toEqual([])
  // The right one is answered as the wrong ones beside it.
  expect(answers.at(-1)).toEqual({ outcome: 'failed', identity: 'acme/alice', waitMs: MINUTE })
  expect(answers.at(-1)).toEqual(answers.at(-2))
})

test('by password, all at once, no more than that are looked at, and none of the rest is reported', async () => {
  const it = new Fixture()
  const guesses = Array.from({ length: 1000 }, (_, i) => it.password('acme/alice', i === 999 ? 'wonderland' : `${i}`))
  const answers = await Promise.allSettled(guesses)
  expect(it.compared.length).toBeLessThanOrEqual(MOST)
  expect(answers.filter((each) => each.status === 'fulfilled' && each.value.outcome === 'ok')).toEqual([])
  expect((await it.password('acme/alice', 'wonderland', from('203.0.113.9'))).outcome).toBe('ok')
  it.now += MINUTE
  expect((await it.password('acme/alice', 'wonderland')).outcome).toBe('ok')
})
