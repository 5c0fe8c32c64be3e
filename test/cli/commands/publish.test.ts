/** `cinnabar publish` to a server of its own, as a shell runs it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { args, str, type } from '../../support/bytes.ts'
import { SERVER_PROGRAM } from '../../support/program.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { ServerProcess } from '../../support/server-process.ts'

let server: ServerProcess
let seat: Seat
let url: string
let token: string

beforeAll(async () => {
  server = new ServerProcess()
  await server.start()
  seat = await server.seat()
  url = `http://127.0.0.1:${server.httpPort}`
  token = join(server.directory, 'app.token')
  const asAdmin = { CINNABAR_URL: `tcp://127.0.0.1:${server.tcpPort}` }
  for (const words of [
    ['role', 'allow', 'operator', 'PUBLISH', 'otlp.*'],
    ['user', 'add', 'app', '--role', 'operator', '--no-password'],
    ['token', 'add', 'app', '--scope', 'PUBLISH otlp.jobs.*', '--out', token],
  ]) {
    expect(await cinnabar([...words, '--config', server.config], asAdmin)).toMatchObject({ code: 0 })
  }
})
afterAll(() => server.remove())

async function cinnabar(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('CINNABAR_')))
  const child = spawn(process.execPath, [SERVER_PROGRAM, ...words], { env: { ...plain, ...env } })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  child.stdin.end()
  const [code] = await once(child, 'close')
  return { code, out, err }
}
const publish = (...words: string[]) => cinnabar(['publish', ...words, '--url', url, '--token-file', token])
const query = async (name: string) =>
  decoded(await seat.query(name)).map(({ time: _, ...row }: Record<string, unknown>) => row)

it('makes gauges of values, with the labels', async () => {
  const words = ['jobs.done=17', 'queue=mail', 'jobs.open=0.5', '--unit', '{job}', '--label', 'service.name=shop']
  expect(await publish(...words)).toEqual({ code: 0, out: '', err: '' })
  expect(await query('otlp.jobs.done')).toEqual([{ queue: 'mail', 'service.name': 'shop', value: 17 }])
  expect(await query('otlp.jobs.open')).toEqual([{ queue: 'mail', 'service.name': 'shop', value: 0.5 }])
  const [metric] = decoded(await seat.query('producer.metrics', args(['match', type.string, str('otlp.jobs.done')])))
  expect(metric).toMatchObject({ type: 'double', unit: '{job}' })
})

it('makes sums that only grow, and takes the token and the URL from the environment', async () => {
  const text = readFileSync(token, 'utf8').trim()
  const words = ['publish', 'jobs.bytes=1e3', '--counter', '--description', 'All bytes.']
  expect(await cinnabar(words, { CINNABAR_URL: url, CINNABAR_TOKEN: text })).toMatchObject({ code: 0, err: '' })
  expect(await query('otlp.jobs.bytes')).toEqual([{ value: 1000 }])
})

it('finds the server by its configuration', async () => {
  const config = join(server.directory, 'other.toml')
  writeFileSync(config, `[listen]\nhttp = "127.0.0.1:${server.httpPort}"\n`)
  const words = ['publish', 'jobs.found=1', '--config', config, '--token-file', token]
  expect(await cinnabar(words)).toMatchObject({ code: 0, err: '' })
})

it.each([
  [['jobs.done'], /"jobs\.done" is neither a value nor a label: write NAME=VALUE/],
  [['jobs.done=many'], /jobs\.done: "many" is not a number$/m],
  [['jobs.done=0x10'], /"0x10" is not a number/],
  [['jobs.done=Infinity'], /"Infinity" is not a number/],
  [['jobs.done=1e309'], /jobs\.done: 1e309 is larger than a number can be/],
  [['jobs.done=1', 'service.name=shop'], /if service\.name is a label, write --label service\.name=shop/],
  [['otlp.jobs.done=1'], /leave otlp\. out/],
  [['jobs.done=1', 'jobs.done=2'], /jobs\.done is given twice/],
  [['jobs.done=1', 'a=1', 'a=2'], /the label a is given twice/],
])('%j is wrong usage', async (words, message) => {
  const { code, err } = await publish(...words)
  expect([code, err]).toEqual([2, expect.stringMatching(message)])
})

it.each([
  [['--url', 'tcp://127.0.0.1:7650'], /--url does not begin with http:\/\/ or https:\/\//],
  [['--url', 'http://127.0.0.1:7651'], /a token is needed: give --token-file FILE or CINNABAR_TOKEN/],
])('%j is wrong usage too', async (words, message) => {
  const { code, err } = await cinnabar(['publish', 'a=1', ...words], {
    ...(words[1]?.startsWith('tcp') && { CINNABAR_TOKEN: 'x' }),
  })
  expect([code, err]).toEqual([2, expect.stringMatching(message)])
})

it('says what is not allowed, and what to do', async () => {
  const { code, err } = await publish('other.thing=1')
  expect(code).toBe(1)
  expect(err).toMatch(/1 of the values was not taken: PUBLISH of otlp\.other\.thing is not allowed.*\(HTTP 200\)/)
  expect(err).toMatch(/a rule has to name it \(`(?:npx )?cinnabar role list`\)/)
  expect(err).toMatch(new RegExp(`Used: ${url}, token from ${token}`))
})

it('says that the token is not valid, that others could read it, and that nobody listens', async () => {
  const wrong = { CINNABAR_TOKEN: 'cnb_wrong' }
  const first = await cinnabar(['publish', 'a=1', '--url', url], wrong)
  expect([first.code, first.err]).toEqual([1, expect.stringMatching(/HTTP 401.*\n.*was revoked, has expired/)])
  const second = await cinnabar(['publish', 'a=1', '--url', 'http://192.0.2.1:7651'], wrong)
  expect([second.code, second.err]).toEqual([1, expect.stringMatching(/others could read it: use https:/)])
  const third = await cinnabar(['publish', 'a=1', '--url', 'http://127.0.0.1:1'], wrong)
  expect([third.code, third.err]).toEqual([1, expect.stringMatching(/ECONNREFUSED.*\n.*`listen\.http`/)])
  for (const { err } of [first, second, third]) expect(err).not.toContain('cnb_wrong')
})

it('says when to try again', async () => {
  const answer: RequestListener = (_request, response) => {
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '30' })
    response.end('{"code":14,"message":"the disk is full"}')
  }
  const full = createServer(answer).listen(0, '127.0.0.1')
  await once(full, 'listening')
  const to = `http://127.0.0.1:${(full.address() as AddressInfo).port}`
  const { code, err } = await cinnabar(['publish', 'a=1', '--url', to, '--token-file', token])
  full.close()
  expect([code, err]).toEqual([1, expect.stringMatching(/the disk is full \(HTTP 503\)\nTry again in 30 s\n/)])
})
