/** The demonstration for real, but short: it starts and kills servers of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { streamStart } from '../../../cli/demo/server.ts'
import { type Connect, connect as connectTo } from '../../../client/index.ts'
import { natsMissing } from '../../support/nats.ts'
import { SERVER_PROGRAM } from '../../support/program.ts'
import { runCli } from '../fake-cli.ts'

/** What `--console` prints: URL, password, process and directory. */
const OPEN = /at: +(http\S+)\n[\s\S]*password: +(\S+) [\s\S]*process (\d+), [\s\S]* data in (\S+)\n/

function start(...options: readonly string[]) {
  // Another server's variable: it must not reach the demonstration's.
  const env = { ...process.env, NO_COLOR: '1', CINNABAR_LISTEN_TCP: '127.0.0.1:1' }
  const words = [SERVER_PROGRAM, 'demo', ...options]
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      printed += text
    })
  }
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, printed }))
  const shows = async (pattern: RegExp) => {
    while (!pattern.test(printed)) {
      const event = await Promise.race([once(child.stdout, 'data'), ended])
      if ('code' in event) throw new Error(`it ended with ${event.code}: ${printed}`)
    }
    return pattern.exec(printed)!
  }
  return { child, ended, shows }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const number = (text: string | undefined): number => Number(text?.replaceAll(',', ''))

test('a server that is killed three times loses nothing, and the sums are shown', { timeout: 180_000 }, async () => {
  const { code, printed } = await start('--seconds', '2').ended
  expect(code, printed).toBe(0)
  expect([...printed.matchAll(/kill -9 \d+ {2}\((\d) of 3\), when [\d,]+ were handled$/gm)].map(([, n]) => n)).toEqual([
    '1',
    '2',
    '3',
  ])
  const [, fed, handled] = /([\d,]+) fed, ([\d,]+) handled: 0 lost, 0 repeated$/m.exec(printed) ?? []
  expect(number(fed)).toBeGreaterThan(10)
  expect(handled).toBe(fed)
  const ledgers = [...printed.matchAll(/([\d,]+) accepted = ([\d,]+) .+ \+ ([\d,]+) .+ \+ ([\d,]+) .+ \+ ([\d,]+) d/g)]
  expect(ledgers.length).toBe(7)
  for (const [text, sum, ...parts] of ledgers) {
    expect(number(sum), text).toBe(parts.map(number).reduce((a, b) => a + b))
  }
  // What was accepted before a kill is there after it.
  for (const at of [0, 2, 4]) expect(ledgers[at]?.[1]).toBe(ledgers[at + 1]?.[1])
  expect(ledgers[6]?.[1]).toBe(fed)
  expect(printed.trimEnd()).toMatch(/everything balances: 3 kills, each number handled exactly once$/)
  const directory = /data in (\S+)/.exec(printed)?.[1] ?? '/'
  expect(existsSync(directory)).toBe(false)
  const lines = printed.replace(directory, '').split('\n')
  for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(100)
})

test('Ctrl-C ends it, and leaves neither a server nor a directory', async () => {
  const { child, ended, shows } = start('--seconds', '600')
  const [, pid, directory] = await shows(/process (\d+), data in (\S+)\n[\s\S]*follows/)
  expect(existsSync(directory!)).toBe(true)
  expect(isRunning(Number(pid))).toBe(true)
  child.kill('SIGINT')
  const { code, printed } = await ended
  expect(code).toBe(1)
  expect(printed).toContain('cinnabar: interrupted: nothing has been proven\n')
  expect(existsSync(directory!)).toBe(false)
  expect(isRunning(Number(pid))).toBe(false)
})

test('a server that ends by itself ends it, and that is no success', async () => {
  const { ended, shows } = start('--seconds', '600')
  const [, pid, directory] = await shows(/process (\d+), data in (\S+)\n[\s\S]*follows/)
  process.kill(Number(pid), 'SIGKILL')
  const { code, printed } = await ended
  expect(code).toBe(1)
  expect(printed).toContain('cinnabar: the server ended by itself (SIGKILL)')
  expect(existsSync(directory!)).toBe(false)
})

test('a server that ends by itself is the cause, though its connections are lost before its end is known', async () => {
  const [, program = ''] = process.argv
  process.argv[1] = SERVER_PROGRAM
  let pid = 0
  const onPrint = (text: string) => {
    pid = Number(/process (\d+)/.exec(text)?.[1] ?? pid)
  }
  const connect = async (): Promise<never> => {
    process.kill(pid, 'SIGKILL')
    throw new Error('the connection is lost')
  }
  try {
    const { code, err } = await runCli(['demo', '--seconds', '1'], undefined, { onPrint, connect })
    expect({ code, err: err.join('\n') }).toEqual({
      code: 1,
      err: expect.stringContaining('cinnabar: the server ended by itself (SIGKILL)'),
    })
  } finally {
    process.argv[1] = program
  }
})

