import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { addWatch } from '../../../cli/commands/tail.ts'
import type { CommandName } from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Message } from '../../../protocol/monitor/message.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { settle } from '../../client/fake-producer.ts'
import { encodeMessage } from '../../protocol/monitor/encode-message.ts'
import { eventually } from '../../support/eventually.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { fakeCli, list, type Outcome, rec, runCli, type Script, string, TIME, uint32 } from '../fake-cli.ts'

const value = (metric: number, transaction: number, number: number): Message => ({
  kind: 'value',
  metric,
  transaction,
  time: TIME,
  value: { type: BasicType.UINT32, value: number },
})
const gap: Message = { kind: 'gap', transaction: 12, metric: 7, count: 5, from: TIME, to: TIME, reason: 1 }
const configured = { result: 5, followedBy: [{ answer: rec(string('outcome', 'ok')) }] }

/** COLLECT gives 7, 8, ...; `messages` follow the first answer to `at`. */
function follows(messages: readonly Message[], at: CommandName = 'SUBSCRIBE', bound = list(), known = list()): Script {
  let next = 7
  const due = [messages]
  return ({ name, of }) => {
    if (name === at) return { followedBy: due.shift() ?? [] }
    if (name === 'EXECUTE') return configured
    if (name === 'COLLECT') return { result: next++ }
    if (name === 'DEF_CHANNEL') return { result: 33 }
    if (of === 'producer.metrics') return { followedBy: [{ answer: known }] }
    if (of === 'producer.channels') return { followedBy: [{ answer: list([string('identity', 'tc')]) }] }
    return of === 'producer.bindings' ? { followedBy: [{ answer: bound }] } : {}
  }
}

/** The commands, without the questions for units. */
const commandsOf = ({ asked }: Outcome['producer']) =>
  asked.filter(({ of }) => of !== 'producer.metrics').map(({ name }) => name)

/** A record of `producer.bindings`. */
const binding = (metric: number, name: string, ...args: readonly Field[]) => [
  uint32('metric', metric),
  string('name', name),
  string('mode', 'subscribe'),
  { name: 'arguments', ...rec(...args) },
]

