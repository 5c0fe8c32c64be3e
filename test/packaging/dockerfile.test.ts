/** What the Dockerfile names is there, and its variables and ports are the server's. No image is built. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { load } from '../../server/kernel/config/load.ts'
import { schema } from '../../server/start/config.ts'
import { instructionsOf, sentPaths } from './dockerfile.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const manifest = JSON.parse(read('package.json'))
const dockerfile = read('Dockerfile')
const includes: string[] = JSON.parse(read('tsconfig.build.json')).include

const instructions = instructionsOf(dockerfile)
const all = (name: string) => instructions.filter((one) => one.name === name).map(({ rest }) => rest)
const last = (name: string) => all(name).at(-1) ?? ''

const variables = Object.fromEntries(
  all('ENV').flatMap((rest) => rest.split(/\s+/).map((pair) => pair.split('=', 2) as [string, string])),
)
const { listen, gmetric, smon, producer } = load(schema, { env: variables }).values

const sent = sentPaths(read('.dockerignore'))

describe('Dockerfile', () => {
  it('starts the program of the package', () => {
    expect(JSON.parse(last('CMD'))).toEqual(['node', manifest.bin.cinnabar, 'serve'])
    expect(dockerfile).toContain(`chmod +x ${manifest.bin.cinnabar}`)
    expect(dockerfile).toContain(`/opt/cinnabar/${manifest.bin.cinnabar} /usr/local/bin/cinnabar`)
    expect(last('WORKDIR')).toBe('/opt/cinnabar')
  })

  it('builds with scripts that the package has, on a Node that it runs on', () => {
    const scripts = [...dockerfile.matchAll(/npm run (\S+)/g)].map(([, name]) => name)
    expect(scripts).toEqual(['build'])
    for (const name of scripts) expect(manifest.scripts).toHaveProperty(name!)
    const versions = all('FROM').map((image) => Number(/^node:(\d+)-bookworm/.exec(image)?.[1]))
    expect(versions).toHaveLength(2)
    for (const version of versions) expect(version).toBeGreaterThanOrEqual(22)
    expect(manifest.engines.node).toBe('>=20.19')
  })

  it('runs the scripts of the packages that need theirs, and of no other', () => {
    const named = /npm rebuild (.+)$/m.exec(dockerfile)?.[1]?.split(' ')
    // On the Node of the image the server takes version 13, which contains its binary, so npm knows no script of it.
    const { packages } = JSON.parse(read('package-lock.json'))
    expect(packages['node_modules/better-sqlite3-13'].hasInstallScript).toBeUndefined()
    expect(named).toEqual(Object.keys(manifest.allowScripts).filter((name) => name !== 'better-sqlite3'))
  })

  it('is sent what it copies and what is built, and no data', () => {
    const [first = ''] = all('COPY')
    for (const path of [...first.split(' ').slice(0, -1), 'tsconfig.json', 'tsconfig.build.json', ...includes]) {
      expect(existsSync(join(ROOT, path)), path).toBe(true)
      expect(sent).toContain(path)
    }
    for (const path of ['data', 'node_modules', 'dist', '.git', 'test']) expect(sent).not.toContain(path)
  })

  it('sets variables that are keys, as the loader takes them, and one of glibc, as the unit does', () => {
    const known = schema.settings.map(({ variable }) => variable)
    expect(Object.keys(variables).filter((name) => !known.includes(name))).toEqual(['MALLOC_ARENA_MAX'])
    const ofUnit = /^Environment=MALLOC_ARENA_MAX=(\d+)$/m.exec(read('packaging/cinnabar.service'))?.[1]
    expect(variables['MALLOC_ARENA_MAX']).toBe(ofUnit)
    expect(producer.data_dir).toBe(last('VOLUME'))
    expect(dockerfile).toContain(`install -d -m 700 -o node -g node ${producer.data_dir}`)
  })

  it('exposes the ports that it listens on, which are those of the documents', () => {
    const addresses = [listen.tcp, listen.http, gmetric.listen, smon.tcp]
    for (const address of addresses) expect(address?.host).toBe('0.0.0.0')
    const [tcp, http, udp, stream] = addresses.map((address) => address?.port)
    expect(last('EXPOSE')).toBe(`${tcp} ${http} ${udp}/udp ${stream}`)
    const shipped = load(schema, { env: {} }).values
    expect([tcp, http, udp]).toEqual([
      shipped.listen.tcp?.port,
      shipped.listen.http?.port,
      shipped.gmetric.listen?.port,
    ])
    expect(read('cli/commands/feed.ts')).toContain(`:${stream}'`)
  })

  it('does not run as root, and is stopped by a signal that the server knows', () => {
    expect(last('USER')).toBe('node')
    expect(read('server/start/main.ts')).toContain(`'${last('STOPSIGNAL')}'`)
  })

  it('says what is not promised', () => {
    expect(dockerfile).toContain('passwords are not seen on the way (scram-sha-256), values are')
  })
})

describe('the health check', () => {
  const [, command = '[]'] = /CMD (\[.+\])$/.exec(last('HEALTHCHECK')) ?? []
  const [program, flag, script = ''] = JSON.parse(command) as string[]

  /** Its exit code where `status` is the answer; undefined: where nothing listens. */
  async function check(status: number | undefined): Promise<number> {
    const asked: (string | undefined)[] = []
    const server = createServer(({ url }, response) => {
      asked.push(url)
      response.writeHead(status ?? 0).end('{}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    if (status === undefined) await new Promise((resolve) => server.close(resolve))
    const child = spawn(process.execPath, ['-e', script.replace(`:${listen.http?.port}/`, `:${port}/`)])
    const [code] = await once(child, 'close')
    server.close()
    expect(asked).toEqual(status === undefined ? [] : ['/readyz'])
    return code as number
  }

  it('asks the route that the server has, with node, since there is no curl', () => {
    expect([program, flag]).toEqual(['node', '-e'])
    expect(read('server/edge/http/app.ts')).toContain("app.get('/readyz'")
  })

  it('is content with a server that is ready, and with no other', async () => {
    expect(await check(200)).toBe(0)
    expect(await check(503)).toBe(1)
    expect(await check(undefined)).toBe(1)
  })
})
