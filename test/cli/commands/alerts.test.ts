/** `cinnabar alerts`, `alerts history` and `rules list`: what is asked of a server, and how its answer is printed. */
import { describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import { list, MORE, type Reply, runCli, type Script, string, uint32, uint64 } from '../fake-cli.ts'

const { ARRAY, DOUBLE, REC, UINT64 } = BasicType
const texts = (name: string, of: Readonly<Record<string, string>>): Field => ({
  name,
  type: REC,
  value: Object.entries(of).map(([label, text]) => string(label, text)),
})
const double = (name: string, value: number): Field => ({ name, type: DOUBLE, value })
const ago = (seconds: number): bigint => BigInt(Date.now() * 1_000 - seconds * 1e6)

// As monitoring.md, 9.21 has them.
const alert = (number: number, host: string, rest: readonly Field[] = []): readonly Field[] => [
  uint32('alert', number),
  string('state', 'firing'),
  texts('labels', { alertname: 'Full', host, severity: 'page' }),
  texts('annotations', { summary: `${host} is at 95.5%` }),
  double('value', 0.955),
  uint64('since', ago(7_300)),
  uint64('fired', ago(3_700)),
  string('silence', ''),
  string('told', 'phone, pager'),
  ...rest,
]
const rule = (number: number, name: string, rest: readonly Field[]): readonly Field[] => [
  uint32('rule', number),
  string('file', number === 1 ? '/etc/cinnabar/rules/pools.yml' : 'put:pools.yml'),
  string('group', 'pools'),
  string('name', name),
  uint64('interval', 15_000_000n),
  uint64('took', 2_100n),
  ...rest,
]

/** Answers questions for metrics; whatever is asked of another one is nothing. */
function answers(of: Readonly<Record<string, (args: Readonly<Record<string, unknown>>) => Reply>>): Script {
  return ({ of: metric, args }) => of[metric]?.(args) ?? {}
}

async function listed(script: Script, ...words: readonly string[]) {
  const { out, err, code } = await runCli(words, script)
  return { lines: out.join('\n'), code, err: err.join('\n') }
}

describe('cinnabar alerts', () => {
  const pages = answers({
    'producer.alerts.active': ({ after = 0 }) => ({
      followedBy: [
        {
          answer: Number(after) === 1 ? list(alert(2, 'b', [uint64('missing_since', 1n)])) : list(alert(1, 'a'), MORE),
        },
      ],
    }),
  })

  it('lists all pages, with states, labels, annotations and who was told', async () => {
    const { lines, code } = await listed(pages, 'alerts')
    expect(code).toBe(0)
    const [heads, first, second] = lines.split('\n')
    expect(heads).toMatch(/^STATE +FOR +ALERT +VALUE +LABELS +ANNOTATIONS +TOLD +SILENCE/)
    expect(first).toMatch(
      /^firing +1 h 1 min +Full +0\.955 +host=a severity=page +summary=a is at 95\.5% +phone, pager/,
    )
    expect(second).toMatch(/^firing, no data +1 h 1 min +Full +0\.955 +host=b/)
    const json = (await listed(pages, 'alerts', '--json')).lines.split('\n').map((line) => JSON.parse(line))
    expect(json).toMatchObject([{ labels: { host: 'a' }, told: 'phone, pager' }, { labels: { host: 'b' } }])
  })

  it('asks for those that match', async () => {
    const { producer } = await runCli(['alerts', 'severity=page', 'host=~"web.*"'], pages)
    expect(producer.asked.find(({ name }) => name === 'QUERY')?.args).toEqual({
      matchers: 'severity=page\nhost=~"web.*"',
    })
  })

  it('says that there are none', async () => {
    const none = answers({ 'producer.alerts.active': () => ({ followedBy: [{ answer: list() }] }) })
    expect(await listed(none, 'alerts')).toEqual({ code: 0, lines: '', err: 'no alert is pending, and none fires' })
    expect(await listed(none, 'alerts', 'a=b')).toMatchObject({ code: 0, lines: '', err: 'no alert matches' })
    expect(await listed(none, 'alerts', '--json')).toEqual({ code: 0, lines: '', err: '' })
  })
})

describe('cinnabar alerts history', () => {
  const series = (state: string, ...times: readonly number[]): readonly Field[] => [
    string('name', 'ALERTS'),
    texts('labels', { alertname: 'Full', alertstate: state, host: 'a' }),
    { name: 'times', type: ARRAY, value: { element: UINT64, items: times.map((time) => ago(-time)) } },
    { name: 'values', type: ARRAY, value: { element: DOUBLE, items: times.map(() => 1) } },
  ]
  const found = (...all: readonly (readonly Field[])[]): Script =>
    answers({
      'producer.history.query': () => ({ followedBy: [{ answer: list([string('type', 'matrix')], ...all) }] }),
      'producer.rules': () => ({ followedBy: [{ answer: list(rule(1, 'Full', [])) }] }),
    })

  it('lists each time in a state, which lasts until the next evaluation', async () => {
    const script = found(series('firing', -7_140, -7_125, -3_600, -15), series('pending', -7_170, -7_155))
    const { lines, code } = await listed(script, 'alerts', 'history', 'host=a')
    expect(code).toBe(0)
    const rows = lines.split('\n').map((line) => line.split(/ {2,}/))
    expect(rows[0]).toEqual(['FROM', 'TO', 'LASTED', 'STATE', 'ALERT', 'LABELS'])
    expect(rows.slice(1).map(([, to, lasted, ...rest]) => [to === 'now', lasted, ...rest])).toEqual([
      [false, '30 s', 'pending', 'Full', 'host=a'],
      [false, '30 s', 'firing', 'Full', 'host=a'],
      [false, '15 s', 'firing', 'Full', 'host=a'],
      [expect.any(Boolean), expect.stringMatching(/^1\d s$/), 'firing', 'Full', 'host=a'],
    ])
  })

  it('asks for them as PromQL does', async () => {
    const { producer } = await runCli(['alerts', 'history', 'host=a b', 'x=~"c\\d|d\\""', '--since', '2h'], found())
    const [asked] = producer.asked.filter(({ of }) => of === 'producer.history.query')
    expect(asked?.args['expr']).toMatch(/^ALERTS\{host="a b", x=~"c\\\\d\|d\\""\}\[720\ds\]$/)
  })

  it('says what is no matcher, and that there was none', async () => {
    expect(await listed(found(), 'alerts', 'history', 'full')).toMatchObject({
      code: 2,
      err: 'cinnabar: "full" is no matcher; write one like severity="page"',
    })
    expect(await listed(found(), 'alerts', 'history')).toEqual({
      code: 0,
      lines: '',
      err: 'no alert was pending or has fired in this time',
    })
  })
})

describe('cinnabar alerts log and silences', () => {
  const script = answers({
    'producer.notifications': () => ({ followedBy: [{ answer: list([string('notifier', 'phone')], MORE) }] }),
    'producer.silences': () => ({ followedBy: [{ answer: list() }] }),
  })

  it('asks for one notifier and one alert, and says that there are more', async () => {
    const { producer, out, err } = await runCli(['alerts', 'log', '--notifier', 'phone', '--alert', 'f0'], script)
    expect(producer.asked.find(({ name }) => name === 'QUERY')?.args).toEqual({ notifier: 'phone', alert: 'f0' })
    expect([out.length, err]).toEqual([2, ['there are more, for which the answer had no room']])
  })

  it('asks for those that have ended', async () => {
    const { producer, err } = await runCli(['alerts', 'silences', '--ended'], script)
    expect(producer.asked.find(({ name }) => name === 'QUERY')?.args).toEqual({ ended: true })
    expect(err).toEqual(['nothing has ended within the last five days'])
  })
})

it('lists rules with their health', async () => {
  const rules = [
    rule(1, 'a:b', [string('kind', 'record'), string('health', 'ok')]),
    rule(2, 'Same', [
      string('kind', 'alert'),
      string('health', 'err'),
      string('problem', 'vector contains metrics with the same labelset'),
      uint64('pending', 2n),
      uint64('firing', 0n),
    ]),
  ]
  const some = answers({ 'producer.rules': () => ({ followedBy: [{ answer: list(...rules) }] }) })
  const { lines, code } = await listed(some, 'rules', 'list')
  expect(code).toBe(0)
  expect(lines).toMatch(/pools +a:b +recording +ok +15 s +2 ms +pools\.yml$/m)
  expect(lines).toMatch(/pools +Same +alerting +pending +err +15 s +2 ms +put:pools\.yml +vector contains metrics/)
  const none = answers({ 'producer.rules': () => ({ followedBy: [{ answer: list() }] }) })
  expect(await listed(none, 'rules', 'list')).toEqual({ code: 0, lines: '', err: 'the server evaluates no rules' })
})
