/** What two nodes may have different in their configurations, and what not. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Config, loadConfig } from '../../../server/start/config.ts'
import { ConfigurationDigest, configurationDigest } from '../../../server/start/configuration-digest.ts'

const BASE = `
[producer]
name = "main"
[quota]
channels = 7
[[qmf]]
name = "b1"
url = "amqp://guest:first-secret@10.0.0.9/v"
[[exec]]
name = "exec.say"
argv = ["echo", "{n}"]
[[exec.parameter]]
name = "n"
type = "integer"
min = 1
[[plugin]]
module = "./own.mjs"
[plugin.options]
token = "first-token"
depth = 3
[[upstream]]
name = "east"
listen = "127.0.0.1:7660"
user = "center"
secret_file = "/etc/east.secret"
[gmetric]
listen = "10.0.0.1:8649"
multicast = "239.2.11.71"
multicast_interface = "10.0.0.1"
`

function configOf(toml: string): Config {
  return loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(toml) })
}
const digestOf = (toml: string): string => configurationDigest(configOf(toml))
const first = digestOf(BASE)

test('is the same for the same configuration, in whatever order it is written', () => {
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  const [, producer = '', quota = '', ...rest] = BASE.split(/^(?=\[(?:producer|quota|\[qmf))/m)
  expect(digestOf([...rest, quota, producer].join('\n'))).toBe(first)
  expect(digestOf(`${BASE}\n[limits]\nconnections = 10000\n`)).toBe(first)
})

test.each([
  ['producer.data_dir', 'name = "main"', 'name = "main"\ndata_dir = "/srv/other"'],
  ['listen.*', '[quota]', '[listen]\ntcp = "10.0.0.2:7650"\nhttp = ""\n[quota]'],
  ['log.level', '[quota]', '[log]\nlevel = "debug"\n[quota]'],
  ['the host of an address to listen on', '10.0.0.1:8649', '10.0.0.2:8649'],
  ['the host that an upstream announces itself to', '127.0.0.1:7660', '[::1]:7660'],
  ['gmetric.multicast_interface', 'multicast_interface = "10.0.0.1"', 'multicast_interface = "10.0.0.2"'],
])('%s may differ', (_, from, to) => {
  expect(BASE).toContain(from)
  expect(digestOf(BASE.replace(from, to))).toBe(first)
})

test.each([
  ['producer.name', '"main"', '"other"'],
  ['a limit', 'channels = 7', 'channels = 8'],
  ['a bound of a parameter', 'min = 1', 'min = 2'],
  ['a program', '"echo"', '"printf"'],
  ['the port of an address to listen on', '10.0.0.1:8649', '10.0.0.1:8650'],
  ['an address that feeds use', '239.2.11.71', '239.2.11.72'],
  ['the host of a broker', '10.0.0.9', '10.0.0.8'],
  ['a secret in a URL', 'first-secret', 'other-secret'],
  ['a secret in the options of a plug-in', 'first-token', 'other-token'],
  ['the name of an upstream', 'name = "east"', 'name = "west"'],
  ['a source that one of them has not', '[quota]', '[mono]\n[quota]'],
  [
    'tables in another order, the first of which counts',
    '[[exec]]',
    '[[exec]]\nname = "exec.a"\nargv = ["echo"]\n[[exec]]',
  ],
])('%s may not differ', (_, from, to) => {
  expect(BASE).toContain(from)
  expect(digestOf(BASE.replace(from, to))).not.toBe(first)
})

test('the node itself is none of it, the rest of its cluster is', () => {
  const config = configOf(BASE)
  const cluster = (section: object): string => configurationDigest({ ...config, cluster: section } as Config)
  const nodes = [
    { name: 'n1', host: '10.0.0.1', port: 7654 },
    { name: 'n2', host: '10.0.0.2', port: 7654 },
  ]
  const one = cluster({ name: 'main', nodes, node: 'n1', listen: { host: '10.0.0.1', port: 7654 } })
  expect(cluster({ name: 'main', nodes, node: 'n2', listen: { host: '10.0.0.2', port: 7654 } })).toBe(one)
  expect(cluster({ name: 'other', nodes, node: 'n1' })).not.toBe(one)
  expect(cluster({ name: 'main', nodes: nodes.slice(1), node: 'n1' })).not.toBe(one)
  const moved = nodes.map((node) => ({ ...node, host: `1${node.host}` }))
  expect(cluster({ name: 'main', nodes: moved, node: 'n1' })).not.toBe(one)
})

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-digest-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

test('the files by which consumers are known may lie anywhere, and have to have the same in them', () => {
  const write = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text)
    return JSON.stringify(join(directory, name))
  }
  const toml = (node: string, keys: string, ca: string): string => {
    const [cert, key] = [write(`${node}.pem`, 'the certificate'), write(`${node}.key`, `the key of ${node}`)]
    const tls = `[tls]\ncert = ${cert}\nkey = ${key}\nclient_ca = ${write(`${node}-ca.pem`, ca)}`
    return `${BASE}${tls}\n[jwt]\nkeys = ${write(`${node}-keys`, keys)}\nissuer = "i"\naudience = "a"\n`
  }
  const one = digestOf(toml('n1', 'keys', 'authorities'))
  expect(digestOf(toml('n2', 'keys', 'authorities'))).toBe(one)
  expect(digestOf(toml('n3', 'other keys', 'authorities'))).not.toBe(one)
  expect(digestOf(toml('n4', 'keys', 'other authorities'))).not.toBe(one)
  expect(digestOf(BASE)).not.toBe(one)
})

test('is taken anew after the configuration or a file has changed', () => {
  const keys = join(directory, 'keys')
  writeFileSync(keys, 'first')
  let config = configOf(`${BASE}[jwt]\nkeys = ${JSON.stringify(keys)}\nissuer = "i"\naudience = "a"\n`)
  const digest = new ConfigurationDigest(() => config)
  const seen = [digest.text]
  const refreshed = (): string => {
    digest.refresh()
    return digest.text
  }
  expect(refreshed()).toBe(seen[0])
  writeFileSync(keys, 'second, longer')
  seen.push(refreshed())
  rmSync(keys)
  seen.push(refreshed())
  config = configOf(BASE)
  seen.push(refreshed())
  expect(new Set(seen).size).toBe(4)
  expect(seen.at(-1)).toBe(first)
})
