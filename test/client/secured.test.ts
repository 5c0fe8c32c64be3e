/** The library against the server itself, over everything that protects a connection. */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type ConnectOptions, type Credentials, connect, newToken } from '../../client/index.ts'
import { Authority, OperatorDirectory } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const admin = { identity: 'admin', password: PASSWORD }
const files = new OperatorDirectory()
let server: ServerProcess
let authority: Authority
let tls: { readonly ca: string }
const ports = { tls: 0, https: 0 }

beforeAll(async () => {
  authority = await Authority.make()
  const { cert, key } = files.server(await authority.server())
  tls = { ca: files.write('ca.pem', authority.cert) }
  for (const name of ['tls', 'https'] as const) {
    ports[name] = await freePort()
    vi.stubEnv(`CINNABAR_LISTEN_${name.toUpperCase()}`, `127.0.0.1:${ports[name]}`)
  }
  const section = `[tls]\ncert = "${cert}"\nkey = "${key}"\nclient_ca = "${tls.ca}"\n`
  server = new ServerProcess(`${section}[gmetric]\nlisten = ""\n`)
  await server.start()
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await server.remove()
  files.remove()
})

/** Logs in, and asks something; gives the capabilities. */
async function tried(url: string, credentials: Credentials, options: ConnectOptions) {
  const consumer = await connect(url, credentials, { tls, reconnect: false, ...options })
  const { value } = await consumer.query('host.load.one')
  expect(value.value).toBeTypeOf('number')
  const { capabilities, isConfidential } = consumer
  await consumer.close()
  return { layer: capabilities?.layer, auth: capabilities?.auth, isConfidential }
}

const urls = {
  tcp: () => `tcp://127.0.0.1:${server.tcpPort}`,
  tls: () => `tls://127.0.0.1:${ports.tls}`,
  ws: () => `ws://127.0.0.1:${server.httpPort}/monitor`,
  wss: () => `wss://localhost:${ports.https}/monitor`,
}

describe.each<[keyof typeof urls, ConnectOptions['wrap']]>([
  ['tcp', []],
  ['tcp', ['tls']],
  ['tcp', ['deflate']],
  ['tcp', ['tls', 'deflate']],
  ['tls', []],
  ['tls', ['deflate']],
  ['ws', ['deflate']],
  ['wss', []],
  ['wss', ['deflate']],
])('%s with the layers %j', (door, wrap) => {
  test('takes a password by scram, and a value comes through', async () => {
    const credentials = { ...admin, methods: ['scram-sha-256-plus', 'scram-sha-256'] as const }
    const { isConfidential } = await tried(urls[door](), credentials, { wrap })
    expect(isConfidential).toBe(true)
  })
})

test.each<[keyof typeof urls, ConnectOptions['wrap']]>([
  ['tcp', ['tls']],
  ['tls', []],
])('%s with %j binds the login to the connection', async (door, wrap) => {
  const { auth } = await tried(urls[door](), { ...admin, methods: ['scram-sha-256-plus'] }, { wrap })
  expect(auth).toContain('scram-sha-256-plus')
})

test('a token that was made here logs in', async () => {
  const { token, hash } = await newToken()
  const consumer = await connect(urls.tls(), admin, { tls })
  const { value } = await consumer.execute('token.add', { user: 'admin', hash })
  expect(JSON.stringify(value)).toContain('"ok"')
  await consumer.close()
  await tried(urls.tls(), { token }, {})
})

test('a certificate logs in', async () => {
  const options = { tls: { ...tls, ...(await authority.client('admin')) } }
  await tried(urls.tls(), { certificate: true }, options)
  await tried(urls.tcp(), { certificate: true }, { ...options, wrap: ['tls'] })
})
