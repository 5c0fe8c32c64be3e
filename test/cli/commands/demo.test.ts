/** The demonstration for real, but short: it starts and kills servers of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { streamStart } from '../../../cli/demo/server.ts'
import { connect as connectTo } from '../../../client/index.ts'
import { times } from '../../support/long.ts'
import { PROGRAM } from '../../support/program.ts'
import { runCli } from '../fake-cli.ts'

/** What `--console` prints: URL, password, process and directory. */
const OPEN = /at: +(http\S+)\n[\s\S]*password: +(\S+) [\s\S]*process (\d+), [\s\S]* data in (\S+)\n/

function start(...options: readonly string[]) {
  // Another server's variable: it must not reach the demonstration's.
  const env = { ...process.env, NO_COLOR: '1', CINNABAR_LISTEN_TCP: '127.0.0.1:1' }
  const words = [PROGRAM, 'demo', ...options]
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
  const { code, printed } = await start('--seconds', String(times({ short: 1, long: 6 }))).ended
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
  process.argv[1] = PROGRAM
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

test.each(['0', '1.5', 'x', '601'])('--seconds %s is refused', async (seconds) => {
  const { code, err } = await runCli(['demo', '--seconds', seconds])
  expect(code).toBe(2)
  expect(err.join('\n')).toContain('Expected a whole number from 1 to 600.')
})

test('--console leaves a server open with hosts and channels, and Ctrl-C ends it without a trace', async () => {
  const { child, ended, shows } = start('--console')
  const [, url = '', password = '', pid, directory = ''] = await shows(OPEN)
  const page = await fetch(url)
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('/console/assets/')])
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

test('--console runs until it is ended: --seconds does not go with it', async () => {
  const { code, err } = await runCli(['demo', '--console', '--seconds', '3'])
  expect(code).toBe(2)
  expect(err.join('\n')).toContain("'--console' cannot be used with option '--seconds")
})
