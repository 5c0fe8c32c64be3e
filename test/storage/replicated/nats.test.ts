/** Which nats-servers are connected to, and how a node logs in there. */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Log } from '../../../storage/replicated/log.ts'
import { connectNats, isAllowedNatsUrl, knownFault } from '../../../storage/replicated/nats.ts'
import type { NatsOptions } from '../../../storage/replicated/options.ts'
import type { StorageError } from '../../../storage/store.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../support/nats.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

test.each([
  'nats://127.0.0.1:4222',
  'nats://127.1.2.3',
  'nats://localhost:4222',
  'NATS://LOCALHOST:4222',
  'nats://[::1]:4222',
  'tls://10.0.0.1:4222',
  'tls://nats.example.org',
  'tls://[2001:db8::1]:4222',
])('%s is allowed', (url) => {
  expect(isAllowedNatsUrl(url)).toBe(true)
})

test.each([
  '',
  '127.0.0.1:4222',
  'nats://10.0.0.1:4222',
  'nats://nats.example.org:4222',
  'nats://127.0.0.1.example.org',
  'nats://localhost.example.org',
  'nats://127.0.0.1:4222@example.org:4222',
  'nats://[::ffff:10.0.0.1]:4222',
  'nats://[2001:db8::1]:4222',
  'nats://0.0.0.0:4222',
  'nats://127.0.0.1:0',
  'nats://127.0.0.1:65536',
  'nats://127.0.0.1:4222/path',
  'nats://127.0.0.1:4222?x',
  'nats://127.0.0.1:4222#x',
  'nats://127.0.0.1:4222 ',
  'tls://user:password@10.0.0.1:4222',
  'ws://127.0.0.1:4222',
  'http://127.0.0.1:4222',
])('%s is not allowed', (url) => {
  expect(isAllowedNatsUrl(url)).toBe(false)
})

test.each(['2.9.10', '2.9.25', '2.10.0', '2.10.9', '2.10.26'])('of nats-server %s a fault is known', (version) => {
  expect(knownFault(version)).toMatch(new RegExp(`^nats-server ${version} may .* Use 2\\.10\\.27 or newer$`))
})

test.each(['2.10.27', '2.10.100', '2.11.0', '2.15.1', '3.0.0', ''])('of nats-server "%s" none is known', (version) => {
  expect(knownFault(version)).toBeUndefined()
})

test('a refusal names the address, and no password', async () => {
  const refused = (...servers: string[]) => connectNats({ servers }, 'test').catch(String)
  expect(await refused('tls://10.0.0.1:1', 'nats://10.0.0.2:4222')).toContain('nats://10.0.0.2:4222 cannot be')
  expect(await refused('nats://me:secret@127.0.0.1:4222')).toBe(
    'StorageError: nats://127.0.0.1:4222 cannot be a nats-server: write tls://host:port, or nats://host:port for one on loopback',
  )
  expect(await refused()).toContain('no nats-server is configured')
})

/** What speaks as much NATS as a client needs to connect, on a port of its own. */
class TalkingServer {
  readonly #server = createServer((socket) => this.#accept(socket.on('error', () => {})))
  readonly #sockets: Socket[] = []
  /** Connections that it ends at once, from now on. */
  refusals = 0
  accepted = 0

  static async start(): Promise<TalkingServer> {
    const server = new TalkingServer()
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    return server
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  #accept(socket: Socket): void {
    if (this.refusals-- > 0) {
      socket.destroy()
      return
    }
    this.accepted++
    this.#sockets.push(socket)
    socket.write('INFO {"server_id":"x","version":"2.9.10","max_payload":1048576,"proto":1,"headers":true}\r\n')
    socket.on('data', (chunk) => chunk.includes('PING') && socket.write('PONG\r\n'))
  }

