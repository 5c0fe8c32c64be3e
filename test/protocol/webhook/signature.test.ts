/** Signatures of webhooks: the vector is from the tests of Standard Webhooks' own libraries. */
import { describe, expect, it } from 'vitest'
import { webhookHeaders, webhookKey } from '../../../protocol/webhook/signature.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const attempt = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestampS: 1_614_265_330,
  body: new TextEncoder().encode('{"test": 2432232314}'),
}
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

function keyOf(secret: string): Uint8Array {
  const key = webhookKey(secret)
  if (key === undefined) throw new Error('no secret')
  return key
}

describe('the headers of a webhook', () => {
  it('have the id, the time and the signature', async () => {
    expect(await webhookHeaders(attempt, [keyOf(SECRET)])).toEqual({
      'webhook-id': attempt.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': SIGNATURE,
    })
  })

  it('have a signature by each key, with a blank between them', async () => {
    const other = `whsec_${btoa('another secret of 26 bytes')}`
    const { 'webhook-signature': signatures } = await webhookHeaders(attempt, [keyOf(other), keyOf(SECRET)])
    expect(signatures?.split(' ')).toHaveLength(2)
    expect(signatures?.split(' ')[1]).toBe(SIGNATURE)
    expect(signatures?.split(' ')[0]).not.toBe(SIGNATURE)
  })

  it('have no signature without a key', async () => {
    expect(Object.keys(await webhookHeaders(attempt, []))).toEqual(['webhook-id', 'webhook-timestamp'])
  })
})

it.each([
  ['without its prefix', SECRET.slice(6)],
  ['of 23 bytes', `whsec_${btoa('x'.repeat(23))}`],
  ['of 65 bytes', `whsec_${btoa('x'.repeat(65))}`],
  ['that is no base64', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS.'],
  ['that is private', `whsk_${SECRET.slice(6)}`],
])('a secret %s is none', (_what, secret) => {
  expect(webhookKey(secret)).toBeUndefined()
})

it.each([24, 64])('a secret of %i bytes is one', (length) => {
  expect(webhookKey(`whsec_${btoa('x'.repeat(length))}`)).toEqual(new Uint8Array(length).fill(120))
})
