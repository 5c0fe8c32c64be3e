import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ScramClient } from '../../../auth/scram/client.ts'
import { deriveKeys, type ScramVerifier, verifierOf } from '../../../auth/scram/keys.ts'
import { MAX_MESSAGE_BYTES } from '../../../auth/scram/message.ts'
import { ScramServer, type ScramStep } from '../../../auth/scram/server.ts'
import { isLong } from '../../support/long.ts'
import { bytes, RFC_7677, text } from './vector.ts'

const serverSecret = new Uint8Array(32).fill(7)
const verifier = await verifierOf(await deriveKeys(RFC_7677.password, RFC_7677.salt, RFC_7677.iterations))

function rfcServer(subject: { verifier: ScramVerifier | undefined } = { verifier }): ScramServer {
  return new ScramServer({
    serverSecret,
    iterations: RFC_7677.iterations,
    find: (identity) => ({ identity, ...subject }),
    nonce: RFC_7677.serverNonce,
  })
}

/** A server that knows nobody. */
function emptyServer(secret = serverSecret): ScramServer {
  const find = (identity: string) => ({ identity, verifier: undefined })
  return new ScramServer({ serverSecret: secret, iterations: 600_000, find })
}

function sent(step: ScramStep): string {
  return step.outcome === 'failed' ? 'failed' : `${step.outcome} ${text(step.data)}`
}

function afterFirst(clientFirst: string = RFC_7677.clientFirst): ScramServer {
  const server = rfcServer()
  server.step(bytes(clientFirst))
  return server
}

test('the server answers as RFC 7677 prints', () => {
  const server = rfcServer()
  expect(sent(server.step(bytes(RFC_7677.clientFirst)))).toBe(`continue ${RFC_7677.serverFirst}`)
  expect(sent(server.step(bytes(RFC_7677.clientFinal)))).toBe(`proven ${RFC_7677.serverFinal}`)
})

test('an exchange that is over stays over', () => {
  const server = afterFirst()
  server.step(bytes(RFC_7677.clientFinal))
  expect(server.step(bytes(RFC_7677.clientFinal))).toEqual({ outcome: 'failed' })
  const failed = rfcServer()
  expect(failed.step(bytes('hello'))).toEqual({ outcome: 'failed' })
  expect(failed.step(bytes(RFC_7677.clientFirst))).toEqual({ outcome: 'failed' })
})

test('our client and our server agree, for a name that needs escaping', async () => {
  const client = new ScramClient({ identity: 'a,b/c=d', password: RFC_7677.password })
  const names: string[] = []
  const find = (username: string) => {
    names.push(username)
    return { identity: username, verifier }
  }
  const server = new ScramServer({ serverSecret, iterations: 4096, find })
  const first = server.step(client.first())
  expect(first.outcome).toBe('continue')
  const final = server.step(await client.final(first.outcome === 'continue' ? first.data : bytes('')))
  expect(final.outcome).toBe('proven')
  client.verify(final.outcome === 'proven' ? final.data : bytes(''))
  expect(names).toEqual(['a,b/c=d'])
})

test('another byte anywhere in the final message is refused', () => {
  const message = bytes(RFC_7677.clientFinal)
  const all = Array.from({ length: 256 }, (_, value) => value)
  for (let at = 0; at < message.length; at++) {
    const byte = message[at]!
    // The last four bytes are the group of base64 in which characters differ that decode alike.
    const values =
      isLong || at >= message.length - 4 ? all : [0, 255, ...[0, 1, 2, 3, 4, 5, 6, 7].map((bit) => byte ^ (1 << bit))]
    for (const value of values) {
      if (value === byte) continue
      const changed = message.slice()
      changed[at] = value
      expect(afterFirst().step(changed).outcome, `byte ${at} = ${value}`).toBe('failed')
    }
  }
}, 120_000)

/** A client-final of somebody who knows the password, from RFC 5802 section 3, with a nonce as it likes. */
function finalWith(nonce: string): string {
  const { clientFirst, serverFirst, password, salt, iterations } = RFC_7677
  const hmac = (key: Uint8Array, message: string): Buffer => createHmac('sha256', key).update(message).digest()
  const clientKey = hmac(pbkdf2Sync(password, salt, iterations, 32, 'sha256'), 'Client Key')
  const withoutProof = `c=biws,r=${nonce}`
  const authMessage = `${clientFirst.slice(3)},${serverFirst},${withoutProof}`
  const signature = hmac(createHash('sha256').update(clientKey).digest(), authMessage)
  return `${withoutProof},p=${Buffer.from(clientKey.map((byte, i) => byte ^ signature[i]!)).toString('base64')}`
}

