/** What the tables `[[notify]]` may say, and what people read where they may not. */
import { RE2JS } from 're2js'
import { expect, it, vi } from 'vitest'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'
import { alertMatcher, matcherTexts } from '../../../../server/wings/notify/matchers.ts'
import { checkMatchers } from '../../../../server/wings/notify/notifiers.ts'

const load = (toml: string) => loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
const TABLE = '[[notify]]\nname = "n"\n'

it('a notifier has defaults for all but its name and its URL', () => {
  expect(load(`${TABLE}url = "webhook+https://h.example/x"`).notify[0]).toMatchObject({
    url: { protocol: 'webhook', href: 'https://h.example/x' },
    match: [],
    tenant: 'default',
    groupBy: ['alertname'],
    groupWaitMs: 30_000,
    groupIntervalMs: 300_000,
    repeatIntervalMs: 14_400_000,
    sendResolved: true,
    timeoutMs: 30_000,
  })
})

it('is shown without the path of its URL, which may be a secret', () => {
  const [notifier] = load(`${TABLE}url = "json+https://hooks.slack.com/services/T0/B0/hunter2"\ntemplate = "t"`).notify
  expect(notifier?.url).toEqual({
    protocol: 'json',
    href: 'https://hooks.slack.com/services/T0/B0/hunter2',
    shown: 'json+https://hooks.slack.com',
  })
})

it('an Alertmanager is told at once, and every minute, at its path', () => {
  expect(load(`${TABLE}url = "alertmanager+http://h.example:9093"`).notify[0]).toMatchObject({
    url: { href: 'http://h.example:9093/api/v2/alerts' },
    groupWaitMs: 0,
    groupIntervalMs: 0,
    repeatIntervalMs: 60_000,
  })
})

it('has times at which nothing is told, and alerts that say it all', () => {
  const [notifier] = load(
    `${TABLE}url = "webhook+https://h.example/x"\nmute_time_intervals = [{ weekdays = ["saturday"] }, { times = ["00:00-07:00"], location = "Europe/Berlin" }]\n` +
      `inhibit = [{ source = ['a="b"'], target = ['c="d"'] }]`,
  ).notify
  expect(notifier).toMatchObject({
    muteTimes: [
      { weekdays: [[6, 6]], location: 'UTC' },
      { times: [[0, 420]], location: 'Europe/Berlin' },
    ],
    inhibit: [{ source: ['a="b"'], target: ['c="d"'], equal: [] }],
  })
})

