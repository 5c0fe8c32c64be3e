/**
 * Starts the compiled server, has values accepted for a durable channel, kills the server and starts it again: the values that
 * were not committed come again, in order and with their transaction ids. Run by `.ci/node` with the Node to be tried.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, publish } from '../dist/client/index.js'

const PROGRAM = new URL('../dist/cli/main.js', import.meta.url).pathname
const PASSWORD = 'a password for a start'
const VALUES = 100
const COMMITTED = 40
/** A server that hangs is ended then, and with it whatever waits for it. */
const PATIENCE_MS = 60_000

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-start-'))
const config = join(directory, 'cinnabar.toml')
writeFileSync(
  config,
  `[producer]
data_dir = ${JSON.stringify(join(directory, 'data'))}
[listen]
tcp = "127.0.0.1:0"
http = "127.0.0.1:0"
[gmetric]
listen = ""
`,
)

const servers = []

/** Resolves when the server listens; `kill` resolves when it is gone. */
async function start() {
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--config', config], {
    env: { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  servers.push(child)
  const gone = once(child, 'exit')
  const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
  let shown = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    shown += text
    if (shown.includes(' channels')) break
  }
  const [, tcp] = /(tcp:\/\/[\d.:]+)/.exec(shown) ?? []
  const [, http] = /console: +(http:\/\/[\d.:]+)/.exec(shown) ?? []
  assert(tcp && http, `the server did not start: ${shown}`)
  const kill = async () => {
    clearTimeout(patience)
    child.kill('SIGKILL')
    const [, signal] = await gone
    assert.equal(signal, 'SIGKILL', 'the server ended by itself')
  }
  return { tcp, http, kill }
}

/** The next `count` values of the channel, none of which is committed. */
async function take(consumer, count) {
  const samples = []
  const values = consumer[Symbol.asyncIterator]()
  while (samples.length < count) {
    const { value, done } = await values.next()
    assert(!done, `the connection ended after ${samples.length} of ${count} values`)
    samples.push(value)
  }
  return samples.map(({ transaction, elements: [element] }) => ({ transaction, number: element.number }))
}

function login(url) {
  const credentials = { identity: 'admin', password: PASSWORD }
  return connect(url, credentials, { name: 'kept', commit: 'explicit', reconnect: false })
}

async function makeToken(url) {
  const [out, secret] = [join(directory, 'token'), join(directory, 'secret')]
  writeFileSync(secret, PASSWORD, { mode: 0o600 })
  const options = ['--scope', 'PUBLISH otlp.*', '--out', out, '--url', url, '--user', 'admin', '--secret-file', secret]
  execFileSync(process.execPath, [PROGRAM, 'token', 'add', 'admin', ...options], { stdio: 'pipe' })
  return readFileSync(out, 'utf8').trim()
}

try {
  let { tcp, http, kill } = await start()
  let consumer = await login(tcp)
  await consumer.follow('otlp.count')
  const token = await makeToken(tcp)
  // Resolves when the value is on the disk.
  const accept = (value) => publish(http, { token }, [{ name: 'count', labels: { of: 'start' }, value }])
  for (let value = 1; value <= VALUES; value++) await accept(value)
  const sent = await take(consumer, VALUES)
  const numbers = sent.map(({ number }) => number)
  assert.deepEqual(
    numbers,
    [...sent.keys()].map((index) => index + 1),
  )
  await consumer.commit(sent[COMMITTED - 1].transaction, { through: true })
  await kill()

  ;({ tcp, http, kill } = await start())
  consumer = await login(tcp)
  assert.deepEqual(await take(consumer, VALUES - COMMITTED), sent.slice(COMMITTED))
  await consumer.commit(sent.at(-1).transaction, { through: true })
  await kill()

  ;({ tcp, http, kill } = await start())
  consumer = await login(tcp)
  await accept(VALUES + 1)
  const [{ number }] = await take(consumer, 1)
  assert.equal(number, VALUES + 1, 'a committed value came again')
  await kill()
} finally {
  for (const server of servers) server.kill('SIGKILL')
  rmSync(directory, { recursive: true })
}
console.log(
  `passed: Node ${process.versions.node}: of ${VALUES} values on a durable channel, those that were not committed came again after kill -9`,
)
