/** What is remembered is sent again by remote write: what, in which order, with which credentials, and what is done if it is refused. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { addHistoryReplay } from '../../../cli/commands/history-replay.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { decodeWriteRequest, decompress } from '../../../protocol/prometheus/remote-write.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { fakeCli, list, rec, runCli, type Script, string } from '../fake-cli.ts'

const { ARRAY, DOUBLE, UINT64 } = BasicType
const SECRET = 's3cret-of-the-receiver'

let server: Server
let url: string
let directory: string
let answers: { status: number; body?: string }[]
let asked: { headers: IncomingHttpHeaders; lines: string[] }[]
beforeEach(async () => {
  answers = []
  asked = []
  directory = mkdtempSync(join(tmpdir(), 'replay-'))
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    asked.push({ headers: request.headers, lines: linesOf(Buffer.concat(chunks)) })
    const { status, body = '' } = answers.shift() ?? { status: 204 }
    response.writeHead(status).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/write`
})
afterEach(async () => {
  rmSync(directory, { recursive: true, force: true })
  await new Promise((resolve) => server.close(resolve))
})

function linesOf(body: Uint8Array): string[] {
  const { series } = finish(decodeWriteRequest(decompress(body, { bytes: 1 << 24 }), { elements: 1e6 }))
  return series.flatMap(({ name, labels, samples }) =>
    samples.map(({ value, time }) => `${name}{${labels.map((label) => label.join('='))}} ${value} ${time / 1e6}`),
  )
}

const numbers = (name: string, element: typeof UINT64 | typeof DOUBLE, items: readonly (bigint | number)[]): Field => ({
  name,
  type: ARRAY,
  value: { element, items } as never,
})
const piece = (seconds: readonly number[], { tenant = 'acme', ended = [] as readonly number[] } = {}): Field[] => [
  string('tenant', tenant),
  string('metric', 'gmetric.load'),
  string('name', 'gmetric_load'),
  { name: 'labels', ...rec(string('host', 'web1')) } as Field,
  numbers(
    'times',
    UINT64,
    seconds.map((at) => BigInt(at) * 1_000_000n),
  ),
  numbers(
    'values',
    DOUBLE,
    seconds.map((at) => at / 2),
  ),
  numbers(
    'ended',
    UINT64,
    ended.map((at) => BigInt(at) * 1_000_000n),
  ),
]
/** By the number of the slice. */
const slices = (...all: readonly (readonly Field[][])[]): Script => {
  let next = 0
  return ({ of }) =>
    of === 'producer.history.select' ? { result: 9, followedBy: [{ answer: list(...(all[next++] ?? [])) }] } : {}
}
const replay = (script: Script, ...more: string[]) => {
  const range = ['--since', '1970-01-01T00:00:00Z', '--until', '1970-01-01T00:20:00Z']
  return runCli(['history', 'replay', 'gmetric.*', ...range, '--to', url, ...more], script)
}
const secretFile = (): string => {
  const path = join(directory, 'secret')
  writeFileSync(path, `${SECRET}\n`, { mode: 0o600 })
  return path
}

