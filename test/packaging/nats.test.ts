/**
 * packaging/nats.conf: nats-server accepts it, three servers with it are one cluster, and the user in it may do what a node of
 * Cinnabar does, and nothing else.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AckPolicy, DeliverPolicy, jetstreamManager, StorageType } from '@nats-io/jetstream'
import { type ConnectionOptions, connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Authority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const shipped = readFileSync(join(ROOT, 'packaging/nats.conf'), 'utf8')
const NATS_SERVER = '/usr/sbin/nats-server'
const missing = !existsSync(NATS_SERVER)
const howTo = missing ? ' (not installed: apt-get install nats-server)' : ''
const PASSWORD = 'p0123456789abcdef'
const env = { ...process.env, CINNABAR_NATS_PASSWORD: PASSWORD }
const NAMES = ['n1', 'n2', 'n3'] as const

interface Ports {
  readonly client: number
  readonly route: number
  readonly http: number
}

/** The file as an operator would change it, and on top of that with ports and paths of this test. */
function confOf(name: string, { client, route, http }: Ports, routes: readonly number[], directory: string): string {
  const replaced: readonly (readonly [string, string])[] = [
    ['server_name: n1', `server_name: ${name}`],
    ['THIS_HOST: "10.0.0.1"', 'THIS_HOST: "127.0.0.1"'],
    ['port: 4222', `port: ${client}`],
    ['port: 6222', `port: ${route}`],
    ['127.0.0.1:8222', `127.0.0.1:${http}`],
    [
      '["nats://10.0.0.1:6222", "nats://10.0.0.2:6222", "nats://10.0.0.3:6222"]',
      JSON.stringify(routes.map((port) => `nats://localhost:${port}`)),
    ],
    ['"/var/lib/nats"', JSON.stringify(join(directory, name))],
  ]
  let text = shipped
  for (const [from, to] of replaced) {
    expect(text.split(from), from).toHaveLength(2)
    text = text.replace(from, to)
  }
  return text.replaceAll('/etc/nats/', `${directory}/`)
}