describe('watch', () => {
  test('keeps nothing, binds, and prints a line per value', async () => {
    const script = follows([value(7, 0, 1), value(7, 0, 2)])
    const { code, out, producer } = await runCli(['watch', 'gmetric.a', 'gmetric.b', 'host=n1', '--count', '2'], script)
    expect({ code, out }).toEqual({ code: 0, out: ['22:13:20.005  gmetric.a  1', '22:13:20.005  gmetric.a  2'] })
    expect(commandsOf(producer)).toEqual(['EXECUTE', 'COLLECT', 'SUBSCRIBE', 'COLLECT', 'SUBSCRIBE'])
    expect(producer.asked[0]).toMatchObject({ of: 'channel.configure', args: { channel: 9n, durable: false } })
    expect(producer.asked.at(-2)).toMatchObject({ of: 'gmetric.b', args: { host: 'n1' } })
    expect(producer.isClosed).toBe(true)
  })

  test('of several producers says of each value which one it is of', async () => {
    const named = (producer: string, number: number): Message => {
      const labels = [string('producer', producer), string('host', 'web1')]
      const measured: Field = { name: 'value', type: BasicType.UINT32, value: number }
      return { kind: 'value', metric: 7, transaction: 0, time: TIME, value: rec(...labels, measured) }
    }
    const script = follows([named('main', 1), named('east/rack1', 2)])
    const { out, producer } = await runCli(['watch', 'gmetric.a', 'producer=*', '--count', '2'], script)
    expect(producer.asked.find(({ name }) => name === 'COLLECT')?.args).toMatchObject({ producer: '*' })
    expect(out).toEqual(['22:13:20.005  gmetric.a  main  web1  1', '22:13:20.005  gmetric.a  east/rack1  web1  2'])
    const json = await runCli(
      ['watch', 'gmetric.a', 'producer=*', '--json', '--count', '1'],
      follows([named('east', 1)]),
    )
    expect(JSON.parse(json.out[0] as string)).toMatchObject({ metric: 'gmetric.a', producer: 'east', host: 'web1' })
  })

  test('ends with Ctrl-C, which is success', async () => {
    const script = follows([value(7, 0, 1), value(7, 0, 2)])
    const { code, out } = await runCli(['watch', 'a'], script, { onPrint: (_, interrupt) => interrupt() })
    expect({ code, out }).toEqual({ code: 0, out: ['22:13:20.005  a  1'] })
  })

  test('tells what was lost and what the producer has to say, on stderr', async () => {
    const notice: Message = { kind: 'notice', code: 1, channel: 9, detail: 'window full' }
    const { out, err } = await runCli(['watch', 'a', '--json', '--count', '1'], follows([notice, gap, value(7, 0, 1)]))
    expect(out.map((line) => JSON.parse(line))).toEqual([
      { lost: 5, reason: 'overflow', metric: 'a', from: TIME, to: TIME },
      { metric: 'a', time: TIME, value: 1 },
    ])
    expect(err).toEqual([
      'notice: window full',
      'lost 5 values of a (overflow) from 2023-11-14 22:13:20.005 to 2023-11-14 22:13:20.005',
    ])
  })

  test('shows numbers with their units, as people write them or as they are', async () => {
    const known = list([string('name', 'a'), string('unit', 'B')])
    const script = () => follows([value(7, 0, 2_560)], 'SUBSCRIBE', list(), known)
    const shown = async (...words: string[]) => (await runCli(['watch', 'a', '--count', '1', ...words], script())).out
    expect(await shown()).toEqual(['22:13:20.005  a  2.50 KiB'])
    expect(await shown('--exact')).toEqual(['22:13:20.005  a  2560 B'])
  })

  test('--interval is asked of the server', async () => {
    const { producer } = await runCli(['watch', 'a', '--interval', '0.5', '--count', '1'], follows([value(7, 0, 1)]))
    expect(producer.asked.find(({ name }) => name === 'COLLECT')?.args).toEqual({ interval_ms: 500n })
  })

  test('--rate shows growth per second, and nothing for the first value or after a reset', async () => {
    const known = list([string('name', 'a'), string('unit', 'B')])
    const at = (seconds: number, number: number): Message => ({
      ...(value(7, 0, number) as Extract<Message, { kind: 'value' }>),
      time: TIME + seconds * 1e6,
    })
    const messages = [at(0, 1_000), at(2, 5_096), at(3, 10), at(4, 1_034)]
    const script = () => follows(messages, 'SUBSCRIBE', list(), known)
    const { out } = await runCli(['watch', 'a', '--rate', '--count', '2'], script())
    expect(out).toEqual(['22:13:22.005  a  2.00 KiB/s', '22:13:24.005  a  1.00 KiB/s'])
    const json = await runCli(['watch', 'a', '--rate', '--json', '--count', '1'], script())
    expect(JSON.parse(json.out[0]!)).toEqual({ metric: 'a', time: TIME + 2e6, value: 2_048, per_second: true })
  })

  test('says after a second that nothing matches yet, and what was probably meant', async () => {
    const script: Script = (asked) => {
      const isAll = asked.args['match'] === 'host.*'
      if (asked.of === 'producer.metrics') {
        return { followedBy: [{ answer: isAll ? list([string('name', 'host.load.one')]) : list() }] }
      }
      return follows([])(asked)
    }
    const clock = new FakeClock()
    const { cli, err, producer } = fakeCli(script)
    const program = new Command()
    addWatch(program, cli, clock)
    const ended = program.parseAsync(['watch', 'host.lod.*', '--json', '--count', '1'], { from: 'user' })
    await eventually(() => expect(clock.timers).toBe(1))
    const missing = 'nothing matches host.lod.* now; waiting (Ctrl-C ends). Did you mean `host.load.*`?'
    clock.advance(999)
    await settle()
    expect(err).not.toContain(missing)
    clock.advance(1)
    await eventually(() => expect(err).toContain(missing))
    producer.say(encodeMessage(value(7, 0, 1)))
    await ended
  })

  test('does not begin on a channel that would keep everything', async () => {
    const refused: Script = () => ({
      followedBy: [{ answer: rec(string('outcome', 'failed'), string('detail', 'no')) }],
    })
    const { code, err, producer } = await runCli(['watch', 'a'], refused)
    expect({ code, err }).toEqual({
      code: 1,
      err: ['cinnabar: the producer could not make the channel non-durable: no', expect.stringMatching(/^Used: /)],
    })
    expect(producer.asked).toHaveLength(1)
  })

  test('says that nothing matches one metric while another has values', async () => {
    const known = list([string('name', 'a')])
    const script = follows([value(7, 0, 1)])
    const clock = new FakeClock()
    const { cli, out, err, producer } = fakeCli((asked) =>
      asked.args['match'] === 'a' ? { followedBy: [{ answer: known }] } : script(asked),
    )
    const program = new Command()
    addWatch(program, cli, clock)
    const ended = program.parseAsync(['watch', 'a', 'typo', '--json', '--count', '2'], { from: 'user' })
    await eventually(() => expect(out).toHaveLength(1))
    clock.advance(1_000)
    await eventually(() => expect(err).toEqual(['nothing matches typo now; waiting (Ctrl-C ends).']))
    producer.say(encodeMessage(value(7, 0, 2)))
    await ended
  })
})

