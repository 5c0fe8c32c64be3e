/** The section [cluster]: what it gives, and what it refuses. */
import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../../server/start/config.ts'

function load(text: string, env: NodeJS.ProcessEnv = {}) {
  return loadConfig({ file: 'c.toml', env, readFile: () => new TextEncoder().encode(text) }).cluster
}

function complaints(text: string): string[] {
  try {
    load(text)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

/** On one machine, with lines in the place of others. */
function cluster(lines: Record<string, string>): string {
  const all = {
    node: '"n1"',
    nodes: '["n1=127.0.0.1:7654", "n2=127.0.0.1:7655", "n3=localhost:7656"]',
    nats: '["nats://127.0.0.1:4222"]',
    ...lines,
  }
  const rows = Object.entries(all).filter(([, value]) => value !== '')
  return `[cluster]\n${rows.map(([key, value]) => `${key} = ${value}`).join('\n')}`
}

describe('a cluster', () => {
  test('is off without the section, and with nothing in it', () => {
    expect(load('')).toBeUndefined()
    expect(load('[cluster]')).toBeUndefined()
    expect(load('[cluster]\nname = "main"\nlease = "2s"')).toBeUndefined()
  })

  test('on one machine needs no TLS, and has defaults', () => {
    expect(load(cluster({}))).toEqual({
      name: 'main',
      node: 'n1',
      nodes: [
        { name: 'n1', host: '127.0.0.1', port: 7654 },
        { name: 'n2', host: '127.0.0.1', port: 7655 },
        { name: 'n3', host: 'localhost', port: 7656 },
      ],
      nats: ['nats://127.0.0.1:4222'],
      natsCa: undefined,
      credentials: undefined,
      user: '',
      passwordFile: undefined,
      status: { host: '127.0.0.1', port: 7656 },
      listen: { host: '127.0.0.1', port: 7654 },
      tls: undefined,
      replicas: 1,
      leaseMs: 2_000,
      logBytes: 4 * 2 ** 30,
    })
  })

  test('on several machines has TLS everywhere', () => {
    const section = load(
      cluster({
        name: '"east_1"',
        nats: '["tls://a.example:4222", "tls://b.example", "tls://[2001:db8::1]:4222"]',
        nats_ca: '"/nats.pem"',
        credentials: '"/nats.creds"',
        nodes: '["n1=n1.example:7654", "n2=10.0.0.2:7654", "n3=[2001:db8::3]:7654"]',
        listen: '"0.0.0.0:7654"',
        tls_ca: '"/ca.pem"',
        tls_cert: '"/n1.pem"',
        tls_key: '"/n1.key"',
        lease: '"500ms"',
        log_bytes: '67108864',
      }),
    )
    expect(section).toMatchObject({
      name: 'east_1',
      natsCa: '/nats.pem',
      credentials: '/nats.creds',
      nodes: [{ host: 'n1.example' }, { host: '10.0.0.2' }, { name: 'n3', host: '2001:db8::3', port: 7654 }],
      listen: { host: '0.0.0.0', port: 7654 },
      tls: { ca: '/ca.pem', cert: '/n1.pem', key: '/n1.key' },
      replicas: 3,
      leaseMs: 500,
      logBytes: 64 * 2 ** 20,
    })
  })

  test('takes its keys from the environment', () => {
    const env = {
      CINNABAR_CLUSTER_NODES: 'n1=127.0.0.1:7654, n2=127.0.0.1:7655',
      CINNABAR_CLUSTER_NATS: 'nats://localhost',
      CINNABAR_CLUSTER_LOG_BYTES: '1TiB',
      CINNABAR_CLUSTER_REPLICAS: '5',
    }
    const lines = cluster({ nodes: '', nats: '' })
    expect(load(lines, env)).toMatchObject({ nodes: [{ name: 'n1' }, { name: 'n2' }], logBytes: 2 ** 40, replicas: 5 })
  })

  test('has the host name as the name of the node', () => {
    const name = hostname().split('.', 1)[0]
    expect(load(cluster({ node: '', nodes: `["${name}=127.0.0.1:7654"]` }))?.node).toBe(name)
  })
})

describe('a cluster is refused', () => {
  test.each([
    '["n1=127.0.0.1:7654", "n1=127.0.0.1:7655"]',
    '["n1=127.0.0.1:7654", "n2=127.0.0.1:7654"]',
    '["n1=127.0.0.1:7654", "n/2=127.0.0.1:7655"]',
    '["n1", "n2"]',
    '["n1=127.0.0.1"]',
    '["n1=127.0.0.1:0"]',
    '["n1=0.0.0.0:7654"]',
    '["n1=[::]:7654"]',
    '["n1=127.0.0.300:7654"]',
    '["n1=n2=127.0.0.1:7654"]',
    '["=127.0.0.1:7654"]',
    JSON.stringify(Array.from({ length: 10 }, (_, n) => `n${n}=127.0.0.1:${7654 + n}`)),
  ])('with nodes = %s', (nodes) => {
    expect(complaints(cluster({ nodes })).join('\n')).toContain(
      '`cluster.nodes`: expected a list of at most 9 nodes with their addresses',
    )
  })

  test.each([
    [{ nats: '' }, '`cluster.nats`: is missing: `cluster.node` needs it'],
    [{ nodes: '' }, '`cluster.nodes`: is missing'],
    [{ node: '"n4"' }, '`cluster.nodes`: does not name this node, which is "n4"'],
    [{ node: '"a/b"' }, '`cluster.node`: expected a name of 1 to 58 letters'],
    [
      { nodes: '["n1=127.0.0.1:7654", "n2=10.0.0.2:7654"]' },
      '`cluster.nodes`: has n2 on another machine, from where nobody reaches 127.0.0.1 of this one',
    ],
    [{ name: '"a.b"' }, '`cluster.name`: expected a name of 1 to 32 letters'],
    [
      { nats: '["nats://10.0.0.1:4222"]' },
      '`cluster.nats`: nats://10.0.0.1:4222 is neither encrypted nor on this machine',
    ],
    [{ nats: '["nats://127.0.0.1", "tls://n2"]' }, '`cluster.nats`: has both tls:// and nats://'],
    [{ nats: '["http://n2"]' }, '`cluster.nats`: expected a list of at most 9 URLs'],
    [{ nats: '["tls://n2:0"]' }, '`cluster.nats`: expected a list of at most 9 URLs'],
    [{ nats_ca: '"ca.pem"' }, '`cluster.nats_ca`: is for tls://'],
    [{ credentials: '"c"', user: '"u"', password_file: '"p"' }, '`cluster.user`: does not go together'],
    [{ user: '"u"' }, '`cluster.password_file`: is missing: `cluster.user` needs it'],
    [{ password_file: '"p"' }, '`cluster.user`: is missing: `cluster.password_file` needs it'],
    [{ nodes: '["n1=n1.example:7654"]' }, '`cluster.tls_cert`: is missing: nodes reach each other only with TLS'],
    [{ listen: '"0.0.0.0:7654"' }, '`cluster.tls_key`: is missing: nodes reach each other only with TLS'],
    [{ tls_ca: '"ca.pem"' }, '`cluster.tls_cert`: is missing: `cluster.tls_ca` needs it'],
    [{ advertise: '"127.0.0.1:7654"' }, 'unknown key `cluster.advertise`'],
    [{ lease: '"100ms"' }, '`cluster.lease`: expected a duration from 500ms to 30s'],
    [{ log_bytes: '"1KiB"' }, '`cluster.log_bytes`: expected an integer from 67108864'],
    [{ log_bytes: '"4GB"' }, '`cluster.log_bytes`: expected an integer from 67108864'],
    [{ replicas: '6' }, '`cluster.replicas`: expected 1, 3 or 5, or 0, found 6'],
    [{ node_name: '"n1"' }, 'unknown key `cluster.node_name`'],
  ])('with %j', (lines, expected) => {
    const found = complaints(cluster(lines))
    expect(found.join('\n')).toContain(expected)
    // Each names the place.
    for (const line of found) expect(line).toMatch(/^c\.toml:\d+: /)
  })

  test('if its URL has a password, without repeating it', () => {
    const found = complaints(cluster({ nats: '["tls://u:geheim@n2:4222"]' }))
    expect(found).toHaveLength(1)
    expect(found[0]).not.toContain('geheim')
  })
})
