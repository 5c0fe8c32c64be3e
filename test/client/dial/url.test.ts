import { expect, test } from 'vitest'
import { parseUrl } from '../../../client/dial/url.ts'

const schemes = ['tcp:', 'ws:']

test.each(['tcp://127.0.0.1:7650', 'tcp://[::1]:7650', 'ws://far.example/monitor'])('%s can be dialled', (text) => {
  expect(parseUrl(text, schemes).href).toContain(text)
})

test.each([
  ['nonsense', '"nonsense" is no URL like tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor'],
  ['tcp://', '"tcp://" is no URL like tcp://127.0.0.1:7650 or ws://127.0.0.1:7651/monitor'],
  ['wss://127.0.0.1:7651', 'cannot dial wss:// here: there is tcp://, ws://'],
  ['tcp://alice@127.0.0.1:7650', 'the URL names a user or password: give them apart from it'],
])('%s is refused, and it is said why', (text, message) => {
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
