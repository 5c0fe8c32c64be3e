import { Command } from 'commander'
import { expect, test } from 'vitest'
import { addAudit } from '../../../cli/commands/audit.ts'
import { BasicType, type Field, VOID } from '../../../client/index.ts'
import { eventually } from '../../support/eventually.ts'
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
/** A log that holds `records`; an admin also sees the number of the newest one. */
function gives(records: readonly (readonly Field[])[], newest?: number): Script {
  let after = 0
  return ({ name, of, args }) => {
    if (name === 'EXECUTE') {
      const answer = rec(string('outcome', 'ok'), string('detail', ''), { name: 'value', ...VOID })
      return { result: 5, followedBy: [{ answer }] }
    }
    if (of === 'producer.stats') {
      return {
        followedBy: [{ answer: rec(...(newest === undefined ? [] : [uint64('audit_records', BigInt(newest))])) }],
      }
    }
    if (name === 'COLLECT') {
      after = args['after'] === undefined ? Number.POSITIVE_INFINITY : Number(args['after'])
      return { result: 33 }
    }
    if (name !== 'SUBSCRIBE') return {}
    const found = records.filter(([number]) => Number(number?.value) > after)
    const followedBy = found.map(
      (one) => ({ kind: 'value', metric: 33, transaction: 0, time: TIME, value: rec(...one) }) as const,
    )
    return { result: 0, followedBy }
  }
}

const LOG = [
  record(1),
  record(2, { action: 'auth', actor: 'bob' }),
  record(3, { object: 'user.remove' }),
  record(4, { actor: 'bob' }),
]
const numbers = (out: readonly string[]) => out.map((line) => JSON.parse(line).number)

test('the newest records are printed, up to the one that is the last', async () => {
  const { code, out, err, producer } = await runCli(['audit', '--last', '2'], gives(LOG, 4))
  expect({ code, err }).toEqual({ code: 0, err: [] })
  expect(out).toEqual([
    ' NUMBER  TIME                 ACTION    OUTCOME    ACTOR         ADDRESS       WHAT',
    '      3  2023-11-14 22:13:20  execute   ok         acme/alice    127.0.0.1     user.remove  {"user":"bob"}',
    '      4  2023-11-14 22:13:20  execute   ok         bob           127.0.0.1     user.add  {"user":"bob"}',
  ])
  const collect = producer.asked.find(({ name }) => name === 'COLLECT')
  expect(collect).toMatchObject({ of: 'producer.audit', args: { after: 2n } })
  const many = await runCli(['audit'], gives([record(100)], 100))
  expect(many.producer.asked.find(({ name }) => name === 'COLLECT')?.args).toEqual({ after: 80n })
})

test('on a narrow terminal, what was done has a line of its own', async () => {
  const { out } = await runCli(['audit'], gives([record(1)], 1), { columns: 80 })
  expect(out.every((line) => line.length <= 80)).toBe(true)
  expect(out.slice(2)).toEqual([
    '      1  2023-11-14 22:13:20  execute   ok         acme/alice    127.0.0.1',
    '         user.add  {"user":"bob"}',
  ])
})

test.each([
  [
    ['--actor', 'bob'],
    [2, 4],
  ],
  [
    ['--action', 'execute'],
    [1, 3, 4],
  ],
  [['--action', 'execute', '--last', '1'], [4]],
  [
    ['--after', '2'],
    [3, 4],
  ],
  [
    ['--since', '2023-11-14T22:13:20'],
    [1, 2, 3, 4],
  ],
  [['--since', '2023-11-14T22:13:21'], []],
  [['--since', '1h'], []],
])('%j selects', async (words, expected) => {
  const { code, out } = await runCli(['audit', '--json', ...words], gives(LOG, 4))
  expect({ code, numbers: numbers(out) }).toEqual({ code: 0, numbers: expected })
})

test('says if there is nothing to print', async () => {
  const { code, out, err } = await runCli(['audit', '--after', '9'], gives(LOG, 4))
  expect({ code, out, err }).toEqual({ code: 0, out: [], err: ['no record above 9 matches'] })
  expect((await runCli(['audit', '--actor', 'nobody'], gives(LOG, 4))).err).toEqual(['no record matches'])
})

test('JSON has the hash as `audit verify` prints and takes it', async () => {
  const hashed = [...record(1), { name: 'hash', type: BasicType.OPAQUE, value: new Uint8Array([0xab, 0x01]) } as const]
  const { out } = await runCli(['audit', '--json'], gives([hashed], 1))
  expect(JSON.parse(out[0]!).hash).toBe('ab01')
})

test('--follow runs until it is interrupted, and starts now by default', async () => {
  const onPrint = (text: string, interrupt: () => void) => (text.includes('later') ? interrupt() : undefined)
  const later = [...LOG, record(5, { detail: 'later' })]
  const followed = await runCli(['audit', '--follow', '--json', '--last', '1'], gives(later, 4), { onPrint })
  expect({ code: followed.code, numbers: numbers(followed.out) }).toEqual({ code: 0, numbers: [4, 5] })
  const { cli, producer } = fakeCli(gives(later, 4))
  const program = new Command()
  addAudit(program, cli)
  void program.parseAsync(['audit', '--follow'], { from: 'user' }).catch(() => {})
  await eventually(() => expect(producer.asked.map(({ name }) => name)).toContain('SUBSCRIBE'))
  expect(producer.asked.find(({ name }) => name === 'COLLECT')?.args).toEqual({})
  producer.close()
})

test('what a peer made up cannot steer the terminal', async () => {
  const { out } = await runCli(['audit'], gives([record(1, { actor: 'a\x1b[2J' })], 1))
  expect(out[1]).toContain('a\\x1b[2J')
})

test('without a visible end it stops when no more records arrive, and deletes its channel', async () => {
  const clock = new FakeClock()
  const { cli, out, producer } = fakeCli(gives(LOG))
  const program = new Command()
  addAudit(program, cli, clock)
  const ended = program.parseAsync(['audit', '--json', '--last', '3'], { from: 'user' })
  await eventually(() => expect(producer.asked.map(({ name }) => name)).toContain('SUBSCRIBE'))
  await eventually(() => expect(clock.timers).toBe(1))
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(4_999)
  expect(out).toEqual([])
  clock.advance(1)
  await ended
  expect(numbers(out)).toEqual([2, 3, 4])
  expect(producer.asked.at(-1)?.name).toBe('DEL_CHANNEL')
})

test('a newest record that does not arrive ends the reading of an admin too, with an error', async () => {
  const clock = new FakeClock()
  const { cli, out } = fakeCli(gives(LOG, 5))
  const program = new Command()
  addAudit(program, cli, clock)
  const ended = program.parseAsync(['audit', '--json', '--last', '3'], { from: 'user' })
  const failing = expect(ended).rejects.toThrow('the newest record, 5, has not arrived: see the log of the server')
  await eventually(() => expect(clock.timers).toBe(1))
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(5_000)
  await failing
  expect(numbers(out)).toEqual([3, 4])
})