test('a number that comes twice ends it, and that is no success', async () => {
  const { ended, shows } = start('--seconds', '1')
  const [, directory] = await shows(/data in (\S+)\n[\s\S]*follows/)
  const [, port] = /\[smon\]\ntcp = "127\.0\.0\.1:(\d+)"/.exec(readFileSync(`${directory}/cinnabar.toml`, 'utf8')) ?? []
  const stranger = connect(Number(port), '127.0.0.1').on('error', () => {})
  stranger.write(streamStart(1))
  const { code, printed } = await ended
  expect(code, printed).toBe(1)
  expect(printed).toMatch(/^cinnabar: \d+ were fed and stored, but the server has \d+$/m)
  expect(existsSync(directory!)).toBe(false)
})

test('a number that does not reach the consumer ends it, and that is no success', { timeout: 180_000 }, async () => {
  const [, program = ''] = process.argv
  process.argv[1] = SERVER_PROGRAM
  const connect: Connect = async (...args) => {
    const consumer = await connectTo(...args)
    const follow = consumer.follow.bind(consumer)
    consumer.follow = (metric, args, handler) =>
      follow(metric, args, (sample) => {
        if (sample.plain !== 7) return handler?.(sample)
      })
    return consumer
  }
  try {
    const { code, err } = await runCli(['demo', '--seconds', '1'], undefined, { connect })
    expect({ code, err: err.join('\n') }).toEqual({
      code: 1,
      err: expect.stringMatching(/the totals do not balance:\nfrom the sources to consumer: .+ 1 lost, 0 repeated$/m),
    })
  } finally {
    process.argv[1] = program
  }
})

test.each(['0', '1.5', 'x', '601'])('--seconds %s is refused', async (seconds) => {
  const { code, err } = await runCli(['demo', '--seconds', seconds])
  expect(code).toBe(2)
  expect(err.join('\n')).toContain('Expected a whole number from 1 to 600.')
})

test('--console leaves a server open with hosts and channels, and Ctrl-C ends it without a trace', async () => {
  const { child, ended, shows } = start('--console')
  const [, url = '', password = '', pid, directory = ''] = await shows(OPEN)
  const page = await fetch(url)
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('"console/assets/')])
  const consumer = await connectTo(`${url.replace('http', 'ws')}monitor`, { identity: 'admin', password })
  /** Asks until a field has had each of these values in one answer. */
  const has = async (metric: string, field: string, expected: readonly string[], args = {}) => {
    for (let found: unknown[] = []; !expected.every((one) => found.includes(one)); ) {
      const { plain } = await consumer.query(metric, args)
      found = (plain as readonly Record<string, unknown>[]).map((record) => record[field])
    }
  }
  await has('producer.series', 'host', ['web1', 'db1', 'backup1'], { match: 'gmetric.load_one' })
  await has('producer.channels', 'name', ['billing', 'ops-archive', 'dashboard', 'nightly-report'])
  await has('producer.channels', 'state', ['connected', 'waiting'])
  await has('producer.controls', 'name', ['exec.greet'])
  await consumer.close()
  child.kill('SIGINT')
  const { code, printed } = await ended
  expect({ code, printed }).toEqual({ code: 0, printed: expect.not.stringContaining('cinnabar: ') })
  expect(printed.split(password)).toHaveLength(2)
  expect([existsSync(directory), isRunning(Number(pid))]).toEqual([false, false])
})

test('--console fails if its server ends by itself', async () => {
  const { ended, shows } = start('--console')
  const [, , , pid, directory] = await shows(OPEN)
  process.kill(Number(pid), 'SIGKILL')
  const { code, printed } = await ended
  expect({ code, printed }).toEqual({
    code: 1,
    printed: expect.stringContaining('cinnabar: the server ended by itself (SIGKILL)'),
  })
  expect(existsSync(directory!)).toBe(false)
})

test.each([['--seconds', '3'], ['--tree']])(
  '--console runs until it is ended: %s does not go with it',
  async (...words) => {
    const { code, err } = await runCli(['demo', '--console', ...words])
    expect(code).toBe(2)
    expect(err.join('\n')).toContain(`'--console' cannot be used with option '${words[0]}`)
  },
)

const TREE = /^ +(rack1|rack2|east|main|consumer) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)$/gm

