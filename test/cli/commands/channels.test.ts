import { describe, expect, test } from 'vitest'
import type { Field } from '../../../client/index.ts'
import { boolean, list, MORE, rec, runCli, type Script, string, TIME, uint32, uint64 } from '../fake-cli.ts'

/** A channel that someone follows gmetric on, and everything is committed. */
const QUIET = {
  identity: 'alice',
  url: '',
  state: 'connected',
  durable: true,
  accepted: 100,
  committed: 100,
  in_flight: 0,
  queued: 0,
  queued_bytes: 0,
  unstored: 0,
  /** How long ago, in seconds. */
  lag: 0,
  dropped: {} as Record<string, number>,
  bindings: [['subscribe', 'gmetric.*']] as readonly (readonly [string, string])[],
}

function channel(id: number, given: Partial<typeof QUIET> = {}): readonly Field[] {
  const of = { ...QUIET, ...given }
  const count = (name: 'accepted' | 'committed' | 'in_flight' | 'queued' | 'queued_bytes' | 'unstored') =>
    uint64(name, BigInt(of[name]))
  const bindings = of.bindings.map(([mode, name], i) => [
    uint32('metric', 70 + i),
    string('name', name),
    string('mode', mode),
  ])
  const dropped = Object.entries(of.dropped).map(([name, number]) => uint64(name, BigInt(number)))
  return [
    uint32('channel', id),
    string('identity', of.identity),
    string('url', of.url),
    string('state', of.state),
    boolean('durable', of.durable),
    count('accepted'),
    count('committed'),
    count('in_flight'),
    count('queued'),
    count('queued_bytes'),
    uint64('stored', 12n),
    count('unstored'),
    uint64('gaps', 2n),
    uint64('oldest', of.lag === 0 ? 0n : BigInt(TIME - of.lag * 1e6)),
    { name: 'dropped', ...rec(...dropped) } as Field,
    { name: 'bindings', ...list(...bindings) } as Field,
  ]
}

const gives =
  (...channels: readonly (readonly Field[])[]): Script =>
  () => ({ followedBy: [{ answer: list(...channels) }] })
const AWAY = {
  state: 'waiting',
  accepted: 2_345_678,
  committed: 1_000_000,
  queued: 1_345_000,
  queued_bytes: 50_000_000,
  lag: 7_500,
  dropped: { overflow: 678, expired: 0 },
}

