/** How a target is asked: certificates, names, secrets, and connections that are kept. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Fetcher } from '../../../../../server/wings/prometheus/scrape/fetcher.ts'
import { targetsOf } from '../../../../../server/wings/prometheus/scrape/job.ts'
import { Authority, type Issued } from '../../../../support/certificates.ts'
import { ScriptedTarget, scrapeTables, targetOf } from './scripted-target.ts'

let directory: string
let authority: Authority
let issued: Issued
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'scrape-'))
  authority = await Authority.make()
  issued = await authority.server(['node.example'])
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let target: ScriptedTarget
const fetchers: Fetcher[] = []
afterEach(async () => {
  for (const fetcher of fetchers.splice(0)) fetcher.close()
  await target.stop()
})

function write(name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

function fetcher(keys: object = {}): Fetcher {
  const made = new Fetcher({ ...targetOf({ name: 'node', url: target.url, ...keys }), software: 'cinnabar/1' })
  fetchers.push(made)
  return made
}

async function textOf(from: Fetcher, signal = new AbortController().signal): Promise<string> {
  const { body } = await from.fetch(signal)
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('over TLS', () => {
  beforeEach(async () => {
    target = await ScriptedTarget.start({ ...issued, ca: authority.cert, requestCert: true, rejectUnauthorized: false })
    target.text = 'a 1\n'
  })

  it('a certificate of another authority is refused, whatever the environment says', async () => {
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    try {
      await expect(textOf(fetcher({ server_name: 'node.example' }))).rejects.toThrow(/certificate|self.signed/i)
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
    }
    expect(target.requests).toHaveLength(0)
  })

  it('it has to be for the name that the table says', async () => {
    const ca = write('ca.pem', authority.cert)
    await expect(textOf(fetcher({ ca, server_name: 'other.example' }))).rejects.toThrow(/altnames|does not match/i)
    expect(await textOf(fetcher({ ca, server_name: 'node.example' }))).toBe('a 1\n')
  })

  it('shows its own certificate, which is read anew', async () => {
    const client = await authority.client('cinnabar')
    const keys = {
      ca: write('ca.pem', authority.cert),
      cert: write('client.pem', client.cert),
      key: write('client.key', client.key),
      server_name: 'node.example',
    }
    const one = fetcher(keys)
    const subject = () => (target.requests.at(-1)?.socket as TLSSocket | undefined)?.getPeerCertificate().subject.CN
    await textOf(one)
    expect(subject()).toBe('cinnabar')
    const next = await authority.client('renewed')
    write('client.pem', next.cert)
    write('client.key', next.key)
    await textOf(one)
    expect(subject()).toBe('renewed')
  })

  it('sends a token or a password, read anew each time', async () => {
    const tls = { ca: write('ca.pem', authority.cert), server_name: 'node.example' }
    const withToken = fetcher({ ...tls, token_file: write('token', 'first\n') })
    const sent = () => target.requests.at(-1)?.headers.authorization
    await textOf(withToken)
    expect(sent()).toBe('Bearer first')
    write('token', 'second')
    await textOf(withToken)
    expect(sent()).toBe('Bearer second')
    // The example of RFC 7617.
    await textOf(fetcher({ ...tls, username: 'Aladdin', password_file: write('password', 'open sesame\n') }))
    expect(sent()).toBe('Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==')
  })
})

describe('without TLS', () => {
  beforeEach(async () => {
    target = await ScriptedTarget.start()
    target.text = 'a 1\n'
  })

  it('keeps its connection, and makes a new one if the target has closed it', async () => {
    const one = fetcher()
    const sockets = new Set()
    for (let count = 0; count < 3; count++) {
      expect(await textOf(one)).toBe('a 1\n')
      sockets.add(target.requests.at(-1)?.socket)
    }
    expect(sockets.size).toBe(1)
    const { answer } = target
    target.answer = (request) => {
      target.answer = answer
      request.socket.resetAndDestroy()
    }
    expect(await textOf(one)).toBe('a 1\n')
    expect(target.requests).toHaveLength(5)
  })

  it('says what is wrong with a file, and not what is in it', async () => {
    const file = write('broken', 'a secret with blanks\n')
    await expect(textOf(fetcher({ token_file: file }))).rejects.toThrow(`${file} holds no token`)
    await expect(textOf(fetcher({ token_file: file }))).rejects.not.toThrow('secret with')
    await expect(textOf(fetcher({ token_file: join(directory, 'none') }))).rejects.toThrow(/ENOENT/)
  })

  it('ends when it is told to, also in the middle of a body', async () => {
    target.answer = (_request, response) => void response.write('a 1\n')
    const leave = new AbortController()
    const reading = textOf(fetcher(), leave.signal)
    const closed = new Promise((resolve) => {
      const { answer } = target
      target.answer = (request, response) => {
        request.socket.once('close', resolve)
        answer(request, response)
        leave.abort()
      }
    })
    await expect(reading).rejects.toThrow()
    await closed
  })
})

describe('a body', () => {
  const LINE = 'node_cpu_seconds_total{cpu="0"} 1\n'
  beforeEach(async () => {
    target = await ScriptedTarget.start()
  })
  const answers = (body: Uint8Array, headers: Record<string, string> = {}): void => {
    target.answer = (_request, response) => void response.writeHead(200, headers).end(body)
  }
  const GZIP = { 'content-encoding': 'gzip' }
  /** A gzip that says another length of its text than it has. */
  const lying = (text: string, length: number): Uint8Array => {
    const bytes = gzipSync(text)
    bytes.writeUInt32LE(length, bytes.length - 4)
    return bytes
  }

  it.each([0, 1, 1_000, 7_000, 8_000, 40_000])('of %i lines is the same, compressed or not', async (lines) => {
    const text = LINE.repeat(lines)
    answers(Buffer.from(text))
    expect(await textOf(fetcher())).toBe(text)
    answers(gzipSync(text), GZIP)
    expect(await textOf(fetcher())).toBe(text)
    answers(gzipSync(text, { level: 0 }), GZIP)
    expect(await textOf(fetcher())).toBe(text)
  })

  it('is read to its end before its target is out of the matter, if it is short', async () => {
    const isWhole = async (): Promise<boolean> => (await fetcher().fetch(new AbortController().signal)).isWhole
    answers(Buffer.from(LINE))
    expect(await isWhole()).toBe(true)
    answers(Buffer.from(LINE.repeat(40_000)))
    expect(await isWhole()).toBe(false)
  })

  it('of several members is all of them, however long the last one is', async () => {
    answers(Buffer.concat([gzipSync(LINE.repeat(20_000)), gzipSync('a 1\n')]), GZIP)
    expect(await textOf(fetcher())).toBe(`${LINE.repeat(20_000)}a 1\n`)
  })

  it.each([0, 3, 1_000_000, 0xffffffff])('that says that its text has %i bytes is refused', async (length) => {
    answers(lying(LINE.repeat(10), length), GZIP)
    await expect(textOf(fetcher())).rejects.toThrow(/incorrect length check/)
  })

  it('that is cut off, or is no gzip, is refused', async () => {
    answers(gzipSync(LINE.repeat(100)).subarray(0, -20), GZIP)
    await expect(textOf(fetcher())).rejects.toThrow(/unexpected end of file/)
    answers(Buffer.from(LINE.repeat(100)), GZIP)
    await expect(textOf(fetcher())).rejects.toThrow(/incorrect header check/)
  })

  it.each([2_000, 300_000])('has at most `max_bytes` (%i), also after it was inflated', async (max_bytes) => {
    const text = 'a'.repeat(max_bytes)
    for (const over of ['', 'b']) {
      for (const [body, headers] of [
        [Buffer.from(text + over), {}],
        [gzipSync(text + over), GZIP],
      ] as const) {
        answers(body, headers)
        const reading = textOf(fetcher({ max_bytes: BigInt(max_bytes) }))
        if (over === '') expect(await reading).toBe(text)
        else await expect(reading).rejects.toThrow(`more than \`max_bytes\` (${max_bytes})`)
      }
    }
  })

  it('whose connection is cut after a large part of it is refused', async () => {
    target.answer = (request, response) => {
      response.writeHead(200, { 'content-length': '10000000' })
      response.write(LINE.repeat(20_000), () => request.socket.destroy())
    }
    await expect(textOf(fetcher())).rejects.toThrow(/aborted|ECONNRESET|terminated/)
  })
})