  /** It reads nothing more from the connections that there are. */
  freeze(): void {
    for (const socket of this.#sockets) socket.pause()
  }

  cutOff(): void {
    for (const socket of this.#sockets.splice(0)) socket.destroy()
  }

  close(): void {
    this.cutOff()
    this.#server.close()
  }
}

test('leaves a server that answers no pings, although it has not taken all that was sent', async () => {
  const server = await TalkingServer.start()
  const connection = await connectNats({ servers: [server.url], pingMs: 50 }, 'test')
  server.freeze()
  // More than the system keeps of what a peer does not read.
  for (let sent = 0; sent < 64; sent++) connection.publish('x', new Uint8Array(1_000_000))
  await eventually(() => expect(server.accepted).toBe(2))
  await connection.close()
  server.close()
})

test('tries another server if one can be reached and nothing succeeds there', async () => {
  const cutOff = [await TalkingServer.start(), await TalkingServer.start()]
  const servers = cutOff.map(({ url }) => url)
  const log = await Log.connect({ cluster: 'main', node: 'n1', servers, replicas: 3, maxBytes: 1e9, timeoutMs: 50 })
  const asked = log.bounds(60_000).catch((error: StorageError) => error.message)
  await eventually(() => expect(cutOff.every(({ accepted }) => accepted > 0)).toBe(true))
  await log.close()
  expect(await asked).toBe('the log was closed')
  for (const server of cutOff) server.close()
})

test('tries the server first that has just answered', async () => {
  const servers = [await TalkingServer.start(), await TalkingServer.start(), await TalkingServer.start()]
  const urls = servers.map(({ url }) => url)
  const [, answering] = servers as [TalkingServer, TalkingServer, TalkingServer]
  for (let time = 1; time <= 5; time++) {
    const connection = await connectNats({ servers: urls, first: answering.url.replace('nats://', '') }, 'test')
    expect(servers.map(({ accepted }) => accepted)).toEqual([0, time, 0])
    await connection.close()
  }
  for (const server of servers) server.close()
})

test('a server that is tried first need not be one of them', async () => {
  const server = await TalkingServer.start()
  const connection = await connectNats({ servers: [server.url], first: '127.0.0.1:1' }, 'test')
  expect(server.accepted).toBe(1)
  await connection.close()
  server.close()
})

test('forgets no server, however often it could not be reached before one could', async () => {
  const [late, there] = [await TalkingServer.start(), await TalkingServer.start()]
  const servers = [late.url, there.url]
  // In random order: half of them would do by chance.
  for (let round = 0; round < 8; round++) {
    Object.assign(late, { refusals: 3, accepted: 0 })
    Object.assign(there, { refusals: 1, accepted: 0 })
    const connection = await connectNats({ servers }, 'test')
    late.refusals = 0
    there.refusals = Number.POSITIVE_INFINITY
    there.cutOff()
    await eventually(() => expect(connection.getServer()).toBe(late.url.replace('nats://', '')))
    await connection.flush()
    await connection.close()
    late.cutOff()
  }
  late.close()
  there.close()
})

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`connecting to nats-servers${howTo}`, () => {
  let directory: OperatorDirectory
  let servers: NatsServers
  beforeEach(() => {
    directory = new OperatorDirectory()
  })
  afterEach(async () => {
    await servers.stop()
    directory.remove()
  })

  /** 'connected', or the error. */
  async function outcomeOf(options: NatsOptions): Promise<string> {
    try {
      const connection = await connectNats(options, 'test')
      await connection.flush()
      await connection.close()
      return 'connected'
    } catch (error) {
      expect(['IO', 'UNREACHABLE']).toContain((error as StorageError).code)
      return String(error)
    }
  }

  test('tries each, and remembers one that was not there at first', async () => {
    servers = await NatsServers.start(3)
    const { urls } = servers
    await servers.kill(1)
    // The random order has the one that is down first in some of them.
    const connections = await Promise.all(Array.from({ length: 8 }, () => connectNats({ servers: urls }, 'test')))
    await servers.restart(1)
    for (const index of [0, 2]) await servers.kill(index)
    const there = urls[1]?.replace('nats://', '')
    for (const connection of connections) await eventually(() => expect(connection.getServer()).toBe(there))
    for (const connection of connections) await connection.flush()
    await Promise.all(connections.map((connection) => connection.close()))
  })

  test('says which cannot be reached', async () => {
    servers = await NatsServers.start(1)
    await servers.kill(0)
    const [url = ''] = servers.urls
    expect(await outcomeOf({ servers: [url] })).toMatch(new RegExp(`cannot connect to .*${url}.*refused`))
  })

  test('says if their messages are too small', async () => {
    servers = await NatsServers.start(1, { maxPayload: '64KB' })
    expect(await outcomeOf({ servers: servers.urls })).toContain('max_payload')
  })

  test('logs in by a password from a file, which may change', async () => {
    servers = await NatsServers.start(1, {
      config: 'authorization { users: [{ user: cin, password: "first secret" }] }',
    })
    const { urls } = servers
    const passwordFile = directory.write('password', 'first secret\n')
    expect(await outcomeOf({ servers: urls, user: 'cin', passwordFile })).toBe('connected')
    expect(await outcomeOf({ servers: urls })).toMatch(/authorization/i)
    directory.write('password', 'other secret')
    const refused = await outcomeOf({ servers: urls, user: 'cin', passwordFile })
    expect(refused).toMatch(/authorization/i)
    expect(refused).not.toContain('secret')
    expect(await outcomeOf({ servers: urls, user: 'cin', passwordFile: join(directory.path, 'none') })).toMatch(
      /none.*ENOENT/,
    )
  })

  test('goes on with what it has read if the file is gone for a while', async () => {
    servers = await NatsServers.start(1, { config: 'authorization { users: [{ user: cin, password: "secret" }] }' })
    const passwordFile = directory.write('password', 'secret')
    const connection = await connectNats({ servers: servers.urls, user: 'cin', passwordFile }, 'test')
    rmSync(passwordFile)
    await servers.kill(0)
    await servers.restart(0)
    await eventually(() => connection.flush())
    await connection.close()
  })

  test('logs in by a file of credentials', async () => {
    const { config, credentials } = issued()
    servers = await NatsServers.start(1, { config })
    expect(await outcomeOf({ servers: servers.urls, credentials: directory.write('node.creds', credentials) })).toBe(
      'connected',
    )
    expect(await outcomeOf({ servers: servers.urls })).toMatch(/authorization/i)
    const wrong = await outcomeOf({ servers: servers.urls, credentials: directory.write('wrong.creds', 'SUAXYZ') })
    expect(wrong).toContain('wrong.creds')
    expect(wrong).not.toContain('SUAXYZ')
  })

  test('checks certificates, also of an IP address', async () => {
    const authority = await Authority.make()
    const other = await Authority.make('another')
    const ca = directory.write('ca.pem', authority.cert)
    const { cert, key } = directory.server(await authority.server(['localhost']))
    servers = await NatsServers.start(1, { config: `tls { cert_file: "${cert}", key_file: "${key}" }` })
    const byAddress = servers.urls.map((url) => url.replace('nats:', 'tls:'))
    const byName = byAddress.map((url) => url.replace('127.0.0.1', 'localhost'))
    expect(await outcomeOf({ servers: byAddress, tls: { ca } })).toBe('connected')
    expect(await outcomeOf({ servers: byName, tls: { ca } })).toBe('connected')
    // From an authority that is not known.
    expect(await outcomeOf({ servers: byAddress })).toMatch(/cannot connect.*certificate/)
    const wrong = directory.write('other.pem', other.cert)
    expect(await outcomeOf({ servers: byAddress, tls: { ca: wrong } })).toMatch(/cannot connect.*certificate/)
    // For 127.0.0.1 and localhost, and for no other address.
    const relay = createServer((socket) => {
      const onward = connect(Number(byAddress[0]?.split(':').at(-1)), '127.0.0.1')
      socket.pipe(onward).pipe(socket)
      socket.on('error', () => onward.destroy())
      onward.on('error', () => socket.destroy())
    }).listen(0, '127.0.0.2')
    await once(relay, 'listening')
    const { port } = relay.address() as AddressInfo
    expect(await outcomeOf({ servers: [`tls://127.0.0.2:${port}`], tls: { ca } })).toMatch(/IP: 127\.0\.0\.2 is not in/)
    await new Promise((resolve) => relay.close(resolve))
  })

  test('compares the name of a server, though its certificate is for its address too', async () => {
    const authority = await Authority.make()
    const ca = directory.write('ca.pem', authority.cert)
    const { cert, key } = directory.server(await authority.server(['nats.example.org']))
    servers = await NatsServers.start(1, { config: `tls { cert_file: "${cert}", key_file: "${key}" }` })
    const byName = servers.urls.map((url) => url.replace('nats://127.0.0.1', 'tls://localhost'))
    expect(await outcomeOf({ servers: byName, tls: { ca } })).toMatch(/Host: localhost\. is not in/)
  })

  test('shows a certificate of its own', async () => {
    const authority = await Authority.make()
    const ca = directory.write('ca.pem', authority.cert)
    const { cert, key } = directory.server(await authority.server())
    const tls = `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${ca}", verify: true }`
    servers = await NatsServers.start(1, { config: tls })
    const own = await authority.client('node')
    const files = { cert: directory.write('own.pem', own.cert), key: directory.write('own.key', own.key) }
    const byAddress = servers.urls.map((url) => url.replace('nats:', 'tls:'))
    expect(await outcomeOf({ servers: byAddress, tls: { ca, ...files } })).toBe('connected')
    expect(await outcomeOf({ servers: byAddress, tls: { ca } })).toContain('cannot connect')
  })

  test('does not do without TLS where it is asked for', async () => {
    servers = await NatsServers.start(1)
    const byAddress = servers.urls.map((url) => url.replace('nats:', 'tls:'))
    expect(await outcomeOf({ servers: byAddress })).toMatch(/does not support 'tls'/)
    // One address with tls:// is enough.
    expect(await outcomeOf({ servers: [...servers.urls, 'tls://127.0.0.1:1'] })).toContain('cannot connect')
  })
})

/** What an operator makes with `nsc`: an account with a user, and one for the nats-server itself. */
function issued() {
  const [operator, account, system, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ]
  const sign = (issuer: typeof operator, subject: typeof operator, claims: object): string => {
    const base64 = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const subjects = { iss: issuer.getPublicKey(), sub: subject.getPublicKey() }
    const body = {
      jti: 'x',
      iat: Math.floor(Date.now() / 1_000),
      name: 'x',
      ...subjects,
      nats: { version: 2, ...claims },
    }
    const text = `${base64({ typ: 'JWT', alg: 'ed25519-nkey' })}.${base64(body)}`
    return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`
  }
  const none = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, conn: -1, leaf: -1 }
  const preload = [account, system].map(
    (one) => `${one.getPublicKey()}: ${sign(operator, one, { type: 'account', limits: none })}`,
  )
  const jwt = sign(account, user, { type: 'user', subs: -1, data: -1, payload: -1 })
  const seed = Buffer.from(user.getSeed()).toString()
  return {
    config: `operator: ${sign(operator, operator, { type: 'operator' })}
      system_account: ${system.getPublicKey()}
      resolver: MEMORY
      resolver_preload: { ${preload.join(', ')} }`,
    credentials: `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n
-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
  }
}
