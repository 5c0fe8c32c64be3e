/** `tls://` and `wss://` against Node's own servers: which certificates are accepted, and the errors for those that are not. */
import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { generate } from 'selfsigned'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { dial } from '../../../client/dial/dial.ts'
import { Authority, type Issued, OperatorDirectory } from '../../support/certificates.ts'

const never = new AbortController().signal
const closing: (() => unknown)[] = []
let authority: Authority
let issued: Issued

beforeAll(async () => {
  authority = await Authority.make()
  issued = await authority.server()
})
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** Returns the port, and the server's end of the next connection. */
async function serve(options: TlsOptions = {}) {
  const server = createServer({ ...issued, ...options }).listen(0, '127.0.0.1')
  server.on('tlsClientError', () => {})
  const next = new Promise<TLSSocket>((resolve) => server.once('secureConnection', resolve))
  closing.push(() => server.close())
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, next }
}

/** A certificate that is its own authority. */
async function own(altName: string, until = new Date(Date.now() + 3_600_000)): Promise<Issued> {
  const made = await generate([{ name: 'commonName', value: altName }], {
    keyType: 'ec',
    algorithm: 'sha256',
    notBeforeDate: new Date(until.getTime() - 7_200_000),
    notAfterDate: until,
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: altName }] }],
  })
  return { cert: made.cert, key: made.private }
}

describe('tls://', () => {
  test('connects if the certificate is signed by a trusted authority, and both ends have the same exporter', async () => {
    const { port, next } = await serve()
    const transport = await dial(`tls://127.0.0.1:${port}`, never, { tls: { ca: authority.cert } })
    closing.push(() => transport.close())
    expect(transport).toMatchObject({ encrypted: true, loopback: true })
    const theirs = (await next).exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
    expect(Buffer.from(transport.exporter ?? [])).toEqual(theirs)
  })

  test('accepts files as well as their text', async () => {
    const files = new OperatorDirectory()
    closing.push(() => files.remove())
    const { port } = await serve({ ca: authority.cert, requestCert: true })
    const { cert, key } = await authority.client('alice')
    const tls = { ca: files.write('ca.pem', authority.cert), cert: files.write('me.pem', cert), key }
    const transport = await dial(`tls://127.0.0.1:${port}`, never, { tls })
    closing.push(() => transport.close())
    expect(transport.encrypted).toBe(true)
  })

  test('shows our certificate to a server that asks for one', async () => {
    const { port, next } = await serve({ ca: authority.cert, requestCert: true })
    const tls = { ca: authority.cert, ...(await authority.client('alice')) }
    const transport = await dial(`tls://localhost:${port}`, never, { tls })
    closing.push(() => transport.close())
    expect((await next).getPeerCertificate().subject.CN).toBe('alice')
  })

  test('with 1.2 has no exporter, since that of 1.2 can be made the same on two connections', async () => {
    const { port } = await serve({ maxVersion: 'TLSv1.2' })
    const transport = await dial(`tls://127.0.0.1:${port}`, never, { tls: { ca: authority.cert } })
    closing.push(() => transport.close())
    expect(transport).toMatchObject({ encrypted: true, exporter: undefined })
  })

  test('is refused below 1.2', async () => {
    const { port } = await serve({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT:@SECLEVEL=0' })
    const dialling = dial(`tls://127.0.0.1:${port}`, never, { tls: { ca: authority.cert } })
    await expect(dialling).rejects.toMatchObject({ code: 'UNREACHABLE' })
  })

  test('reports that no trusted authority has signed the certificate', async () => {
    const { port } = await serve()
    await expect(dial(`tls://127.0.0.1:${port}`, never)).rejects.toMatchObject({
      code: 'UNTRUSTED',
      message: expect.stringMatching(/not signed by a trusted authority.*`tls\.ca`/),
    })
  })

  test('refuses a certificate for another host, and reports which', async () => {
    const { cert, key } = await own('n7.example.org')
    const { port } = await serve({ cert, key })
    await expect(dial(`tls://127.0.0.1:${port}`, never, { tls: { ca: cert } })).rejects.toMatchObject({
      code: 'UNTRUSTED',
      message: expect.stringMatching(/for another host \(.*n7\.example\.org.*\).*`tls\.servername`/),
    })
    const meant = await dial(`tls://127.0.0.1:${port}`, never, { tls: { ca: cert, servername: 'n7.example.org' } })
    closing.push(() => meant.close())
    expect(meant.encrypted).toBe(true)
  })

  test('reports that a certificate has expired', async () => {
    const { cert, key } = await own('localhost', new Date(Date.now() - 60_000))
    const { port } = await serve({ cert, key })
    await expect(dial(`tls://localhost:${port}`, never, { tls: { ca: cert } })).rejects.toMatchObject({
      code: 'UNTRUSTED',
      message: expect.stringContaining('has expired'),
    })
  })

  test('counts as readable by others if the certificate is not verified', async () => {
    const { port } = await serve()
    const transport = await dial(`tls://127.0.0.1:${port}`, never, { tls: { rejectUnauthorized: false } })
    closing.push(() => transport.close())
    expect(transport.encrypted).toBe(false)
    expect(transport.exporter).toHaveLength(32)
  })

  test('never continues in the clear if the other end has no TLS', async () => {
    const plain = createTcpServer((socket) => socket.write('this is no TLS at all')).listen(0, '127.0.0.1')
    closing.push(() => plain.close())
    await once(plain, 'listening')
    const heard = once(plain, 'connection').then(([socket]) =>
      once(
        socket.on('error', () => {}),
        'data',
      ),
    )
    const { port } = plain.address() as AddressInfo
    await expect(dial(`tls://127.0.0.1:${port}`, never)).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: `cannot connect to tls://127.0.0.1:${port}: the server there does not use TLS`,
    })
    // A TLS record of type handshake.
    expect((await heard)[0][0]).toBe(22)
  })

  test.each([
    ['tls://127.0.0.1', {}, 'BAD_URL', 'has no port'],
    ['tls://127.0.0.1:1', { ca: '/nowhere/ca.pem' }, 'BAD_TLS', '`tls.ca` cannot be read: ENOENT'],
    ['tls://127.0.0.1:1', { ca: '/dev/null' }, 'BAD_TLS', '`tls.ca`: /dev/null contains no PEM'],
    ['tls://127.0.0.1:1', { cert: '-----BEGIN CERTIFICATE-----\nno\n', key: '/dev/null' }, 'BAD_TLS', '/dev/null'],
  ])('rejects bad options before it connects: %s %o', async (url, tls, code, message) => {
    const error = await dial(url, never, { tls }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code, message: expect.stringContaining(message) })
  })

  test('can be aborted during the handshake', async () => {
    const silent = createTcpServer().listen(0, '127.0.0.1')
    closing.push(() => silent.close())
    await once(silent, 'listening')
    const abort = new AbortController()
    const dialling = dial(`tls://127.0.0.1:${(silent.address() as AddressInfo).port}`, abort.signal)
    const [socket] = await once(silent, 'connection')
    abort.abort(new Error('enough'))
    await expect(dialling).rejects.toThrow('enough')
    await once(socket.resume(), 'close')
  })
})

