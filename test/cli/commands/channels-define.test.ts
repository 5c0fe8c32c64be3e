import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { runCli, type Script } from '../fake-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-define-'))
afterAll(() => rmSync(directory, { recursive: true }))
function secretFile(text: string): string {
  const file = join(directory, 'secret')
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

const script: Script = ({ name }) => ({ result: { DEF_CHANNEL: 700, COLLECT: 33 }[name as string] ?? 0 })

test('a channel to a consumer is defined with the secret of a file, and its id printed', async () => {
  const file = secretFile('0123456789abcdef\n')
  const argv = ['channels', 'define', 'tls://n1:7650', 'overflow=keep-latest', '--dial-secret-file', file]
  const { code, out, err, producer } = await runCli(argv, script)
  expect({ code, out }).toEqual({ code: 0, out: ['700'] })
  expect(err.join()).toContain('`cinnabar channels 700`')
  expect(producer.asked.map(({ name }) => name)).toEqual(['DEF_CHANNEL'])
  const { fields, args } = producer.asked[0]!
  expect(fields['url']).toBe('tls://n1:7650')
  expect(args).toEqual({ overflow: 'keep-latest', secret: new Uint8Array(Buffer.from('0123456789abcdef')) })
})

test('the destination and the login are kept apart', async () => {
  const urls: unknown[] = []
  const connect = (url: unknown) => {
    urls.push(url)
    return Promise.reject(new Error('enough'))
  }
  await runCli(['channels', 'define', 'gmetric://n1:8649', '--url', 'tcp://n2:7650'], script, { connect })
  expect(urls).toEqual([['tcp://n2:7650']])
})

test('what it carries is bound to it', async () => {
  const argv = ['channels', 'define', 'gmetric://n1:8649', '--subscribe', 'host.load.one', '--subscribe', 'host.cpu.*']
  const { code, producer } = await runCli(argv, script)
  expect(code).toBe(0)
  expect(producer.asked.map(({ name, of }) => `${name} ${of}`)).toEqual([
    'DEF_CHANNEL ',
    'COLLECT host.load.one',
    'SUBSCRIBE 33',
    'COLLECT host.cpu.*',
    'SUBSCRIBE 33',
  ])
  expect(producer.asked[2]?.fields).toMatchObject({ metric: 33, channel: 700 })
})

test('no channel remains if a subscription is refused', async () => {
  const refused: Script = (asked) => (asked.name === 'COLLECT' ? { status: 'NO_SUCH_METRIC' } : script(asked))
  const { code, out, producer } = await runCli(
    ['channels', 'define', 'gmetric://n1:8649', '--subscribe', 'host.laod'],
    refused,
  )
  expect({ code, out }).toEqual({ code: 1, out: [] })
  expect(producer.asked.at(-1)).toMatchObject({ name: 'DEL_CHANNEL', fields: { channel: 700 } })
})

test('a secret that is too short, or would travel in the open, is not sent', async () => {
  const argv = ['channels', 'define', 'tcp://n1:7650', '--dial-secret-file']
  const short = await runCli([...argv, secretFile('0123456789abcde')], script)
  expect({ code: short.code, asked: short.producer.asked }).toEqual({ code: 2, asked: [] })
  expect(short.err.join()).toMatch(/too short/)
  expect(short.err.join()).not.toContain('0123')
  const open = await runCli([...argv, secretFile('0123456789abcdef')], script, { isOpenToOthers: true })
  expect({ code: open.code, asked: open.producer.asked }).toEqual({ code: 1, asked: [] })
})

test('a channel that is delivered by HTTP has the token of a file, and it is not sent in the open', async () => {
  const url = 'otlp+https://collector.example:4318/v1/metrics'
  const argv = ['channels', 'define', url, '--bearer-file', secretFile('a-token\n'), '--subscribe', 'host.*']
  const { code, producer } = await runCli(argv, script)
  expect(code).toBe(0)
  expect(producer.asked[0]).toMatchObject({ name: 'DEF_CHANNEL', fields: { url } })
  expect(producer.asked[0]?.args).toEqual({ bearer: new Uint8Array(Buffer.from('a-token')) })
  const open = await runCli(argv, script, { isOpenToOthers: true })
  expect({ code: open.code, asked: open.producer.asked }).toEqual({ code: 1, asked: [] })
  const shown = await runCli(['channels', 'define', url, 'bearer=a-token'], script)
  expect({ code: shown.code, asked: shown.producer.asked }).toEqual({ code: 2, asked: [] })
})