describe('cinnabar history replay', () => {
  it('sends slice by slice, with the ends of series', async () => {
    const done = await replay(slices([piece([1, 2], { ended: [3] })], [piece([700])], [piece([1_200])]))
    expect([done.code, done.err, done.out.join()]).toEqual([0, [], `5 samples are sent to ${url}`])
    expect(asked.map(({ lines }) => lines)).toEqual([
      ['gmetric_load{host=web1} 0.5 1', 'gmetric_load{host=web1} 1 2', 'gmetric_load{host=web1} undefined 3'],
      ['gmetric_load{host=web1} 350 700'],
      ['gmetric_load{host=web1} 600 1200'],
    ])
    expect(asked[0]?.headers).toMatchObject({
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
    })
    const ranges = done.producer.asked.filter(({ of }) => of === 'producer.history.select').map(({ args }) => args)
    expect(ranges.map(({ from, to }) => [from, to])).toEqual([
      [0n, 599_999_999n],
      [600_000_000n, 1_199_999_999n],
      [1_200_000_000n, 1_200_000_000n],
    ])
  })

  it('sends no request with more than 2,000 samples of a series', async () => {
    const many = Array.from({ length: 4_500 }, (_, at) => at)
    await replay(slices([piece(many)]))
    expect(asked.map(({ lines }) => lines.length)).toEqual([2_000, 2_000, 500])
  })

  it('shows its credentials from files, and no message has them', async () => {
    const token = await replay(slices([piece([1])]), '--to-token-file', secretFile())
    expect(asked.at(-1)?.headers.authorization).toBe(`Bearer ${SECRET}`)
    const basic = await replay(slices([piece([1])]), '--to-user', 'ann', '--to-password-file', secretFile())
    expect(asked.at(-1)?.headers.authorization).toBe(`Basic ${Buffer.from(`ann:${SECRET}`).toString('base64')}`)
    answers = [{ status: 401, body: 'no' }]
    const refused = await replay(slices([piece([1])]), '--to-token-file', secretFile())
    expect([refused.code, refused.err.join('\n')]).toEqual([
      1,
      expect.stringMatching(/answered 401: no\n.*--to-token-file/),
    ])
    for (const { out, err } of [token, basic, refused]) expect([...out, ...err].join()).not.toContain(SECRET)
  })

  it('sends no secret where others could read it, and none in the address', async () => {
    const open = await runCli(
      [
        'history',
        'replay',
        'a.b',
        '--since',
        '1h',
        '--to',
        'http://monitor.example/w',
        '--to-token-file',
        secretFile(),
      ],
      slices(),
    )
    expect([open.code, open.err.join()]).toEqual([2, expect.stringContaining('use https://')])
    const inUrl = await runCli(
      ['history', 'replay', 'a.b', '--since', '1h', '--to', `https://ann:${SECRET}@monitor.example/w`],
      slices(),
    )
    expect([inUrl.code, inUrl.err.join()]).toEqual([2, expect.not.stringContaining(SECRET)])
    expect(asked).toEqual([])
  })

  it('counts what is refused, and goes on', async () => {
    answers = [{ status: 400, body: 'out of order sample' }]
    const done = await replay(slices([piece([1, 2])], [piece([700])]))
    expect([done.code, done.out.join()]).toEqual([1, `1 sample is sent to ${url}`])
    expect(done.err.join()).toContain('2 samples were refused there: out of order sample')
  })

  it('says where to go on if it fails, and does not mix tenants', async () => {
    answers = [{ status: 204 }, { status: 404, body: 'not found' }]
    const failed = await replay(slices([piece([1])], [piece([700])]))
    expect(failed.code).toBe(1)
    expect(failed.err.join('\n')).toContain('To go on: --since 1970-01-01T00:10:00.000Z')
    const both = () => slices([piece([1]), piece([2], { tenant: 'north' })])
    expect((await replay(both())).code).toBe(2)
    asked = []
    expect((await replay(both(), '--tenant', 'north')).code).toBe(0)
    expect(asked.map(({ lines }) => lines)).toEqual([['gmetric_load{host=web1} 1 2']])
  })

  it('tries again while the receiver is overloaded, later and later', async () => {
    answers = [{ status: 503 }, { status: 429 }]
    const waits: number[] = []
    const { cli, out } = fakeCli(slices([piece([1])]))
    const program = new Command()
    addHistoryReplay(program, cli, Date.now, async (ms) => waits.push(ms))
    const range = ['--since', '1970-01-01T00:00:00Z', '--until', '1970-01-01T00:01:00Z']
    await program.parseAsync(['replay', 'gmetric.*', ...range, '--to', url], { from: 'user' })
    expect([out.join(), asked.length, waits]).toEqual([`1 sample is sent to ${url}`, 3, [500, 1_000]])
  })
})
