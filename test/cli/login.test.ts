import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LoginOptions, type ResolvedLogin, resolveLogin } from '../../cli/login.ts'
import type { Terminal } from '../../cli/terminal.ts'

let directory: string
const file = (name: string, text: string) => {
  const path = join(directory, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-login-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

function resolve(options: LoginOptions, env: NodeJS.ProcessEnv = {}, typed?: string) {
  const askSecret = async (question: string) => (typed === undefined ? Promise.reject(new Error(question)) : typed)
  return resolveLogin(options, { env, askSecret, note: (text) => noted.push(text) } as Partial<Terminal> as Terminal)
}
const noted: string[] = []

test('with nothing said it is the user local, with the secret and the address of the configuration', async () => {
  file('admin.secret', 's3cret\n')
  const config = file('c.toml', `[producer]\ndata_dir = ${JSON.stringify(directory)}\n[listen]\ntcp = "0.0.0.0:7777"\n`)
  for (const login of [await resolve({ config }), await resolve({}, { CINNABAR_CONFIG: config })]) {
    expect(login).toMatchObject({
      url: 'tcp://127.0.0.1:7777',
      credentials: { identity: 'local', password: 's3cret', methods: ['scram-sha-256-plus', 'scram-sha-256'] },
    })
    expect(login.used).toBe(
      'tcp://127.0.0.1:7777 (the configuration), user local (the default), ' +
        `secret from ${join(directory, 'admin.secret')}`,
    )
  }
})

test('on a node of a cluster it is the user that the second line of the file names, whoever is said to be `local`', async () => {
  mkdirSync(join(directory, 'node'))
  const secretFile = file('node/admin.secret', 's3cret\nlocal@n1\n')
  const env = { CINNABAR_PRODUCER_DATA_DIR: join(directory, 'node') }
  const methods = ['scram-sha-256-plus', 'scram-sha-256']
  for (const options of [{}, { user: 'local' }, { user: 'local@n1' }, { secretFile }, { user: 'local', secretFile }]) {
    expect((await resolve(options, env)).credentials).toEqual({ identity: 'local@n1', password: 's3cret', methods })
  }
  expect((await resolve({ user: 'alice', secretFile }, env)).credentials).toEqual({
    identity: 'alice',
    password: 's3cret',
  })
  expect((await resolve({}, { ...env, CINNABAR_PASSWORD: 'other' })).credentials).toMatchObject({
    identity: 'local',
    password: 'other',
  })
})

test('options win over the environment, and that over the configuration', async () => {
  const secretFile = file('alice.secret', 'from a file\r\nsecond line')
  const env = { CINNABAR_URL: 'tcp://a:1', CINNABAR_USER: 'bob', CINNABAR_PASSWORD: 'from the environment' }
  expect(await resolve({}, env)).toMatchObject({
    url: 'tcp://a:1',
    credentials: { identity: 'bob', password: 'from the environment' },
    used: 'tcp://a:1 (CINNABAR_URL), user bob (CINNABAR_USER), secret from CINNABAR_PASSWORD',
  })
  const login = await resolve({ url: 'tcp://b:2', user: 'acme/alice', secretFile }, env)
  expect(login).toMatchObject({ url: 'tcp://b:2', credentials: { identity: 'acme/alice', password: 'from a file' } })
  expect(login.credentials).not.toHaveProperty('methods')
  expect(login.used).not.toContain('from a file')
})

test('a password that is not given is prompted for', async () => {
  const options = { url: 'tcp://b:2', user: 'alice' }
  expect((await resolve(options, {}, 'typed')).credentials).toMatchObject({ password: 'typed' })
  await expect(resolve(options)).rejects.toThrow('Password of alice at tcp://b:2: ')
})

test('a missing secret is reported with advice', async () => {
  const nowhere = { CINNABAR_PRODUCER_DATA_DIR: join(directory, 'nowhere') }
  await expect(resolve({}, nowhere)).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(/nowhere.admin.secret does not exist: the server creates it(.|\n)*`cinnabar serve`/),
  })
  const secretFile = join(directory, 'missing')
  await expect(resolve({ secretFile, url: 'tcp://b:2' })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(secretFile),
  })
})