// A machine may have no nats-server.
describe.skipIf(missing)(`nats-servers as shipped${howTo}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-nats-'))
  const children: ChildProcess[] = []
  const connections: NatsConnection[] = []
  let ports: Ports[]
  let authority: Authority

  beforeAll(async () => {
    authority = await Authority.make()
    const { cert, key } = await authority.node(['localhost'])
    for (const [file, text] of Object.entries({ 'server.pem': cert, 'server.key': key, 'ca.pem': authority.cert })) {
      writeFileSync(join(directory, file), text)
    }
    ports = []
    for (const _ of NAMES) {
      ports.push({ client: await freePort(), route: await freePort(), http: await freePort() })
    }
    for (const [index, name] of NAMES.entries()) {
      const conf = join(directory, `${name}.conf`)
      mkdirSync(join(directory, name))
      const routes = ports.map(({ route }) => route)
      writeFileSync(conf, confOf(name, ports[index] as Ports, routes, directory))
    }
    const file = (name: string) => join(directory, `${name}.conf`)
    for (const name of NAMES) {
      children.push(
        spawn(NATS_SERVER, ['-c', file(name), '-l', join(directory, `${name}.log`)], { env, stdio: 'ignore' }),
      )
    }
    await eventually(async () => {
      for (const { http } of ports) {
        const { ok } = await fetch(`http://127.0.0.1:${http}/healthz`)
        expect(ok).toBe(true)
        const state = (await (await fetch(`http://127.0.0.1:${http}/jsz`)).json()) as { meta_cluster?: MetaCluster }
        expect(state.meta_cluster).toMatchObject({ leader: expect.stringMatching(/^n/), cluster_size: 3 })
      }
    })
  })
  afterAll(async () => {
    for (const connection of connections) await connection.close()
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    rmSync(directory, { recursive: true, force: true })
  })

  const open = async (given: Partial<ConnectionOptions> = {}): Promise<NatsConnection> => {
    const connection = await connect({
      servers: ports.map(({ client }) => `localhost:${client}`),
      ignoreClusterUpdates: true,
      tls: { ca: authority.cert },
      user: 'cinnabar',
      pass: PASSWORD,
      reconnect: false,
      ...given,
    })
    connections.push(connection)
    return connection
  }

  it('accept the file', () => {
    const { status, stderr } = spawnSync(NATS_SERVER, ['-t', '-c', join(directory, 'n1.conf')], {
      env,
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, expect.stringContaining('is valid')])
  })

  it('let a node make a log on three servers, write it in order, and read it again', async () => {
    const connection = await open()
    const manager = await jetstreamManager(connection)
    // The next log is made before the first one is removed.
    for (const number of [1, 2]) {
      await manager.streams.add({
        name: `CIN_main_${number}`,
        subjects: [`cin.main.log.${number}`],
        storage: StorageType.File,
        num_replicas: 3,
        max_bytes: 4 * 2 ** 30,
        max_msg_size: 2 ** 20,
        allow_direct: true,
        deny_delete: true,
      })
    }
    const log = manager.jetstream()
    const part = new Uint8Array(2 ** 20 - 64 * 1024).fill(7)
    for (const last of [0, 1, 2]) {
      const { seq } = await log.publish('cin.main.log.1', part, { expect: { lastSequence: last } })
      expect(seq).toBe(last + 1)
    }
    await expect(log.publish('cin.main.log.1', 'x', { expect: { lastSequence: 1 } })).rejects.toThrow(/last sequence/)
    expect((await manager.streams.getMessage('CIN_main_1', { seq: 2 }))?.data.length).toBe(part.length)
    expect((await manager.direct.getMessage('CIN_main_1', { seq: 3 }))?.seq).toBe(3)
    const info = await manager.consumers.add('CIN_main_1', {
      name: 'reader',
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: 2,
      mem_storage: true,
      num_replicas: 1,
    })
    const messages = await log.consumers.getConsumerFromInfo(info).fetch({ max_messages: 2, expires: 10_000 })
    const read: number[] = []
    for await (const message of messages) {
      read.push(message.seq)
      await message.ackAck()
    }
    expect(read).toEqual([2, 3])
    await manager.consumers.delete('CIN_main_1', 'reader')
  })

  it('let nodes hear each other', async () => {
    const [one, other] = [await open(), await open()]
    const heard: string[] = []
    one.subscribe('cin.main.alive', { callback: (_, message) => void heard.push(message.string()) })
    // The servers learn of a subscription one after the other, and nothing is kept for it.
    await eventually(async () => {
      other.publish('cin.main.alive', 'n2')
      await other.flush()
      expect(heard).toContain('n2')
    })
  })

  it.each(['cin.other.alive', 'cin.>', '>', '$SYS.>', '$JS.>', 'anything'])(
    'let nobody subscribe to %s',
    async (subject) => {
      const connection = await open()
      const refused = new Promise((resolve) => connection.subscribe(subject, { callback: (error) => resolve(error) }))
      expect(String(await refused)).toMatch(/permission/i)
    },
  )

  it.each(['cin.other.log.1', '$SYS.REQ.SERVER.PING', 'anything'])('let nobody publish to %s', async (subject) => {
    const connection = await open()
    const refused = (async () => {
      for await (const status of connection.status()) if (status.type === 'error') return status.error
    })()
    connection.publish(subject, 'x')
    expect(String(await refused)).toMatch(/permission/i)
  })

  it.each([
    ['without a name and a password', { user: '', pass: '' }],
    ['with a wrong one', { pass: 'wrong' }],
    ['without trusting the authority', { tls: {} }],
  ])('let nobody in %s', async (_, given) => {
    await expect(open(given)).rejects.toThrow()
  })

  it('let no server join that has another certificate', async () => {
    const stranger = await Authority.make('a stranger')
    const { cert, key } = await stranger.node(['localhost'])
    const strange = join(directory, 'strange')
    mkdirSync(strange)
    for (const [file, text] of Object.entries({ 'server.pem': cert, 'server.key': key, 'ca.pem': stranger.cert })) {
      writeFileSync(join(strange, file), text)
    }
    const own = { client: await freePort(), route: await freePort(), http: await freePort() }
    const routes = ports.map(({ route }) => route)
    writeFileSync(join(strange, 'n4.conf'), confOf('n4', own, routes, strange))
    const log = join(strange, 'n4.log')
    children.push(spawn(NATS_SERVER, ['-c', join(strange, 'n4.conf'), '-l', log], { env, stdio: 'ignore' }))
    await eventually(() => expect(readFileSync(log, 'utf8')).toMatch(/TLS route handshake error/))
    const { routes: joined } = (await (await fetch(`http://127.0.0.1:${ports[0]?.http}/routez`)).json()) as {
      routes: { remote_name: string }[]
    }
    expect(joined.map(({ remote_name }) => remote_name)).not.toContain('n4')
  })
})

interface MetaCluster {
  readonly leader?: string
  readonly cluster_size?: number
}

describe('the drop-in', () => {
  it('names the files that the configuration and its comments name', () => {
    const text = readFileSync(join(ROOT, 'packaging/nats-server-drop-in.conf'), 'utf8')
    expect(text).toContain('nats-server -c /etc/nats/cinnabar.conf')
    expect(shipped).toContain('/etc/nats/cinnabar.conf')
    expect(shipped).toContain(/^EnvironmentFile=(.+)$/m.exec(text)?.[1])
    expect(`/var/lib/${/^StateDirectory=(.+)$/m.exec(text)?.[1]}`).toBe(/store_dir: "(.+)"/.exec(shipped)?.[1])
  })
})
