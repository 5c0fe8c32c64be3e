import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { addConnections, addStatus } from '../../../cli/commands/status.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { fakeCli, list, rec, type Script, string, TIME, uint32, uint64 } from '../fake-cli.ts'

const OF_ALL = [
  string('software', 'cinnabar/1.2.3'),
  string('name', 'n1'),
  { name: 'uptime', type: BasicType.DOUBLE, value: 1_500 },
  uint64('connections', 3n),
  uint64('channels', 12n),
  uint64('unstored_bytes', 0n),
  uint64('resident_bytes', 104n << 20n),
] as const satisfies readonly Field[]
const OF_ADMINS: readonly Field[] = [
  uint64('unauthenticated_connections', 1n),
  uint64('evicted_connections', 0n),
  uint64('refused_connections', 2n),
  uint64('refused_passwords', 0n),
  uint64('refused_scrapes', 0n),
  { name: 'listeners', type: BasicType.ARRAY, value: { element: BasicType.STRING, items: ['tcp://127.0.0.1:7650'] } },
  uint64('disk_size_bytes', 40n << 30n),
  uint64('disk_free_bytes', 10n << 30n),
]

/** `values` are those of the counters at each question; the questions are a second apart. */
function gives(storage: string, values: readonly number[] = []): Script {
  const state = [...OF_ALL, string('storage', storage), uint64('faults', 0n)]
  const due = [...values]
  let asked = 0
  return () => {
    const counted = due.shift()
    const counters =
      counted === undefined ? [] : [uint64('accepted_values', BigInt(counted)), uint64('sent_values', 0n)]
    const more = values.length === 0 ? [] : [...OF_ADMINS, ...counters]
    const time = TIME + asked++ * 1e6
    return { followedBy: [{ kind: 'value', metric: 1, transaction: 0, time, value: rec(...state, ...more) }] }
  }
}

async function status(script: Script, ...words: string[]) {
  const clock = new FakeClock()
  const { cli, out } = fakeCli(script)
  const program = new Command().exitOverride()
  addStatus(program, cli, clock)
  const ended = program.parseAsync(['status', ...words], { from: 'user' }).then(
    () => 0,
    (error: { exitCode: number }) => error.exitCode,
  )
  let code: number | undefined
  void ended.then((given) => {
    code = given
  })
  while (code === undefined) {
    if (clock.timers > 0) clock.advance(1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { code, out, waitedMs: clock.monotonicMs() }
}

describe('status', () => {
  test('shows an admin everything, with rates', async () => {
    expect(await status(gives('ok', [1_000, 1_250]))).toEqual({
      code: 0,
      waitedMs: 1_000,
      out: [
        'server           n1, cinnabar/1.2.3',
        'up               25 min',
        'ready            yes',
        'listens on       tcp://127.0.0.1:7650',
        'connections      3, and 1 that have not logged in',
        'channels         12',
        'values           250/s accepted, 0/s sent',
        'disk             10.0 GiB free of 40.0 GiB (25 %)',
        'not stored yet   0 B',
        'memory           104 MiB',
        'since the start  2 connections found no place',
      ],
    })
  })

  test('shows others what concerns them, and waits for nothing', async () => {
    const { code, out, waitedMs } = await status(gives('ok'))
    expect([code, waitedMs]).toEqual([0, 0])
    expect(out.map((line) => line.split('  ')[0])).toEqual([
      'server',
      'up',
      'ready',
      'connections',
      'channels',
      'not stored yet',
      'memory',
    ])
  })

  test('fails if the server is not ready, and says why', async () => {
    const { code, out } = await status(gives('full'))
    expect(code).toBe(1)
    expect(out[2]).toMatch(/^ready +no: the disk is full/)
  })

  test('prints JSON with the rates', async () => {
    const { out } = await status(gives('ok', [0, 7]), '--json')
    expect(out).toHaveLength(1)
    expect(JSON.parse(out[0]!)).toMatchObject({
      name: 'n1',
      ready: true,
      listeners: ['tcp://127.0.0.1:7650'],
      accepted_per_second: 7,
      sent_per_second: 0,
    })
  })
})

describe('connections', () => {
  const connection = (channel: number, identity: string, address: string, layers = '') => [
    uint32('channel', channel),
    string('identity', identity),
    string('address', address),
    string('transport', 'tcp'),
    string('layers', layers),
    string('method', 'token'),
    uint64('since', BigInt(TIME)),
  ]
  const script: Script = () => ({
    followedBy: [{ answer: list(connection(9, 'ann', '127.0.0.1'), connection(12, 'acme/bob', '', 'tls,deflate')) }],
  })
  const connections = async (...words: string[]) => {
    const { cli, out } = fakeCli(script)
    const program = new Command()
    addConnections(program, cli, () => TIME / 1_000 + 180_000)
    await program.parseAsync(['connections', ...words], { from: 'user' })
    return out
  }

  test('shows who is connected, from where, how and since when', async () => {
    expect(await connections()).toEqual([
      'USER      ADDRESS    TRANSPORT          LOGIN  CHANNEL    FOR  SINCE',
      'ann       127.0.0.1  tcp                token        9  3 min  2023-11-14 22:13:20.005',
      'acme/bob  -          tcp + tls,deflate  token       12  3 min  2023-11-14 22:13:20.005',
    ])
  })

  test('prints JSON', async () => {
    expect((await connections('--json')).map((line) => JSON.parse(line))).toMatchObject([
      { channel: 9, identity: 'ann', since: TIME },
      { channel: 12, layers: 'tls,deflate' },
    ])
  })
})
