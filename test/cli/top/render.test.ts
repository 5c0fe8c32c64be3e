import fc from 'fast-check'
import pc from 'picocolors'
import { describe, expect, test } from 'vitest'
import { TopHost } from '../../../cli/top/host.ts'
import { type Picture, render, renderPlain, tableHeight, toJsonLine } from '../../../cli/top/render.ts'
import type { TopRow } from '../../../cli/top/rows.ts'
import { FIRST_VIEW } from '../../../cli/top/view.ts'
import { cellWidth } from '../../../cli/width.ts'
import { type Field, VOID } from '../../../client/index.ts'
import { double, rec, string, uint64 } from '../fake-cli.ts'

const PLAIN = pc.createColors(false)
const URL = 'tcp://127.0.0.1:7650'

const row = (metric: string, where: string, content: TopRow['content'], more: Partial<TopRow> = {}): TopRow => ({
  pattern: 'gmetric.*',
  metric,
  producer: '',
  where,
  content,
  time: 7,
  arrivedMs: 1_000,
  goneMs: undefined,
  ...more,
})

function picture(rows: readonly TopRow[], more: Partial<Picture> = {}): Picture {
  return {
    view: FIRST_VIEW,
    host: busyHost().summary(),
    url: URL,
    rows,
    total: rows.length,
    isFull: false,
    unitOf: (metric) => (metric === 'gmetric.foo' ? 'widgets' : '1'),
    nowMs: 4_000,
    message: '',
    patterns: ['gmetric.*', 'smon.*'],
    program: 'npx cinnabar',
    ...more,
  }
}

function busyHost(): TopHost {
  const host = new TopHost()
  const take = (name: string, value: number, time = 1e6) => {
    const [, family] = name.split('.')
    const named = rec(string('name', name), { ...double(value), name: 'value' } as Field)
    host.take({ name: `host.${family}.*`, time, value: named })
  }
  take('host.cpu.idle', 70)
  take('host.cpu.iowait', 5)
  take('host.cpu.user', 20)
  take('host.cpu.nice', 1)
  take('host.cpu.system', 4)
  take('host.cpu.number', 2)
  take('host.load.one', 0.5)
  take('host.load.five', 0.25)
  take('host.load.fifteen', 0.125)
  take('host.mem.total', 4 * 2 ** 30)
  take('host.mem.available', 2 ** 30)
  take('host.mem.swap_total', 0)
  take('host.mem.swap_used', 0)
  take('host.disk.used', 2 ** 40)
  take('host.disk.free', 2 ** 40)
  take('host.net.sent_bytes', 1000)
  take('host.net.sent_bytes', 1000 + 4096, 3e6)
  take('host.net.received_bytes', 1000)
  take('host.net.received_bytes', 10, 3e6)
  host.take({ name: 'host.uptime', time: 1e6, value: double(3 * 3600) })
  const stats = rec(
    string('software', 'cinnabar/0.1.0'),
    string('name', 'n1'),
    { ...double(90), name: 'uptime' } as Field,
    string('storage', 'full'),
  )
  host.take({ name: 'producer.stats', time: 1e6, value: stats })
  return host
}

describe('a narrow screen', () => {
  test.each([
    [60, 'METRIC ^     HOST         VALUE     AGE', 'gmetric.foo  n1       7 widgets     3 s'],
    [40, 'METRIC ^     HOST       VALUE     AGE', 'gmetric.foo  n1             7     3 s'],
    [30, 'METRIC ^     HOST       VALUE', 'gmetric.foo  n1             7'],
    [20, 'METRIC ^       VALUE', 'gmetric.f…         7'],
  ])('of %i columns leaves out what matters least', (columns, head, line) => {
    const lines = render(picture([row('gmetric.foo', 'n1', 7)]), { columns, rows: 24 }, PLAIN)
    const at = lines.findIndex((one) => one.trimEnd() === head)
    expect(at).toBeGreaterThan(0)
    expect(lines[at + 1]?.trimEnd()).toBe(line)
  })
})

