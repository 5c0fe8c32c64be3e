import { expect, test } from 'vitest'
import { isLoopbackHost, parseUrl } from '../../../client/dial/url.ts'

const schemes = ['tcp:', 'ws:']

test.each(['tcp://127.0.0.1:7650', 'tcp://[::1]:7650', 'ws://far.example/monitor'])('%s can be dialled', (text) => {
  expect(parseUrl(text, schemes).href).toContain(text)
})

test.each([
  ['ws://far.example:7651', 'ws://far.example:7651/monitor'],
  ['ws://[::1]', 'ws://[::1]/monitor'],
  ['ws://far.example/', 'ws://far.example/'],
  ['ws://far.example/cinnabar/monitor', 'ws://far.example/cinnabar/monitor'],
  ['tcp://far.example', 'tcp://far.example'],
])('%s is %s', (text, href) => {
  expect(parseUrl(text, schemes).href).toBe(href)
})

test.each([
  ['nonsense', '"nonsense" is not a URL such as tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor'],
  ['tcp://', '"tcp://" is not a URL such as tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor'],
  ['wss://127.0.0.1:7651', 'cannot dial wss:// here: use one of tcp://, ws://'],
  ['tcp://alice@127.0.0.1:7650', 'the URL contains a user or password: pass them as credentials instead'],
])('%s is refused with the reason', (text, message) => {
  expect(() => parseUrl(text, schemes)).toThrow(expect.objectContaining({ code: 'BAD_URL', message }))
})

test.each(['tcp://alice:pencil@127.0.0.1:7650', 'tcp://alice:pencil@127.0.0.1:99999', 'alice:pencil@far'])(
  'a password in a URL is not repeated, whether it parses or not: %s',
  (text) => {
    expect(() => parseUrl(text, schemes)).toThrow(
      expect.objectContaining({ code: 'BAD_URL', message: expect.not.stringContaining('pencil') }),
    )
  },
)

test('only what certainly is this machine counts as loopback', () => {
  const yes = ['127.0.0.1', '127.1.2.3', '::1', '[::1]', '::ffff:127.0.0.1', 'localhost']
  const no = ['', '128.0.0.1', '127.0.0.1.example.org', 'localhost.example.org', '::11', '10.127.0.0']
  expect(yes.filter((host) => !isLoopbackHost(host))).toEqual([])
  expect(no.filter(isLoopbackHost)).toEqual([])
})
