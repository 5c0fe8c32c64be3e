/** The promise about guessing, kept by all the parts together: 100,000 guesses, and the owner in between. */
import { expect, test } from 'vitest'
import type { AuthPeer } from '../../auth/mechanism.ts'
import { Fixture, LOCAL } from './fixture.ts'

const GUESSES = 100_000
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
  return final.outcome === 'failed' && !final.throttled
}

test.each([1, 500])('from %i loopback addresses, at most twenty a minute are looked at of each', async (addresses) => {
  const it = new Fixture()
  const looked = new Map<string, number[]>()
  let owned = 0
  for (let n = 0; n < GUESSES; n++) {
    const network = n % addresses
    const address = `127.0.${network >> 7}.${1 + (network & 127)}`
    if (await guess(it, from(address))) looked.set(address, [...(looked.get(address) ?? []), it.now])
    // Ten minutes in all.
    it.now += (10 * MINUTE) / GUESSES
    if (n % 10_000 === 0) {
      expect((await it.password('acme/alice', 'wonderland', from(`127.9.${owned++}.1`))).outcome).toBe('ok')
    }
  }
  expect(owned).toBe(10)
  expect(looked.size).toBe(addresses)
  for (const times of looked.values()) {
    for (const [i, at] of times.entries())
      expect(at - (times[i - MOST] ?? Number.NEGATIVE_INFINITY)).toBeGreaterThan(MINUTE)
  }
})

test('by password, all at once, no more than that are looked at, and none of the rest is reported', async () => {
  const it = new Fixture()
  const guesses = Array.from({ length: 1000 }, (_, i) => it.password('acme/alice', i === 999 ? 'wonderland' : `${i}`))
  const answers = await Promise.allSettled(guesses)
  expect(it.compared.length).toBeLessThanOrEqual(MOST)
  expect(answers.filter((each) => each.status === 'fulfilled' && each.value.outcome === 'ok')).toEqual([])
  expect((await it.password('acme/alice', 'wonderland', from('127.9.0.1'))).outcome).toBe('ok')
  it.now += MINUTE
  expect((await it.password('acme/alice', 'wonderland')).outcome).toBe('ok')
})
