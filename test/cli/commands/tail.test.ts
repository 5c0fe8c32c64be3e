import { describe, expect, test } from 'vitest'
import type { CommandName } from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Message } from '../../../protocol/monitor/message.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { list, rec, runCli, type Script, string, TIME, uint32 } from '../fake-cli.ts'

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
function follows(messages: readonly Message[], at: CommandName = 'SUBSCRIBE', bound = list()): Script {
  let next = 7
  const due = [messages]
  return ({ name, of }) => {
    if (name === at) return { followedBy: due.shift() ?? [] }
    if (name === 'EXECUTE') return configured
    if (name === 'COLLECT') return { result: next++ }
    if (name === 'DEF_CHANNEL') return { result: 33 }
    return of === 'producer.bindings' ? { followedBy: [{ answer: bound }] } : {}
  }
}

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
    expect(producer.asked.map(({ name }) => name)).toEqual(['EXECUTE', 'COLLECT', 'SUBSCRIBE', 'COLLECT', 'SUBSCRIBE'])
    expect(producer.asked[0]).toMatchObject({ of: 'channel.configure', args: { channel: 9n, durable: false } })
    expect(producer.asked[3]).toMatchObject({ of: 'gmetric.b', args: { host: 'n1' } })
    expect(producer.isClosed).toBe(true)
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
    expect(producer.asked.map(({ name }) => name)).toEqual(['QUERY', 'SET_CHANNEL', 'COMMIT'])
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
    expect(producer.asked.map(({ name }) => name)).toEqual(['DEF_CHANNEL', 'QUERY', 'SET_CHANNEL', 'COMMIT'])
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