describe('channels', () => {
  test('shows what waits and why, in 120 columns', async () => {
    const script = gives(
      channel(9, { bindings: [] }),
      channel(700_000_001, { identity: 'bob' }),
      channel(809_438_160, {
        ...AWAY,
        dropped: {},
        bindings: [
          ['buffer', 'smon.*'],
          ['subscribe', 'gmetric.*'],
        ],
      }),
      channel(1_342_622_147, { state: 'window-full', in_flight: 65_536, queued: 10, queued_bytes: 700, lag: 61 }),
    )
    const { code, out } = await runCli(['channels'], script)
    expect(code).toBe(0)
    expect(out).toEqual([
      '   CHANNEL  IDENTITY  STATE        BINDINGS   ACCEPTED  COMMITTED  FLIGHT         QUEUED    LAG  WHY',
      '         9  alice     connected    -               100        100       0              0      -  this command itself',
      ' 700000001  bob       connected    gmetric.*       100        100       0              0      -  nothing is waiting',
      ' 809438160  alice     waiting      smon.* +1     2.35M      1.00M       0  1.34M (47.7M)    2 h  nobody is connected',
      '1342622147  alice     window-full  gmetric.*       100        100   65536      10 (700B)  1 min  sent, not committed',
    ])
    expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(120)
  })

  test('fits a terminal of 80 columns without the counters; who, how much, since when and why stay', async () => {
    const { out } = await runCli(['channels'], gives(channel(1_342_622_147, { ...AWAY, dropped: {} })), { columns: 80 })
    expect(out).toEqual([
      '   CHANNEL  IDENTITY  BINDINGS          QUEUED  LAG  WHY',
      '1342622147  alice     gmetric.*  1.34M (47.7M)  2 h  nobody is connected',
    ])
  })

  test('shows losses by reason only if there are any', async () => {
    const { out } = await runCli(['channels'], gives(channel(7), channel(8, { ...AWAY, unstored: 5 })))
    // What is not stored yet changes from moment to moment: the details of a channel show it.
    expect(out[0]).toMatch(/QUEUED {2}DROPPED +LAG/)
    expect(out[1]).toMatch(/ 0 {2,}- {2}nothing is waiting$/)
    expect(out[2]).toMatch(/1\.34M \(47\.7M\) {2}678 overflow +2 h {2}nobody is connected$/)
  })

  test('shows URLs only if there are any', async () => {
    const dialled = channel(8, { url: 'tls://monitor.example.org:7650/a-very-long-way', state: 'waiting', queued: 1 })
    const { out } = await runCli(['channels'], gives(channel(7), dialled))
    expect(out[0]).toMatch(/IDENTITY {2}URL +STATE/)
    expect(out[2]).toMatch(/alice {5}tls:\/\/monitor\.example\.org:7650\/… {2}waiting .* its URL is not connected$/)
    expect((await runCli(['channels'], gives(channel(7)))).out[0]).not.toContain('URL')
  })

  test('long names give way', async () => {
    const bindings = ['gmetric.a_very_long_name', 'b', 'c'].map((name) => ['subscribe', name] as const)
    const { out } = await runCli(['channels'], gives(channel(8, { ...AWAY, dropped: {}, bindings })))
    expect(out[1]).toMatch(/ waiting {2}gmetric\.a\S*… \+2 /)
    expect(out[1]?.length).toBeLessThanOrEqual(120)
  })

  test.each<[string, Parameters<typeof channel>[1]]>([
    ['nothing is waiting', {}],
    ['nothing is waiting', { state: 'waiting' }],
    ['nobody is connected', { state: 'waiting', queued: 1, lag: 5 }],
    ['sent, not committed', { state: 'window-full', in_flight: 9, queued: 1, lag: 5 }],
    ['sent, not committed', { in_flight: 9, lag: 5 }],
    ['keeps up', { in_flight: 9, queued: 9, lag: 0.9 }],
    ['reads nothing', { queued: 9, lag: 5 }],
    ['reads slowly', { queued: 9, in_flight: 1, lag: 5 }],
    ['reads slowly', { queued: 9, durable: false, lag: 5 }],
    ['waits for GET', { queued: 9, lag: 5, bindings: [['buffer', 'a']] }],
    [
      'slow, or waits for GET',
      {
        queued: 9,
        lag: 5,
        bindings: [
          ['buffer', 'a'],
          ['subscribe', 'b'],
        ],
      },
    ],
    ['slow, or waits for GET', { queued: 9, in_flight: 1, lag: 5, bindings: [['buffer', 'a']] }],
    ['nobody came back: polled metrics pause', { state: 'orphan' }],
    ['its URL is not connected', { url: 'tcp://a.example:7650', state: 'waiting', queued: 1, lag: 5 }],
  ])('says that %s', async (why, given) => {
    const { out } = await runCli(['channels'], gives(channel(7, given)))
    expect(out[1]?.endsWith(`  ${why}`)).toBe(true)
  })

  test('shows slow channels, the slowest first', async () => {
    const all = gives(channel(5, { lag: 2 }), channel(6), channel(7, { lag: 0.5 }), channel(8, { lag: 60 }))
    const { out } = await runCli(['channels', '--slow', '--json'], all)
    expect(out.map((line) => JSON.parse(line).channel)).toEqual([8, 5])
    const { out: none, err, code } = await runCli(['channels', '--slow'], gives(channel(6)))
    expect({ none, err, code }).toEqual({ none: [], err: ['no value has waited for a second or more'], code: 0 })
  })

  test('shows orphans', async () => {
    const all = gives(channel(5), channel(6, { state: 'orphan' }), channel(7, { state: 'waiting' }))
    const { out } = await runCli(['channels', '--orphans', '--json'], all)
    expect(out.map((line) => JSON.parse(line).channel)).toEqual([6])
    const { out: none, err, code } = await runCli(['channels', '--orphans'], gives(channel(6)))
    expect({ none, err, code }).toEqual({ none: [], err: ['there are no orphans'], code: 0 })
  })

  test('asks page by page, and prints everything as JSON', async () => {
    const script: Script = (asked) => gives(...(asked.args['after'] === 7n ? [channel(80)] : [channel(7), MORE]))(asked)
    const { out } = await runCli(['channels', '--json'], script)
    expect(out.map((line) => JSON.parse(line))).toMatchObject([
      { channel: 7, accepted: 100, bindings: [{ metric: 70, name: 'gmetric.*', mode: 'subscribe' }] },
      { channel: 80 },
    ])
    expect((await runCli(['channels', '--json'], gives())).out).toEqual([])
  })

  test('a record that is too long for an answer is reported, not queried again and again', async () => {
    const { code, err } = await runCli(['channels'], gives(MORE))
    expect({ code, err }).toEqual({
      code: 1,
      err: ['cinnabar: producer.channels contains a record that is too long for an answer'],
    })
  })
})

