/** What an operator may write into `[[upstream]]` and `[[announce]]`, and what is said of the rest. */
import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'

function problemsOf(text: string): string {
  try {
    loadConfig({ file: 'cinnabar.toml', env: {}, readFile: () => new TextEncoder().encode(text) })
    return ''
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message
  }
}

const upstream = (...lines: readonly string[]) => ['[[upstream]]', 'name = "edge"', ...lines].join('\n')
const secret = ['user = "main"', 'secret_file = "edge.secret"']
const announce = (url: string, ...lines: readonly string[]) =>
  ['[[announce]]', `url = "${url}"`, ...secret, ...lines].join('\n')

describe('[[upstream]]', () => {
  it.each([
    upstream('url = "tcp://east:7650"', ...secret),
    upstream('listen = "127.0.0.1:7655"', ...secret),
    `${upstream('listen = "0.0.0.0:7655"', ...secret)}\n[tls]\ncert = "a.pem"\nkey = "a.key"`,
  ])('may be %s', (text) => expect(problemsOf(text)).toBe(''))

  it.each([
    [upstream(...secret), 'either `url` or `listen`'],
    [`${upstream('url = "tcp://east:7650"', ...secret)}\n[producer]\nname = "edge"`, 'the name of this server'],
    [upstream('url = "tcp://east:7650"', 'listen = "127.0.0.1:7655"', ...secret), 'either `url` or `listen`'],
    [upstream('listen = "127.0.0.1:7655"', 'token_file = "token"'), 'needs `user` and `secret_file`'],
    [upstream('listen = "0.0.0.0:7655"', ...secret), 'needs a certificate'],
    [upstream('url = "tcp://east:7650"', 'token_file = "token"'), 'only sent over tls://'],
    [
      [upstream('listen = "[::1]:1"', ...secret), upstream('listen = "[::1]:1"', 'tenant = "b"', ...secret)].join('\n'),
      'two that announce themselves at [::1]:1 are called edge',
    ],
    [
      upstream('url = "tcp://east:7650"', ...secret)
        .repeat(2)
        .replace('"[[', '"\n[['),
      'are called edge',
    ],
  ])('is refused: %s', (text, problem) => expect(problemsOf(text)).toContain(problem))
})

describe('[[announce]]', () => {
  it.each([announce('tcp://127.0.0.1:7655'), announce('tls://main.example:7655', 'ca = "ca.pem"', 'name = "rack 1"')])(
    'may be %s',
    (text) => expect(problemsOf(text)).toBe(''),
  )

  it.each([
    [announce('tcp://main.example:7655'), 'only sent over tls://'],
    [announce('tls://main.example'), 'a URL like'],
    [announce('wss://main.example:7655'), 'a URL like'],
    [announce('tls://user@main.example:7655'), 'a URL like'],
    [announce('tls://main.example:7655', 'name = "a/b"'), 'without "/" and "*"'],
    ['[[announce]]\nurl = "tls://main.example:7655"\nuser = "main"', 'secret_file'],
  ])('is refused: %s', (text, problem) => expect(problemsOf(text)).toContain(problem))
})
