import { type Duplex, duplexPair } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { Handshakes } from '../../../../server/edge/tls/files.ts'
import { Authority } from '../../../support/certificates.ts'
import { secure } from '../../../support/layers.ts'

const authority = await Authority.make()
const server = await authority.server()
const options = { ...server, ca: authority.cert, requestCert: true, rejectUnauthorized: false }

function pair(): [Duplex, Duplex] {
  const [near, far] = duplexPair()
  near.once('close', () => far.destroy())
  far.once('close', () => near.destroy())
  return [near, far]
}

const nameOf = (socket: TLSSocket) => socket.getPeerX509Certificate()?.subject

describe('handshakes', () => {
  it('at the same time are not mistaken for each other, however often', async () => {
    const handshakes = new Handshakes(options)
    const clients = await Promise.all(Array.from({ length: 20 }, (_, index) => authority.client(`user${index}`)))
    for (let round = 0; round < 3; round++) {
      await Promise.all(
        clients.map(async (issued, index) => {
          const [near, far] = pair()
          const served = new Promise<TLSSocket>((resolve) => handshakes.begin(far, resolve))
          const client = await secure(near, { ...issued, ca: authority.cert })
          expect(nameOf(await served)).toBe(`CN=user${index}`)
          client.destroy()
        }),
      )
    }
  })

  it('that fail between others that succeed disturb none', async () => {
    const handshakes = new Handshakes(options)
    for (let round = 0; round < 20; round++) {
      const [bad, badFar] = pair()
      const [near, far] = pair()
      const closed = new Promise((resolve) => badFar.once('close', resolve))
      handshakes.begin(badFar, () => expect.unreachable('this is no handshake'))
      const served = new Promise<TLSSocket>((resolve) => handshakes.begin(far, resolve))
      if (round % 2 === 0) bad.write('no handshake at all')
      else bad.destroy()
      const client = await secure(near, { ca: authority.cert })
      expect((await served).encrypted).toBe(true)
      await closed
      client.destroy()
    }
  })
})