describe('tail', () => {
  test('defines a channel, tells its id, and commits what was printed', async () => {
    const script = follows([value(7, 11, 1), gap, value(7, 13, 2)])
    const { code, out, err, producer } = await runCli(['tail', 'a', '--json', '--count', '2'], script)
    expect(code).toBe(0)
    expect(out.map((line) => JSON.parse(line).transaction)).toEqual([11, undefined, 13])
    expect(err[0]).toBe('channel 33; continue later with: cinnabar tail --channel 33')
    expect(err[1]).toMatch(/^lost 5 values of a \(overflow\)/)
    const names = producer.asked.map(({ name }) => name)
    expect(names.slice(0, 5)).toEqual(['DEF_CHANNEL', 'QUERY', 'SET_CHANNEL', 'COLLECT', 'SUBSCRIBE'])
    expect(producer.asked[0]).toMatchObject({ fields: { url: '' }, args: { window: 512n } })
    expect(producer.asked.at(-1)).toMatchObject({ name: 'COMMIT', fields: { transaction: 13, through: true } })
  })

  test('continues a channel with the names bound there', async () => {
    const bound = list(binding(70, 'gmetric.a'))
    const script = follows([value(70, 11, 1)], 'SET_CHANNEL', bound)
    const { code, out, producer } = await runCli(['tail', 'gmetric.a', '--channel', '33', '--count', '1'], script)
    expect({ code, out }).toEqual({ code: 0, out: ['22:13:20.005  gmetric.a  1'] })
    expect(commandsOf(producer)).toEqual(['QUERY', 'SET_CHANNEL', 'COMMIT'])
    expect(producer.asked[0]).toMatchObject({ of: 'producer.bindings', args: { channel: '33' } })
  })

  test('continues with the channel of a name, and says what else that binds', async () => {
    const bound = list(binding(70, 'gmetric.a'), binding(71, 'gmetric.a', uint32('interval_ms', 500)))
    const script = follows([value(70, 11, 1)], 'SET_CHANNEL', bound)
    const { code, out, err, producer } = await runCli(
      ['tail', 'gmetric.a', '--name', 'my tail', '--count', '1'],
      script,
    )
    expect({ code, out }).toEqual({ code: 0, out: ['22:13:20.005  gmetric.a  1'] })
    expect(commandsOf(producer)).toEqual(['DEF_CHANNEL', 'QUERY', 'SET_CHANNEL', 'COMMIT'])
    expect(producer.asked[0]).toMatchObject({ fields: { url: '' }, args: { window: 512n, name: 'my tail' } })
    expect(err).toEqual([
      "channel 33; continue later with: cinnabar tail --name 'my tail'",
      'also bound on this channel: gmetric.a interval_ms=500 (metric id 71)',
    ])
    const later = await runCli(
      ['tail', '--name', 'billing', '--count', '1'],
      follows([value(70, 11, 1)], 'SET_CHANNEL', bound),
    )
    expect(later.err).toEqual(['channel 33; continue later with: cinnabar tail --name billing'])
    expect(later.out).toEqual(['22:13:20.005  gmetric.a  1'])
  })

  test('a name on which nothing is bound yet needs a metric; a name and an id are too much', async () => {
    const { code, err } = await runCli(['tail', '--name', 'billing'], follows([]))
    expect([code, err]).toEqual([1, ['cinnabar: no metric is bound on the channel billing yet: name one']])
    expect((await runCli(['tail', '--name', 'billing', '--channel', '33'], follows([]))).code).toBe(2)
  })

  test('a name without a metric must be that of a channel of this user, and creates none', async () => {
    const script: Script = (asked) => {
      const owner = asked.args['channel'] === '0' ? 'tc' : asked.args['channel'] === 'theirs' ? 'bob' : undefined
      if (asked.of !== 'producer.channels') return follows([])(asked)
      return { followedBy: [{ answer: owner === undefined ? list() : list([string('identity', owner)]) }] }
    }
    for (const name of ['billign', 'theirs']) {
      const { code, err, producer } = await runCli(['tail', '--name', name], script)
      const advice = `\`cinnabar tail METRIC --name ${name}\` creates it; \`cinnabar channels\` lists your channels`
      expect([code, err]).toEqual([1, [`cinnabar: you have no channel ${name}: ${advice}`]])
      expect(producer.asked.map(({ name }) => name)).not.toContain('DEF_CHANNEL')
    }
  })

  test('a refused name leaves no channel', async () => {
    const isMisspelt: Script = (asked) => (asked.name === 'COLLECT' ? { status: 'NO_SUCH_METRIC' } : follows([])(asked))
    const { code, err, producer } = await runCli(['tail', 'a'], isMisspelt)
    expect(code).toBe(1)
    expect(err[0]).toMatch(/^cinnabar: COLLECT was refused/)
    expect(producer.asked.at(-1)?.name).toBe('DEL_CHANNEL')
    const known = await runCli(['tail', 'a', '--channel', '33'], isMisspelt)
    expect(known.producer.asked.map(({ name }) => name)).not.toContain('DEL_CHANNEL')
  })

  test('reports a channel that does not exist', async () => {
    const isGone: Script = (asked) =>
      asked.name === 'SET_CHANNEL' ? { status: 'NO_SUCH_CHANNEL' } : follows([])(asked)
    const { code, err } = await runCli(['tail', '--channel', '33'], isGone)
    expect(code).toBe(1)
    expect(err.join()).toMatch(/you have no channel 33/)
  })

  test('does not commit what could not be printed', async () => {
    const onPrint = () => {
      throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    }
    const { code, producer } = await runCli(['tail', 'a'], follows([value(7, 11, 1)]), { onPrint })
    expect(code).toBe(0)
    expect(producer.asked.map(({ name }) => name)).not.toContain('COMMIT')
  })
})