test('another nonce is refused, although the proof is made with it', () => {
  const { clientNonce, serverNonce } = RFC_7677
  expect(finalWith(clientNonce + serverNonce)).toBe(RFC_7677.clientFinal)
  for (const nonce of [clientNonce, serverNonce, `${clientNonce}${serverNonce}x`, 'x']) {
    expect(afterFirst().step(bytes(finalWith(nonce))).outcome).toBe('failed')
  }
})

test('a final message cut short or with something after is refused', () => {
  for (let length = 0; length < RFC_7677.clientFinal.length; length++) {
    expect(afterFirst().step(bytes(RFC_7677.clientFinal.slice(0, length))).outcome).toBe('failed')
  }
  expect(afterFirst().step(bytes(`${RFC_7677.clientFinal},x=1`)).outcome).toBe('failed')
})

test('a final message is good for the one exchange it was made for', () => {
  const other = new ScramServer({ serverSecret, iterations: 4096, find: (identity) => ({ identity, verifier }) })
  other.step(bytes(RFC_7677.clientFirst))
  expect(other.step(bytes(RFC_7677.clientFinal)).outcome).toBe('failed')
})

test('the channel binding must repeat the header of the first message', () => {
  const final = (clientFirst: string): string => afterFirst(clientFirst).step(bytes(RFC_7677.clientFinal)).outcome
  expect(final(RFC_7677.clientFirst)).toBe('proven')
  expect(final(RFC_7677.clientFirst.replace('n,,', 'y,,'))).toBe('failed')
  const same = RFC_7677.clientFinal.replace('biws', 'eSws')
  expect(afterFirst().step(bytes(same)).outcome).toBe('failed')
})

test('a client that could do channel binding is served without', () => {
  expect(rfcServer().step(bytes('y,,n=user,r=x')).outcome).toBe('continue')
})

test('channel binding where none is offered, an authorization identity and mandatory extensions are refused', () => {
  const outcome = (message: string): string => rfcServer().step(bytes(message)).outcome
  expect(outcome('p=tls-exporter,,n=user,r=x')).toBe('failed')
  expect(outcome('n,a=admin,n=user,r=x')).toBe('failed')
  expect(outcome('n,,m=x,n=user,r=x')).toBe('failed')
  expect(outcome(`n,,n=user,r=x,z=${'a'.repeat(MAX_MESSAGE_BYTES)}`)).toBe('failed')
})

test('an unknown user has a salt of his own that stays the same', () => {
  const salt = (username: string, secret = serverSecret): string => {
    const answer = sent(emptyServer(secret).step(bytes(`n,,n=${username},r=x`)))
    const match = /^continue r=x[^,]+,s=([A-Za-z0-9+/]{22}==),i=600000$/.exec(answer)
    expect(match, answer).not.toBeNull()
    return match![1]!
  }
  expect(salt('mallory')).toBe(salt('mallory'))
  expect(salt('mallory')).not.toBe(salt('trent'))
  expect(salt('mallory')).not.toBe(salt('mallory', new Uint8Array(32).fill(8)))
})

test('an unknown user fails at the proof, not earlier', () => {
  const server = rfcServer({ verifier: undefined })
  expect(server.step(bytes(RFC_7677.clientFirst)).outcome).toBe('continue')
  expect(server.step(bytes(RFC_7677.clientFinal)).outcome).toBe('failed')
})

test('a user who may not be looked at fails at once', () => {
  const server = new ScramServer({ serverSecret, iterations: 4096, find: () => undefined })
  expect(server.step(bytes(RFC_7677.clientFirst)).outcome).toBe('failed')
})

test('random bytes end as failed and never throw', () => {
  const noise = fc.oneof(
    fc.uint8Array({ maxLength: 4096 }),
    fc.string({ unit: 'grapheme', maxLength: 100 }).map(bytes),
    fc.stringMatching(/^[nyp](=[a-z]*)?,(a=b)?,(m=x,)?n=[a-z=,23CD]*,r=[!-~]*$/).map(bytes),
  )
  const finals = fc.oneof(
    noise,
    fc.tuple(fc.base64String(), fc.base64String()).map(([c, p]) => bytes(`c=${c},r=${'x'.repeat(9)},p=${p}`)),
  )
  fc.assert(
    fc.property(noise, finals, (first, second) => {
      const server = rfcServer()
      expect(['failed', 'continue']).toContain(server.step(first).outcome)
      const begun = afterFirst()
      expect(begun.step(second).outcome).toBe('failed')
    }),
    { numRuns: 500 },
  )
})
