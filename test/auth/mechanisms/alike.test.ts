/** What an unknown user meets, and a known one with a wrong password, step by step: nothing here looks at a stopwatch. */
import { expect, test } from 'vitest'
import type { AuthStep } from '../../../auth/mechanism.ts'
import { RfcScram } from '../../support/rfc-scram.ts'
import { BOUND, certificateOf, Fixture, LOCAL, NOTHING, passwordData } from '../fixture.ts'

/** Outcomes and what a peer sees of them, without what belongs to this one exchange. */
async function seen(it: Fixture, username: string, exporter?: Uint8Array): Promise<string[]> {
  const client = new RfcScram({ username, password: 'wrong', exporter, nonce: 'x' })
  const exchange = it.begin(exporter ? BOUND : LOCAL)
  const steps: AuthStep[] = [await exchange.step(client.method, client.clientFirst())]
  const [first] = steps
  if (first?.outcome === 'continue') steps.push(await exchange.step('', client.clientFinal(first.data)))
  steps.push(await exchange.step('', NOTHING))
  return steps.map((step) => `${step.outcome} ${shape(step)}`)
}

function shape(step: AuthStep): string {
  if (step.outcome !== 'continue') return ''
  return Buffer.from(step.data)
    .toString()
    .replace(/[A-Za-z0-9+/]{20,}=*/g, (random) => `<${random.length}>`)
}

test.each([
  ['scram-sha-256', undefined],
  ['scram-sha-256-plus', BOUND.exporter],
] as const)('in %s both see the same steps, up to the throttle and after it', async (_, exporter) => {
  const it = new Fixture()
  for (let guess = 0; guess < 8; guess++) {
    const known = await seen(it, 'acme/alice', exporter)
    expect(await seen(it, 'acme/mallory', exporter)).toEqual(known)
    expect(known[0]).toMatch(guess < 6 ? /^continue r=<33>,s=<24>,i=4096$/ : /^failed/)
  }
})

test('a known and an unknown user cost as many comparisons by password', async () => {
  const it = new Fixture()
  const comparisons = async (identity: string): Promise<number[]> => {
    const counts: number[] = []
    for (const password of ['wrong', '', 'a'.repeat(73), 'a\u0000', 'wrong', 'wrong', 'wrong']) {
      it.compared.length = 0
      await it.step('password', passwordData(identity, password))
      counts.push(it.compared.length)
    }
    return counts
  }
  expect(await comparisons('acme/alice')).toEqual([1, 0, 0, 0, 1, 1, 0])
  expect(await comparisons('acme/mallory')).toEqual([1, 0, 0, 0, 1, 1, 0])
})

test('a user who has no password is as one who does not exist', async () => {
  const it = new Fixture()
  it.accounts = it.accounts.map((account) => ({ ...account, bcrypt: undefined, scram: undefined }))
  expect(await seen(it, 'acme/alice')).toEqual(await seen(it, 'acme/mallory'))
  await it.password('acme/alice', 'x')
  await it.password('acme/mallory', 'x')
  expect(it.compared).toEqual([
    ['x', undefined],
    ['x', undefined],
  ])
})

test('a failure says who it was about, to the operator alone', async () => {
  const it = new Fixture()
  expect(await it.password('default/mallory', 'x')).toEqual({ outcome: 'failed', identity: 'mallory' })
  expect(await it.step('certificate', NOTHING, { ...BOUND, certificate: certificateOf('mallory') })).toEqual({
    outcome: 'failed',
    identity: 'mallory',
    reason: 'there is no such user',
  })
})