describe('wss://', () => {
  async function serveWeb() {
    const https = createHttpsServer(issued).listen(0, '127.0.0.1')
    const server = new WebSocketServer({
      server: https,
      handleProtocols: () => 'monitoring.xdr',
      perMessageDeflate: true,
    })
    closing.push(
      () => https.close(),
      () => server.close(),
    )
    await once(https, 'listening')
    return { server, url: `wss://localhost:${(https.address() as AddressInfo).port}/monitor` }
  }

  test('takes the same options, has the same exporter, and compresses nothing by itself', async () => {
    const { server, url } = await serveWeb()
    const next = once(server, 'connection')
    const transport = await dial(url, never, { tls: { ca: authority.cert } })
    closing.push(() => transport.close())
    expect(transport).toMatchObject({ encrypted: true, loopback: true })
    const [socket, request] = await next
    const theirs = request.socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
    expect(Buffer.from(transport.exporter ?? [])).toEqual(theirs)
    expect(socket.extensions).toBe('')
  })

  test('reports that no trusted authority has signed the certificate', async () => {
    const { url } = await serveWeb()
    await expect(dial(url, never)).rejects.toMatchObject({
      code: 'UNTRUSTED',
      message: expect.stringContaining('`tls.ca`'),
    })
  })
})

test.each([
  ['tls://127.0.0.1:1', 'omit it: tls:// uses TLS already'],
  ['ws://127.0.0.1:1', 'use wss:// instead'],
])('the layer tls cannot be added to %s', async (url, message) => {
  const dialling = dial(url, never, { wrap: ['tls'] })
  await expect(dialling).rejects.toMatchObject({ code: 'BAD_URL', message: expect.stringContaining(message) })
})