test('a missing secret on a node that has never led is reported with where to go', async () => {
  mkdirSync(join(directory, 'follower'))
  file('follower/node.pass', 'secret\nhttp://127.0.0.1:7656\n')
  await expect(resolve({}, { CINNABAR_PRODUCER_DATA_DIR: join(directory, 'follower') })).rejects.toThrow(
    /the server creates it when it leads its cluster for the first time\.\nRun this command on the machine of the node that leads/,
  )
})

test('an unreadable secret is reported with who may read it', async () => {
  // A directory in its place: no mode keeps root from reading a file.
  const dataDir = join(directory, 'unreadable')
  mkdirSync(join(dataDir, 'admin.secret'), { recursive: true })
  await expect(resolve({}, { CINNABAR_PRODUCER_DATA_DIR: dataDir })).rejects.toThrow(
    /only the user who runs the server may read it/,
  )
})

test('an empty secret is none', async () => {
  await expect(resolve({ secretFile: file('empty', '\n'), url: 'tcp://b:2' })).rejects.toThrow(
    /the first line is empty/,
  )
  const dataDir = join(directory, 'hollow')
  mkdirSync(dataDir)
  file('hollow/admin.secret', '')
  const resolving = resolve({}, { CINNABAR_PRODUCER_DATA_DIR: dataDir })
  await expect(resolving).rejects.toThrow(/hollow.admin.secret: the first line is empty[^:]*\.\n/)
})

test('a file that is no file is named', async () => {
  await expect(resolve({ secretFile: directory, url: 'tcp://b:2' })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(`from ${directory}: EISDIR`),
  })
})

test('the file of the secret is reported with its absolute path', async () => {
  await expect(resolve({}, { CINNABAR_PRODUCER_DATA_DIR: 'no-such-directory' })).rejects.toThrow(
    join(process.cwd(), 'no-such-directory', 'admin.secret'),
  )
})

test.each([
  ['127.0.0.1:7650', 'tcp://127.0.0.1:7650'],
  ['[::1]:7650', 'tcp://[::1]:7650'],
  ['n1.example:1', 'tcp://n1.example:1'],
  ['wss://n1/monitor', 'wss://n1/monitor'],
])('%s stands for %s', async (url, full) => {
  expect((await resolve({ url, user: 'alice' }, { CINNABAR_PASSWORD: 's' })).url).toBe(full)
  expect((await resolve({ user: 'alice' }, { CINNABAR_URL: url, CINNABAR_PASSWORD: 's' })).url).toBe(full)
})

test('several addresses are separated by commas', async () => {
  const url = 'a:1, tls://b:2,ws://c:3/monitor,'
  for (const login of [
    await resolve({ url, user: 'alice' }, { CINNABAR_PASSWORD: 's' }),
    await resolve({ user: 'alice' }, { CINNABAR_URL: url, CINNABAR_PASSWORD: 's' }),
  ]) {
    expect(login.urls).toEqual(['tcp://a:1', 'tls://b:2', 'ws://c:3/monitor'])
    expect(login.url).toBe('tcp://a:1, tls://b:2, ws://c:3/monitor')
  }
})

test('an IPv6 address is in brackets, and a listener that is off needs a --url', async () => {
  const env = { CINNABAR_USER: 'a', CINNABAR_PASSWORD: 'b' }
  expect((await resolve({}, { ...env, CINNABAR_LISTEN_TCP: '[::]:1' })).url).toBe('tcp://[::1]:1')
  await expect(resolve({}, { ...env, CINNABAR_LISTEN_TCP: '' })).rejects.toThrow(/give a --url/)
})

test('an invalid configuration is reported only if it is needed', async () => {
  const config = file('bad.toml', '[listen]\ntpc = 1\n')
  await expect(resolve({ config })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('bad.toml:2'),
  })
  await resolve({ config, url: 'tcp://b:2', user: 'alice' }, { CINNABAR_PASSWORD: 'x' })
})

