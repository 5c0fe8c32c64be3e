import { Command } from 'commander'
import { expect, test } from 'vitest'
import { addAudit } from '../../../cli/commands/audit.ts'
import { type Field, VOID } from '../../../client/index.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { fakeCli, rec, runCli, type Script, string, TIME, uint64 } from '../fake-cli.ts'

const record = (number: number, given: Readonly<Record<string, string>> = {}): readonly Field[] => [
  uint64('number', BigInt(number)),
  uint64('time', BigInt(TIME)),
  ...Object.entries({
    action: 'execute',
    actor: 'acme/alice',
    address: '127.0.0.1',
    object: 'user.add',
    args: '{"user":"bob"}',
    outcome: 'ok',
    detail: '',
    ...given,
  }).map(([name, value]) => string(name, value)),
]
/** The records that a command with channel 9 causes. */
const OWN = { object: 'channel.configure', args: '{"channel":9,"overflow":"drop-newest"}', actor: 'tc' }

const gives =
  (...records: readonly (readonly Field[])[]): Script =>
  ({ name }) => {
    if (name === 'EXECUTE') {
      const answer = rec(string('outcome', 'ok'), string('detail', ''), { name: 'value', ...VOID })
      return { result: 5, followedBy: [{ answer }] }
    }
    if (name === 'COLLECT') return { result: 33 }
    if (name !== 'SUBSCRIBE') return {}
    const followedBy = records.map(
      (one) => ({ kind: 'value', metric: 33, transaction: 0, time: TIME, value: rec(...one) }) as const,
    )
    return { result: 0, followedBy }
  }

test('past records are printed up to the one that the call itself has made', async () => {
  const log = gives(record(1), record(2, { ...OWN, args: '{"channel":8}' }), record(3, OWN), record(4))
  const { code, out, err, producer } = await runCli(['audit'], log)
  expect({ code, err }).toEqual({ code: 0, err: [] })
  expect(out).toEqual([
    '  NUMBER  TIME                     ACTION    OUTCOME            ACTOR             ADDRESS          WHAT',
    '       1  2023-11-14 22:13:20.005  execute   ok                 acme/alice        127.0.0.1        user.add  {"user":"bob"}',
    '       2  2023-11-14 22:13:20.005  execute   ok                 tc                127.0.0.1        channel.configure  {"channel":8}',
    '       3  2023-11-14 22:13:20.005  execute   ok                 tc                127.0.0.1        channel.configure  {"channel":9,"overflow":"drop-newest"}',
  ])
  const collect = producer.asked.find(({ name }) => name === 'COLLECT')
  expect(collect).toMatchObject({ of: 'producer.audit', args: { after: 0n } })
})

test('with --after only what is above, and as JSON all of it', async () => {
  const { out, producer } = await runCli(['audit', '--after', '6', '--json'], gives(record(7), record(8, OWN)))
  expect(producer.asked.find(({ name }) => name === 'COLLECT')?.args).toEqual({ after: 6n })
  expect(out.map((line) => JSON.parse(line))).toMatchObject([{ number: 7, actor: 'acme/alice' }, { number: 8 }])
})

test('--follow runs until it is interrupted, and starts now by default', async () => {
  const onPrint = (text: string, interrupt: () => void) => (text.includes('later') ? interrupt() : undefined)
  const log = gives(record(3, OWN), record(4, { detail: 'later' }))
  const { code, out, producer } = await runCli(['audit', '--follow', '--json'], log, { onPrint })
  expect(code).toBe(0)
  expect(out.map((line) => JSON.parse(line).number)).toEqual([3, 4])
  expect(producer.asked.find(({ name }) => name === 'COLLECT')?.args).toEqual({})
})

test('what a peer made up cannot steer the terminal', async () => {
  const { out } = await runCli(['audit'], gives(record(1, { actor: 'a\x1b[2J' }), record(2, OWN)))
  expect(out[1]).toContain('a\\x1b[2J')
})

test('without a visible end it stops when no more records arrive, and deletes its channel', async () => {
  const clock = new FakeClock()
  const { cli, out, producer } = fakeCli(gives(record(1)))
  const program = new Command()
  addAudit(program, cli, clock)
  const ended = program.parseAsync(['audit', '--json'], { from: 'user' })
  await expect.poll(() => out.length).toBe(1)
  await expect.poll(() => clock.timers).toBe(1)
  clock.advance(4_999)
  expect(producer.asked.map(({ name }) => name)).toEqual(['EXECUTE', 'COLLECT', 'SUBSCRIBE'])
  clock.advance(1)
  await ended
  expect(producer.asked.at(-1)?.name).toBe('DEL_CHANNEL')
})