it.each([
  [
    'url = "webhook+https://h/"\nmute_time_intervals = [{ times = ["soon"] }]',
    /`mute_time_intervals`: expected a list like/,
  ],
  ['url = "webhook+https://h/"\ninhibit = [{ source = ["a=b"] }]', /inhibit 1: it needs `target`/],
  ['url = "https://host/"', /`\[\[notify\]\]` n: `url`: expected a URL like "webhook\+https/],
  ['url = "ntfy+https://host/"', /expected a URL like/],
  ['url = "ntfy+https://host/%E0"', /expected a URL like/],
  ['url = "webhook+http://192.0.2.1/"\ntoken_file = "t"', /in clear: use \+https/],
  ['url = "ntfy+https://host/t"\nsecret_file = "s"', /`secret_file` goes with a `url` of webhook/],
  ['url = "ntfy+https://host/t"\ntemplate = "t"', /`template` goes with a `url` of json/],
  ['url = "json+https://host/t"', /`template` goes with a `url` of json/],
  ['url = "ntfy+https://host/t"\ninterval = "1m"', /`interval` goes with a `url` of heartbeat/],
  ['url = "heartbeat+https://host/t"\ngroup_by = ["a"]', /`group_by`: a heartbeat says nothing of alerts/],
  ['url = "webhook+https://host/t"\napprovals = true', /`approvals` needs the `role` whose users approve, as a rule/],
  [
    'url = "heartbeat+https://host/t"\napprovals = true\nrole = "lead"',
    /`approvals`: a heartbeat says nothing of what/,
  ],
  ['url = "heartbeat+https://host/t"\nmatch = ["a=b"]', /`match`: a heartbeat says nothing of alerts/],
  ['url = "ntfy+https://host/t"\nescalate_after = "1m"', /`escalate_after` goes with `escalate_to`/],
  ['url = "ntfy+https://host/t"\nescalate_to = "boss"', /`escalate_to` has to name another notifier .*: boss is none/],
  ['url = "ntfy+https://host/t"\nescalate_to = "n"', /`escalate_to` has to name another notifier .*: n is none/],
  ['url = "smtp://host"', /`from` and `to` go with a `url` of smtps or smtp/],
  ['url = "ntfy+https://host/t"\nfrom = "a@b.example"', /`from` and `to` go with a `url` of smtps or smtp/],
  ['url = "smtp://user:hunter2@host"', /without a user/],
  ['url = "smtp://host"\nfrom = "nobody"\nto = ["a@b.example"]', /`from`: expected an address like/],
  ['url = "smtp://host"\nfrom = "a@b.example"\nto = ["a@b.example, c@d.example"]', /`to`: expected a list of 1 to 50/],
  ['url = "alertmanager+https://host"\ngroup_by = ["a"]', /an Alertmanager groups and repeats by itself/],
  ['url = "webhook+https://host/"\ngroup_by = ["a b"]', /a list of at most 32 names of labels/],
  ['url = "webhook+https://user:hunter2@host/"', /without a user/],
])('%s is refused', (line, problem) => {
  let message = ''
  try {
    load(TABLE + line)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    message = (error as Error).message
  }
  expect(message).toMatch(problem)
  expect(message).not.toContain('hunter2')
})

it('a matcher that is none is refused, with what one looks like', async () => {
  const { notify } = load(`${TABLE}url = "webhook+https://h/"\nmatch = ["severity"]`)
  await expect(checkMatchers(notify)).rejects.toThrow(
    '[[notify]] n: `match`: "severity" is no matcher; write one like severity="page"',
  )
})

it('the regular expressions of the configuration are as large as the operator wants them', async () => {
  const { notify } = load(`${TABLE}url = "webhook+https://h/"\nmatch = ['a=~"b{600}"', 'c=~"d{600}"']`)
  await expect(checkMatchers(notify)).resolves.toBeUndefined()
})

it('a silence whose regular expressions are too large is refused before the first that is too much is compiled', () => {
  const compile = vi.spyOn(RE2JS, 'compile')
  expect(() => matcherTexts('a=~"b{300}"\nc=~"d{300}"')).toThrow(/more than 500 parts together/)
  expect(compile.mock.calls.map(([expression]) => expression)).toEqual(['b{300}'])
  compile.mockRestore()
})

it.each([
  ['a=b', 'b', true],
  ['a = "b c"', 'b c', true],
  ['a="\\"x\\""', '"x"', true],
  ['a!="b"', 'b', false],
  ['a!=b', '', true],
  ['a=', '', true],
  [' a = b c ', 'b c', true],
  ['a = ""', '', true],
  ['a=~"b|c"', 'c', true],
  ['a=~"b.*"', 'abc', false],
  ['a!~b.*', 'bcd', false],
  // Alertmanager's parser (pkg/labels/parse.go) leaves every backslash alone but those of \\, \" and \n.
  ['a=~"10\\.0"', '10.0', true],
  ['a=~"10\\.0"', '10x0', false],
  ['a=~"web\\d+"', 'web12', true],
  ['a=~"web\\\\d+"', 'web12', true],
  ['a="b\\c\\n"', 'b\\c\n', true],
])('%s is a matcher', (text, label, isMatching) => {
  expect(alertMatcher(text)?.matches(label)).toBe(isMatching)
})

it.each(['a', 'a=~"("', '="b"', 'a="b', '1a=b'])('%s is none', (text) => {
  expect(alertMatcher(text)).toBeUndefined()
})