describe('channels ID', () => {
  test('shows every counter, and that they add up', async () => {
    const { out, producer } = await runCli(['channels', '33'], gives(channel(33, { ...AWAY, unstored: 4 })))
    expect(producer.asked[0]).toMatchObject({ of: 'producer.channels', args: { channel: '33' } })
    expect(out).toEqual([
      'channel     33',
      'name        -',
      'identity    alice',
      'url         -',
      'state       waiting: nobody is connected',
      'durable     yes',
      'lag         2 h 5 min, since 2023-11-14 20:08:20.005',
      'accepted    2345678',
      'committed   1000000',
      'in flight   0',
      'queued      1345000 (47.7 MiB)',
      'dropped     678',
      '  overflow  678',
      '  expired   0',
      'balance     2345678 accepted = 1000000 committed + 0 in flight + 1345000 queued + 678 dropped',
      'stored      through transaction 12',
      'unstored    4',
      'gaps        2',
      '',
      'METRIC  MODE       NAME',
      '    70  subscribe  gmetric.*',
    ])
  })

  test('fits the terminal', async () => {
    const bindings = [['subscribe', `gmetric.${'a'.repeat(60)}`]] as const
    const { out } = await runCli(['channels', '33'], gives(channel(33, { ...AWAY, bindings })), { columns: 50 })
    expect(out).toContain('balance     2345678 accepted = 1000000 committed +')
    expect(Math.max(...out.map((line) => line.length))).toBeLessThanOrEqual(50)
  })

  test('reports counters that do not add up', async () => {
    const { out } = await runCli(['channels', '33'], gives(channel(33, { accepted: 7, committed: 5, queued: 1 })))
    expect(out).toContain('balance    7 accepted, but 5 committed + 0 in flight + 1 queued + 0 dropped = 6')
  })

  test('shows the one of a name, which the list shows too', async () => {
    const named = [string('name', 'billing'), ...channel(33)]
    const { out, producer } = await runCli(['channels', 'billing'], gives(named))
    expect(producer.asked[0]).toMatchObject({ of: 'producer.channels', args: { channel: 'billing' } })
    expect(out.slice(0, 2)).toEqual(['channel    33', 'name       billing'])
    expect((await runCli(['channels'], gives(channel(32), named))).out.slice(0, 3)).toEqual([
      'CHANNEL  NAME     IDENTITY  STATE      BINDINGS   ACCEPTED  COMMITTED  FLIGHT  QUEUED  LAG  WHY',
      '     32           alice     connected  gmetric.*       100        100       0       0    -  nothing is waiting',
      '     33  billing  alice     connected  gmetric.*       100        100       0       0    -  nothing is waiting',
    ])
  })

  test('fails for a channel that does not exist; an invalid id is wrong usage', async () => {
    const { code, err } = await runCli(['channels', '33'], gives())
    expect(code).toBe(1)
    expect(err.join()).toMatch(/you have no channel 33/)
    expect((await runCli(['channels', 'billing'], gives())).err.join()).toMatch(/you have no channel billing/)
    for (const id of ['0', '2147483648']) expect((await runCli(['channels', id])).code).toBe(2)
  })
})