describe('a token', () => {
  const url = 'tls://n1:7651'
  const tokenOf = ({ credentials }: ResolvedLogin) =>
    'token' in credentials && typeof credentials.token === 'function' ? credentials.token() : credentials

  test('comes from a file, with or without a final newline, or from the environment', async () => {
    const tokenFile = file('token', 'cnb_abc \n')
    const login = await resolve({ url, tokenFile }, { CINNABAR_USER: 'bob', CINNABAR_PASSWORD: 'x' })
    expect(tokenOf(login)).toBe('cnb_abc')
    file('token', 'cnb_new')
    expect(tokenOf(login)).toBe('cnb_new')
    expect(login.used).toBe(`tls://n1:7651 (--url), token from ${tokenFile}`)
    expect(await resolve({ url }, { CINNABAR_TOKEN: 'cnb_def', CINNABAR_PASSWORD: 'x' })).toMatchObject({
      credentials: { token: 'cnb_def' },
      used: 'tls://n1:7651 (--url), token from CINNABAR_TOKEN',
    })
  })

  test('identifies the user: no other may be given', async () => {
    const tokenFile = file('token', 'cnb_abc')
    for (const other of [{ user: 'alice' }, { secretFile: tokenFile }]) {
      await expect(resolve({ url, tokenFile, ...other })).rejects.toMatchObject({ exitCode: 2 })
    }
    const login = await resolve({ url, user: 'alice' }, { CINNABAR_TOKEN: 'cnb_def', CINNABAR_PASSWORD: 'pencil' })
    expect(login.credentials).toMatchObject({ identity: 'alice', password: 'pencil' })
  })

  test('of a file that everybody can read is warned about, and taken', async () => {
    const tokenFile = file('open.token', 'cnb_abc')
    chmodSync(tokenFile, 0o644)
    expect(tokenOf(await resolve({ url, tokenFile }))).toBe('cnb_abc')
    expect(noted).toEqual([`warning: everybody on this machine can read ${tokenFile}; run: chmod 600 ${tokenFile}`])
  })
})

describe('a certificate', () => {
  const url = 'tls://n1:7651'
  const pem = () => ({ cert: file('c.pem', 'a certificate'), key: file('k.pem', 'a key') })

  test('is used alone or together with a given password', async () => {
    const { cert, key } = pem()
    const login = await resolve({ url, cert, key }, { CINNABAR_TOKEN: 'cnb_def' })
    expect(login).toMatchObject({ credentials: { certificate: true }, transport: { tls: { cert, key } } })
    expect(login.used).toBe(`tls://n1:7651 (--url), certificate from ${cert}`)
    expect(await resolve({ url }, { CINNABAR_CERT: cert, CINNABAR_KEY: key })).toMatchObject({
      credentials: { certificate: true },
    })
    const named = await resolve({ url, cert, key, user: 'alice' }, { CINNABAR_PASSWORD: 'pencil' })
    expect(named).toMatchObject({ credentials: { identity: 'alice' }, transport: { tls: { cert, key } } })
    const inEnvironment = {
      CINNABAR_CERT: cert,
      CINNABAR_KEY: key,
      CINNABAR_USER: 'alice',
      CINNABAR_PASSWORD: 'pencil',
    }
    expect(await resolve({ url }, inEnvironment)).toMatchObject({ credentials: { identity: 'alice' } })
  })

  test('needs its key, and files that can be read', async () => {
    const { cert, key } = pem()
    await expect(resolve({ url, cert })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/--key$/),
    })
    const missing = join(directory, 'missing')
    for (const options of [
      { cert: missing, key },
      { cert, key: missing },
      { user: 'a', ca: missing },
    ]) {
      await expect(resolve({ url, ...options }, { CINNABAR_PASSWORD: 'x' })).rejects.toMatchObject({
        exitCode: 2,
        message: expect.stringContaining(`from ${missing}: ENOENT`),
      })
    }
  })
})

test('layers and authorities come from options before the environment', async () => {
  const ca = file('ca.pem', 'authorities')
  const env = { CINNABAR_PASSWORD: 'x', CINNABAR_USER: 'a', CINNABAR_WRAP: 'tls, deflate', CINNABAR_CA: ca }
  expect((await resolve({ url: 'tcp://n1:1' }, env)).transport).toEqual({ wrap: ['tls', 'deflate'], tls: { ca } })
  expect((await resolve({ url: 'tcp://n1:1', wrap: ['deflate'] }, env)).transport).toMatchObject({ wrap: ['deflate'] })
  expect((await resolve({ url: 'tcp://n1:1', user: 'a' }, { CINNABAR_PASSWORD: 'x' })).transport).toEqual({})
  await expect(resolve({ url: 'tcp://n1:1' }, { ...env, CINNABAR_WRAP: 'brotli' })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/^CINNABAR_WRAP: /),
  })
})