describe('the table', () => {
  const problems = (keys: object): string[] => {
    try {
      scrapeTables({ name: 'node', url: 'http://node.example:9100', ...keys })
      return []
    } catch (error) {
      return (error as { issues: { message: string; path: string[] }[] }).issues.map(
        ({ message, path }) => `${path.slice(1).join('.')}: ${message}`,
      )
    }
  }
  beforeEach(async () => {
    target = await ScriptedTarget.start()
  })

  it.each([
    [{ token_file: 't' }, ': a secret is only sent over `https://`, or to this machine'],
    [{ username: 'u', password_file: 'p' }, ': a secret is only sent over `https://`, or to this machine'],
    [{ username: 'u' }, ': `username` and `password_file` are needed together'],
    [
      { url: 'https://h', username: 'u', password_file: 'p', token_file: 't' },
      ': `token_file` and `username` exclude each other',
    ],
    [{ ca: 'c' }, ': `ca`, `cert` and `server_name` are for an `https://` url, or `scheme = "https"`'],
    [{ url: 'https://h', cert: 'c' }, ': `cert` and `key` are needed together'],
    [{ url: undefined }, ': it needs `url`, `targets` or `file_sd`'],
    [{ targets: ['n1:9100'] }, ': `url` excludes `targets` and `file_sd`'],
    [{ scheme: 'https' }, ': `scheme`, `metrics_path` and `params` are for `targets`: a `url` has its own'],
    [
      { url: undefined, targets: ['::1', 'n1'], token_file: 't' },
      'targets: "::1" is no address like "n1.example:9100"',
    ],
    [
      { url: undefined, targets: ['127.0.0.1:1', 'n1'], token_file: 't' },
      ': a secret is only sent over `https://`, or to this machine',
    ],
    [{ labels: { time: 'x' } }, 'labels: a label cannot be called `time`: this name is reserved, choose another'],
    [{ labels: { '': 'x' } }, 'labels: a label has an empty name'],
  ])('%o has a problem', (keys, problem) => expect(problems(keys)).toContain(problem))

  it.each([
    { url: 'ftp://h' },
    { url: 'http://user:pass@h' },
    { url: 'http://h/#part' },
    { url: 'h:9100' },
    { metrics_path: 'metrics' },
    { params: { module: 'x' } },
    { interval: '10ms' },
    { server_name: '10.0.0.1', url: 'https://h' },
  ])('%o cannot be used', (keys) => expect(problems(keys)).not.toEqual([]))

  it('says where the target is, and what its series are labelled', () => {
    const one = { name: 'a', url: 'http://node.example', interval: '5s', labels: { job: 'nodes' } }
    expect(targetOf(one)).toMatchObject({
      url: 'http://node.example/metrics',
      labels: { job: 'nodes', instance: 'node.example:80' },
      timeoutMs: 5_000,
    })
    const other = { name: 'a', url: 'https://[::1]:9100/probe?target=x', token_file: 't' }
    expect(targetOf(other)).toMatchObject({
      url: 'https://[::1]:9100/probe?target=x',
      labels: { job: 'a', instance: '[::1]:9100' },
    })
  })
  it('has at most 10,000 targets, and says so', () => {
    const tables = scrapeTables({ name: 'web', targets: ['n1'] })
    const groups = [{ targets: Array.from({ length: 10_002 }, (_, index) => `n${index}`), labels: {} }]
    const [found] = tables.map((job) => targetsOf({ ...job, groups }))
    expect(found?.specs).toHaveLength(10_000)
    expect(found?.problems).toEqual(['it has more than 10000 targets: the others are not scraped'])
  })

  it('has any number of targets, each with an address, a path and parameters', () => {
    const keys = { scheme: 'https', metrics_path: '/probe?', params: { module: ['a&b', 'c'], target: ['x y'] } }
    const tables = [
      { name: 'web', targets: ['n1.example:9100', '10.0.0.1', '[::1]'], ...keys },
      { name: 'web', job: 'other', targets: ['n2'], labels: { env: 'prod', instance: 'second' } },
    ]
    const specs = scrapeTables(...tables).flatMap((job) => targetsOf(job).specs)
    expect(specs.map(({ url, labels, shown }) => ({ url, labels, shown }))).toEqual([
      {
        url: 'https://n1.example:9100/probe%3F?module=a%26b&module=c&target=x+y',
        labels: { job: 'web', instance: 'n1.example:9100' },
        shown: 'web/n1.example:9100',
      },
      {
        url: 'https://10.0.0.1/probe%3F?module=a%26b&module=c&target=x+y',
        labels: { job: 'web', instance: '10.0.0.1:443' },
        shown: 'web/10.0.0.1:443',
      },
      {
        url: 'https://[::1]/probe%3F?module=a%26b&module=c&target=x+y',
        labels: { job: 'web', instance: '[::1]:443' },
        shown: 'web/[::1]:443',
      },
      {
        url: 'http://n2/metrics',
        labels: { job: 'other', instance: 'second', env: 'prod' },
        shown: 'web/second',
      },
    ])
  })
})