describe('the screen', () => {
  test('dims a value that is old, and one that is gone', () => {
    const rows = [
      row('gmetric.new', 'web1', 1, { arrivedMs: 10_001 }),
      row('gmetric.old', 'web1', 2, { arrivedMs: 10_000 }),
      row('gmetric.gone', 'web1', 3, { arrivedMs: 69_000, goneMs: 70_000 }),
    ]
    const lines = render(picture(rows, { nowMs: 70_000 }), { columns: 80, rows: 14 }, pc.createColors(true))
    const shown = ['new', 'old', 'gone'].map((name) => lines.find((line) => line.includes(`gmetric.${name}`)))
    expect(shown.map((line) => line?.startsWith('\x1b[2m'))).toEqual([false, true, true])
  })

  test('shows the host above the table', () => {
    const rows = [
      row('gmetric.foo', 'web1', 42),
      row('gmetric.bar', '10.0.0.9', 'some text that is too long for its column'),
      row('smon.big', 'a 3,0', 2n ** 60n, { arrivedMs: undefined }),
      row('gmetric.gone', 'web1', true, { goneMs: 3_000 }),
    ]
    const lines = render(picture(rows), { columns: 100, rows: 14 }, PLAIN).map((line) => line.trimEnd())
    expect(lines).toEqual([
      'n1   up 3 h   load 0.50 0.25 0.13   cinnabar/0.1.0 up 1 min   storage full   tcp://127.0.0.1:7650',
      'cpu  [||||||                   ] 25.0 % of 2 CPUs   user 21.0 %   system 4.0 %   iowait 5.0 %',
      'mem  [|||||||||||||||||||      ] 3.00 GiB of 4.00 GiB   swap none',
      'disk [|||||||||||||            ] 1.00 TiB of 2.00 TiB on /   read -   written -',
      'net  received -   sent 2.00 KiB/s',
      '',
      'METRIC ^      HOST                                          VALUE     AGE',
      'gmetric.foo   web1                                     42 widgets     3 s',
      'gmetric.bar   10.0.0.9  some text that is too long for its column     3 s',
      'smon.big      a 3,0                           1152921504606846976       -',
      'gmetric.gone  web1                                           true    gone',
      '',
      '',
      'q quit   / filter   1-4 sort   r reverse   space pause   h help',
    ])
  })

  test('names the producers where there may be several, if there is room', () => {
    const rows = [
      row('gmetric.foo', 'web1', 7, { producer: 'main' }),
      row('gmetric.foo', 'web1', 8, { producer: 'east/rack1' }),
    ]
    const shown = (columns: number) => render(picture(rows), { columns, rows: 14 }, PLAIN).map((line) => line.trimEnd())
    expect(shown(80).slice(6, 9)).toEqual([
      'METRIC ^     PRODUCER    HOST            VALUE     AGE',
      'gmetric.foo  main        web1        7 widgets     3 s',
      'gmetric.foo  east/rack1  web1        8 widgets     3 s',
    ])
    expect(shown(40)).toContain('METRIC ^     HOST       VALUE     AGE')
  })

  test('shows only the rows that fit, and which they are', () => {
    const rows = Array.from({ length: 30 }, (_, i) => row(`m${i}`, '', i))
    const size = { columns: 100, rows: 12 }
    const lines = render(picture(rows, { view: { ...FIRST_VIEW, top: 5 } }), size, PLAIN)
    expect(tableHeight(size)).toBe(4)
    expect(lines.slice(7, 11).map((line) => line.slice(0, 3).trim())).toEqual(['m5', 'm6', 'm7', 'm8'])
    expect(lines[11]).toContain('6-9 of 30')
  })

  test.each<[string, Partial<Picture>, RegExp]>([
    ['that it is held still', { view: { ...FIRST_VIEW, isPaused: true } }, /^PAUSED {3}/],
    ['what is being typed', { view: { ...FIRST_VIEW, typed: 'a\x1b' } }, /^\/a\\x1b_/],
    ['what the filter leaves', { total: 7, view: { ...FIRST_VIEW, filter: 'w' } }, /^1 of 7 rows match w/],
    ['what is wrong', { message: 'no connection' }, /^no connection +$/],
    ['that there is more than it keeps', { isFull: true, total: 10_000 }, /^There are more than the 10000 rows shown/],
  ])('says in its last line %s', (_, more, expected) => {
    expect(render(picture([row('a', '', 1)], more), { columns: 120, rows: 12 }, PLAIN).at(-1)).toMatch(expected)
  })

  test('explains an empty table', () => {
    const size = { columns: 100, rows: 14 }
    expect(render(picture([]), size, PLAIN).join('\n')).toContain('No values yet for gmetric.*, smon.*.')
    expect(render(picture([]), size, PLAIN).join('\n')).toContain("`npx cinnabar top 'host.*'` shows")
    const filtered = picture([], { total: 3, view: { ...FIRST_VIEW, filter: 'w' } })
    expect(render(filtered, size, PLAIN).join('\n')).toContain('None of the 3 rows matches w')
  })

  test('dims what is gone, and colours what is nearly full', () => {
    const colors = pc.createColors(true)
    const lines = render(picture([row('a', '', 1, { goneMs: 1 })]), { columns: 100, rows: 12 }, colors)
    expect(lines[7]?.startsWith('\x1b[2ma ')).toBe(true)
    expect(lines[2]).toContain('\x1b[33m|')
  })

  test('helps', () => {
    const help = render(picture([], { view: { ...FIRST_VIEW, isHelp: true } }), { columns: 100, rows: 24 }, PLAIN)
    expect(help.join('\n')).toMatch(/KEYS(.|\n)*sort by metric, host, value, age(.|\n)*q, Ctrl-C +quit/)
  })

  test('is complete for a producer that reports nothing', () => {
    const host = new TopHost()
    host.take({ name: 'host.cpu.*', time: 1, value: rec(string('name', 'host.cpu.idle'), { ...VOID, name: 'value' }) })
    const lines = render(picture([], { host: host.summary() }), { columns: 80, rows: 14 }, PLAIN)
    expect(lines[0]).toMatch(/^producer {3}load - - - {3}tcp:/)
    expect(lines[1]).toMatch(/^cpu {2}\[ {20}\] - {3}user -/)
  })

  test('has exactly its size, whatever is shown', () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 })
    const content = fc.oneof(fc.double(), fc.bigInt(), fc.boolean(), text)
    const anyRow = fc
      .tuple(text, text, content, fc.constantFrom('', 'east/rack1'))
      .map(([metric, where, value, producer]) => row(metric, where, value, { producer }))
    const size = fc.record({ columns: fc.integer({ min: 1, max: 200 }), rows: fc.integer({ min: 1, max: 40 }) })
    fc.assert(
      fc.property(fc.array(anyRow, { maxLength: 30 }), size, text, fc.boolean(), (rows, given, message, isHelp) => {
        const view = { ...FIRST_VIEW, isHelp }
        const lines = render(picture(rows, { message, view, unitOf: () => message }), given, PLAIN)
        expect(lines).toHaveLength(given.rows)
        const isRight = (line: string) => cellWidth(line) === given.columns && !/[\p{Cc}\p{Cf}\u2028\u2029]/u.test(line)
        expect(lines.filter((line) => !isRight(line))).toEqual([])
      }),
    )
  })
})