function ofSeveralServers(): void {
  test('servers above servers lose nothing when one of each level is killed', { timeout: 240_000 }, async () => {
    const { code, printed } = await start('--tree', '--seconds', '2').ended
    expect(code, printed).toBe(0)
    const kills = printed.matchAll(/kill -9 \d+ {2}\((\d) of 3\), (\w+), when [\d,]+ were handled$/gm)
    expect([...kills].map(([, n, name]) => [n, name])).toEqual([
      ['1', 'rack1'],
      ['2', 'east'],
      ['3', 'main'],
    ])
    const rows = [...printed.matchAll(TREE)].map(([, name = '', ...counts]) => [name, ...counts.map(number)] as const)
    expect(rows.map(([name]) => name)).toEqual(['rack1', 'rack2', 'east', 'main', 'consumer'])
    for (const [name, sent, arrived, lost, repeated] of rows) {
      expect([arrived, lost, repeated], name).toEqual([sent, 0, 0])
    }
    const [rack1 = 0, rack2 = 0, ...above] = rows.map(([, sent]) => Number(sent))
    expect(Math.min(rack1, rack2)).toBeGreaterThan(10)
    expect(above).toEqual(Array(3).fill(rack1 + rack2))
    expect(printed.trimEnd()).toMatch(
      /everything balances: 3 kills, one at each level, each number handled exactly once$/,
    )
    const directories = [...printed.matchAll(/data in (\S+)/g)].map(([, directory = '/']) => directory)
    expect(directories.map((directory) => existsSync(directory))).toEqual([false, false, false, false])
    for (const line of directories.reduce((text, directory) => text.replace(directory, ''), printed).split('\n')) {
      expect(line.length, line).toBeLessThanOrEqual(100)
    }
  })

  // natsMissing says what to install.
  test.skipIf(natsMissing)(
    'a cluster loses nothing when the node that leads is killed',
    { timeout: 300_000 },
    async () => {
      const { code, printed } = await start('--cluster', '--seconds', '2').ended
      expect(code, printed).toBe(0)
      const kills = [...printed.matchAll(/kill -9 (\d+), (n[123]) {2}\((\d) of 3\), when [\d,]+ were handled$/gm)]
      expect(kills.map(([, , , n]) => n)).toEqual(['1', '2', '3'])
      const takeovers = [...printed.matchAll(/(n[123]) leads, and has answered [\d.]+ s after the kill$/gm)]
      expect(takeovers).toHaveLength(3)
      for (const [index, [, name]] of takeovers.entries()) expect(name).not.toBe(kills[index]?.[2])
      const [, fed, handled] = /([\d,]+) fed, ([\d,]+) handled: 0 lost, 0 repeated$/m.exec(printed) ?? []
      expect(number(fed)).toBeGreaterThan(10)
      expect(handled).toBe(fed)
      expect(printed).toMatch(/all three nodes have everything up to record [\d,]+ of the log, epoch \d+$/m)
      expect(printed.trimEnd()).toMatch(/everything balances: 3 kills, each number handled exactly once$/)
      const directories = [...printed.matchAll(/data in (\S+)/g)].map(([, directory = '/']) => directory)
      expect(directories.map((directory) => existsSync(directory))).toEqual([false, false, false, false])
    },
  )

  test('a server of the tree that ends by itself is named, and nothing is left of the others', async () => {
    const { ended, shows } = start('--tree', '--seconds', '600')
    const { input } = await shows(/handled\n/)
    const servers = [...input.matchAll(/(\w+) is up, process (\d+), data in (\S+)/g)]
    expect(servers.map(([, name]) => name)).toEqual(['rack1', 'rack2', 'east', 'main'])
    process.kill(Number(servers[2]?.[2]), 'SIGKILL')
    const { code, printed } = await ended
    expect([code, printed]).toEqual([1, expect.stringContaining('cinnabar: the server east ended by itself (SIGKILL)')])
    for (const [, , pid, directory] of servers) {
      expect([isRunning(Number(pid)), existsSync(directory!)]).toEqual([false, false])
    }
  })

  test('a number that comes to a rack twice fails the tree at the end', { timeout: 240_000 }, async () => {
    const { ended, shows } = start('--tree', '--seconds', '1')
    const [, directory] = await shows(/rack2 is up, process \d+, data in (\S+)\n[\s\S]*handled\n/)
    const [, port] =
      /\[smon\]\ntcp = "127\.0\.0\.1:(\d+)"/.exec(readFileSync(`${directory}/cinnabar.toml`, 'utf8')) ?? []
    const stranger = connect(Number(port), '127.0.0.1').on('error', () => {})
    stranger.write(streamStart(1))
    const { code, printed } = await ended
    expect(code, printed).toBe(1)
    expect(printed).toMatch(
      /^cinnabar: the totals do not balance:\nfrom its source to rack2: \d+ sent, \d+ arrived, 0 lost, 1 repeated$/m,
    )
  })
}
describe('of several servers', ofSeveralServers)
