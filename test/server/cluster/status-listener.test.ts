/** The listener of the node: what it answers to whom, on a leader, on a follower, and where no node leads. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readNodePass } from '../../../server/cluster/node-pass.ts'
import type { NodeTraffic } from '../../../server/cluster/own-figures.ts'
import { isWithinMachine, listenStatus } from '../../../server/cluster/status-listener.ts'
import type { OpenListener } from '../../../server/edge/tcp.ts'
import { parseNetwork } from '../../../server/kernel/core/address.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { eventually } from '../../support/eventually.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { LED_SINCE, NO_TRAFFIC, TestCluster } from '../../support/test-cluster.ts'

let directory: string
let cluster: TestCluster
let listener: OpenListener
let storage: string | undefined
let openTo: string[]
let logged: string[]
let traffic: NodeTraffic

const start = (host = '127.0.0.1') =>
  listenStatus({
    address: { host, port: 0 },
    dataDir: directory,
    cluster,
    health: { unready: () => storage },
    openTo: () => openTo.flatMap((text) => parseNetwork(text) ?? []),
    traffic: () => traffic,
    clock: new FakeClock(LED_SINCE + 90_000),
    log: createLogger('warn', { write: (line) => void logged.push(line) }),
  })

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-status-'))
  cluster = new TestCluster()
  storage = undefined
  openTo = ['127.0.0.0/8']
  logged = []
  traffic = NO_TRAFFIC
  listener = await start()
})
afterEach(async () => {
  await listener.close()
  rmSync(directory, { recursive: true })
})

const base = () => `http://127.0.0.1:${listener.address.port}`
const bearer = () => ({ authorization: `Bearer ${readNodePass(directory)?.secret}` })
const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
  const response = await fetch(base() + path, { method, headers })
  return { code: response.status, body: (await response.json()) as Record<string, unknown> }
}
const figures = async (path = '/metrics', headers = {}) => (await fetch(base() + path, { headers })).text()

describe('health', () => {
  it('is that of the server while the node leads', async () => {
    expect(await get('/healthz')).toEqual({ code: 200, body: { status: 'ok' } })
    expect(await get('/readyz')).toEqual({ code: 200, body: { status: 'ready' } })
    storage = 'storage: full'
    expect(await get('/readyz')).toEqual({ code: 503, body: { status: 'not ready', reason: 'storage: full' } })
    expect((await get('/healthz')).code).toBe(200)
  })

  it('is that of the node while it follows', async () => {
    cluster.node = 'n2'
    storage = 'starting: no listener is open yet'
    expect((await get('/healthz')).code).toBe(200)
    expect(await get('/readyz')).toEqual({ code: 503, body: { status: 'not ready', reason: storage } })
    storage = undefined
    expect((await get('/readyz')).code).toBe(200)
    cluster.change('n2', { lagMs: 14_200 })
    expect(await get('/healthz')).toEqual({
      code: 503,
      body: { status: 'not ok', reason: 'n2 is 14 s behind the leader' },
    })
    cluster.lead(undefined)
    expect(await get('/readyz')).toEqual({ code: 503, body: { status: 'not ready', reason: 'no node leads' } })
  })

  it('is answered whatever host the request names, as probes do', async () => {
    const code = await new Promise((resolve, reject) => {
      const asking = request(`${base()}/healthz`, { headers: { host: 'n1.example' } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      asking.on('error', reject).end()
    })
    expect(code).toBe(200)
  })
})

describe('the figures of the node', () => {
  it('are those of its process and of the cluster as it sees it', async () => {
    const lines = (await figures()).split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        'cinnabar_cluster_info{cluster="main",node="n1",leader="n1",version="cinnabar/0.1.0"} 1',
        'cinnabar_cluster_leader 1',
        'cinnabar_cluster_leader_known 1',
        'cinnabar_cluster_epoch 7',
        'cinnabar_cluster_epoch_seconds 90',
        'cinnabar_cluster_nodes 3',
        'cinnabar_cluster_nodes_heard 2',
        'cinnabar_cluster_sequence 1284402',
        'cinnabar_cluster_lag_seconds 0',
        'cinnabar_cluster_able 1',
        'cinnabar_status_refused_requests_total 0',
      ]),
    )
    expect(lines.join('\n')).toMatch(/^process_resident_memory_bytes \d{7,}$/m)
    expect(lines.join('\n')).toMatch(/^process_cpu_seconds_total \d/m)
    expect(await figures('/metrics?node=self')).toContain('cinnabar_cluster_leader 1')
  })

  it('are there on a follower, and where no node leads', async () => {
    cluster.node = 'n2'
    cluster.change('n2', { lagMs: 2_500, obstacle: 'its disk is full' })
    cluster.lead(undefined)
    const text = await figures()
    expect(text).toContain('cinnabar_cluster_info{cluster="main",node="n2",version="cinnabar/0.1.0"} 1\n')
    for (const line of ['leader 0', 'leader_known 0', 'lag_seconds 2.5', 'able 0', 'epoch 8', 'epoch_seconds 0']) {
      expect(text).toContain(`\ncinnabar_cluster_${line}\n`)
    }
  })

  it('have what goes between nodes', async () => {
    traffic = {
      waiting: 1,
      passing: 2,
      front: { passed: 3, expired: 4, refused: 5, failed: 6 },
      listener: { taken: 7, untaken: 8, refused: 9, late: 1, evicted: 10 },
      ignoredMessages: 11,
    }
    const text = await figures()
    const lines = text.split('\n').filter((line) => !line.startsWith('#') && line.startsWith('cinnabar_cluster_'))
    expect(lines.map((line) => line.slice('cinnabar_cluster_'.length))).toEqual(
      expect.arrayContaining([
        'waiting 1',
        'passing 2',
        'passed_total 3',
        'expired_total 4',
        'turned_away_total 5',
        'attempts_failed_total 6',
        'taken_total 7',
        'untaken_total 8',
        'refused_total 9',
        'evicted_total 10',
        'ignored_messages_total 11',
      ]),
    )
  })

  it('are shown to `metrics.open_to`, and to those with the pass', async () => {
    openTo = ['10.0.0.0/8']
    expect((await get('/metrics')).code).toBe(401)
    expect(await figures('/metrics', bearer())).toContain('cinnabar_cluster_leader 1')
    openTo = []
    expect((await get('/metrics', { authorization: 'Bearer nonsense' })).code).toBe(401)
  })

  it('are not those of others', async () => {
    expect((await get('/metrics?node=n2')).code).toBe(400)
    expect((await get('/metrics?metric=host.*')).code).toBe(400)
  })
})

describe('the command line on this machine', () => {
  it('finds the listener by a file that only the user of the server can read', () => {
    const file = join(directory, 'node.pass')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readNodePass(directory)).toEqual({ url: base(), secret: expect.stringMatching(/^[\w-]{43}$/), file })
  })

  it('sees the cluster as the node sees it', async () => {
    const { code, body } = await get('/cluster', bearer())
    expect(code).toBe(200)
    expect(body).toMatchObject({ name: 'main', node: 'n1', leader: 'n1', epoch: 7, since: LED_SINCE * 1000 })
    expect(body['nodes']).toHaveLength(3)
  })

  it('can found a log', async () => {
    cluster.lead(undefined)
    expect(await get('/found', bearer(), 'POST')).toMatchObject({ code: 200, body: { leader: 'n1', epoch: 9 } })
    expect(cluster.asked).toEqual(['found'])
  })

  it('learns why no log was founded, and so does the log of the node', async () => {
    cluster.refusal = new Error('n3 leads in epoch 8: nothing has to be founded')
    expect(await get('/found', bearer(), 'POST')).toEqual({
      code: 409,
      body: { error: 'n3 leads in epoch 8: nothing has to be founded' },
    })
    expect(logged.join()).toContain('no log was founded')
  })

  it('can have a database copied, and sees how far that is', async () => {
    cluster.node = 'n2'
    expect(await get('/copy', bearer())).toMatchObject({ code: 200, body: { phase: 'none' } })
    expect(await get('/copy', bearer(), 'POST')).toMatchObject({ code: 202, body: { phase: 'asked', leader: 'n1' } })
    cluster.copyState = { ...cluster.copyState, phase: 'copying', receivedBytes: 5, totalBytes: 9 }
    expect(await get('/copy', bearer())).toMatchObject({ code: 200, body: { receivedBytes: 5, totalBytes: 9 } })
    cluster.refusal = new Error('the database of n1 is being copied already')
    expect(await get('/copy', bearer(), 'POST')).toEqual({
      code: 409,
      body: { error: 'the database of n1 is being copied already' },
    })
    for (const method of ['GET', 'POST']) expect((await get('/copy', {}, method)).code).toBe(401)
    expect(cluster.asked).toEqual(['copy', 'copy'])
  })

  it('founds one at a time', async () => {
    let finish: () => void = () => {}
    const begun = new Promise<void>((resolve) => {
      cluster.found = () => {
        resolve()
        return new Promise((done) => {
          finish = done
        })
      }
    })
    const first = get('/found', bearer(), 'POST')
    await begun
    const second = await get('/found', bearer(), 'POST')
    expect(second).toMatchObject({ code: 409, body: { error: expect.stringContaining('being founded already') } })
    finish()
    expect((await first).code).toBe(200)
  })

  it('is refused without the pass, and each refusal is counted', async () => {
    expect((await get('/cluster')).code).toBe(401)
    expect((await get('/found', {}, 'POST')).code).toBe(401)
    expect((await get('/found', { authorization: 'Bearer' }, 'POST')).code).toBe(401)
    const { authorization } = bearer()
    expect((await get('/found', { authorization: `${authorization}x` }, 'POST')).code).toBe(401)
    expect((await get('/found', bearer())).code).toBe(404)
    expect(cluster.asked).toEqual([])
    expect(await figures()).toContain('cinnabar_status_refused_requests_total 5')
  })

  it('needs another pass after a restart, and finds none after the end', async () => {
    const before = bearer()
    await listener.close()
    expect(existsSync(join(directory, 'node.pass'))).toBe(false)
    listener = await start()
    expect((await get('/cluster', before)).code).toBe(401)
    expect((await get('/cluster', bearer())).code).toBe(200)
  })

  // A machine may have loopback alone.
  it.skipIf(ownAddress() === undefined)('may ask at any address of this machine', async () => {
    await listener.close()
    listener = await start('0.0.0.0')
    expect(readNodePass(directory)?.url).toBe(base())
    const { status } = await fetch(`http://${ownAddress()}:${listener.address.port}/cluster`, { headers: bearer() })
    expect(status).toBe(200)
  })
})

it('does not take another machine for this one', () => {
  expect(isWithinMachine({ remoteAddress: '127.0.0.1', localAddress: '127.0.0.2' })).toBe(true)
  expect(isWithinMachine({ remoteAddress: '::1', localAddress: '::1' })).toBe(true)
  expect(isWithinMachine({ remoteAddress: '10.0.0.1', localAddress: '10.0.0.1' })).toBe(true)
  expect(isWithinMachine({ remoteAddress: '10.0.0.2', localAddress: '10.0.0.1' })).toBe(false)
  expect(isWithinMachine({ remoteAddress: undefined, localAddress: '10.0.0.1' })).toBe(false)
})

function ownAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}

it('does not read what a request should not have', async () => {
  const headers = { ...bearer(), 'content-type': 'application/json' }
  const { status } = await fetch(`${base()}/found`, {
    method: 'POST',
    headers,
    body: JSON.stringify('x'.repeat(5_000)),
  })
  expect(status).toBe(413)
  expect(cluster.asked).toEqual([])
})

it('has room for whoever comes, however many say nothing: the oldest of those gives way', async () => {
  const silent = Array.from({ length: 300 }, () => connect(listener.address.port, '127.0.0.1').on('error', () => {}))
  await eventually(async () => expect(await figures()).toMatch(/cinnabar_status_refused_connections_total 4[5-9]\n/))
  expect((await get('/healthz')).code).toBe(200)
  await eventually(() => expect(silent.slice(0, 40).every(({ destroyed }) => destroyed)).toBe(true))
  expect(silent.at(-1)?.destroyed).toBe(false)
  for (const socket of silent) socket.destroy()
})

it('survives bytes that are no HTTP', async () => {
  const socket = connect(listener.address.port, '127.0.0.1')
  const closed = new Promise((resolve) => socket.on('close', resolve).on('error', () => {}))
  socket.write(Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 31) % 256)))
  socket.resume()
  await closed
  expect((await get('/healthz')).code).toBe(200)
})

it('says which key is wrong if the address cannot be had, and leaves the pass of the other one', async () => {
  const { address } = listener
  const pass = readFileSync(join(directory, 'node.pass'), 'utf8')
  const second = listenStatus({
    address,
    dataDir: directory,
    cluster,
    health: { unready: () => undefined },
    openTo: () => [],
    traffic: () => NO_TRAFFIC,
    clock: new FakeClock(),
    log: createLogger('silent'),
  })
  await expect(second).rejects.toThrow(/`cluster.status`/)
  expect(readFileSync(join(directory, 'node.pass'), 'utf8')).toBe(pass)
})