describe('into a pipe', () => {
  test('every row is printed, without blanks at the end', () => {
    const rows = Array.from({ length: 60 }, (_, i) => row(`m${i}`, '', i))
    const lines = renderPlain(picture(rows, { isFull: true }), 100, PLAIN).split('\n')
    expect(lines).toHaveLength(5 + 2 + 60 + 1)
    expect(lines[6]).toMatch(/^METRIC/)
    expect(lines.every((line) => line === line.trimEnd())).toBe(true)
    expect(lines.at(-1)).toBe("There are more than the 60 rows shown. Show fewer: `npx cinnabar top 'gmetric.cpu_*'`")
  })

  test.each<[TopRow['content'], unknown]>([
    [1.5, 1.5],
    [true, true],
    ['a\x1b', 'a\x1b'],
    [12n, 12],
    [2n ** 60n, '1152921504606846976'],
    [Number.NaN, 'NaN'],
  ])('%s is JSON', (content, value) => {
    const line = toJsonLine(row('gmetric.foo', 'web1', content), 'widgets')
    expect(JSON.parse(line)).toEqual({ metric: 'gmetric.foo', host: 'web1', value, unit: 'widgets', time: 7 })
  })

  test('JSON names the producer where there may be several', () => {
    const line = toJsonLine(row('gmetric.foo', 'web1', 1, { producer: 'east' }), '')
    expect(JSON.parse(line)).toMatchObject({ metric: 'gmetric.foo', producer: 'east', host: 'web1' })
  })

  test('a counter that began anew has no rate', () => {
    const host = new TopHost()
    for (const [value, time] of [
      [10n, 1e6],
      [5n, 2e6],
      [25n, 4e6],
    ] as const) {
      host.take({ name: 'host.net.sent_bytes', time, value: uint64('', value) })
      expect(host.summary().net.sent).toBe(value === 25n ? 10 : undefined)
    }
  })
})
