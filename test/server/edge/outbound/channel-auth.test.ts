import { expect, it } from 'vitest'
import type { AuthPeer, AuthStep } from '../../../../auth/mechanism.ts'
import { untilAborted } from '../../../../server/edge/outbound/channel-auth.ts'

const peer: AuthPeer = { address: '127.0.0.1', loopback: true, encrypted: false }

it('whoever has proven itself when the attempt was given up meanwhile is not let in', async () => {
  let decide: (step: AuthStep) => void = () => {}
  const step = (): Promise<AuthStep> => new Promise((resolve) => (decide = resolve))
  const attempt = new AbortController()
  const door = untilAborted({ methods: () => ['scram-sha-256'], begin: () => ({ step }) }, attempt.signal)
  const challenge: AuthStep = { outcome: 'continue', data: new Uint8Array(1) }
  const first = door.begin(peer).step('scram-sha-256', new Uint8Array(0))
  decide(challenge)
  expect(await first).toBe(challenge)
  const last = door.begin(peer).step('', new Uint8Array(0))
  attempt.abort()
  decide(challenge)
  expect(await last).toEqual({ outcome: 'failed' })
})
