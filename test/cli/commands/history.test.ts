/** What is remembered by tenant, and exports of it. */
import { describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { list, MORE, rec, runCli, type Script, string, uint64 } from '../fake-cli.ts'

const { ARRAY, DOUBLE, UINT64 } = BasicType
const DAY = 86_400_000_000n

describe('cinnabar history', () => {
  const of = (tenant: string, oldest: bigint, refused = 0n) => [
    string('tenant', tenant),
    uint64('samples', 7n),
    uint64('stored', 1_234_567n),
    uint64('series', 42n),
    uint64('bytes', 3n * 2n ** 20n),
    uint64('waiting', 5n),
    uint64('oldest', oldest),
    uint64('refused', refused),
    uint64('lost', 0n),
  ]
  const answers = (...records: readonly (readonly Field[])[]): Script => {
    return ({ of }) => {
      if (of === 'producer.sensors') return { followedBy: [{ answer: list() }] }
      return of === 'producer.history' ? { followedBy: [{ answer: list(...records) }] } : {}
    }
  }

  it('shows what is kept by tenant', async () => {
    const { code, out } = await runCli(['history'], answers(of('acme', 20_000n * DAY, 3n), of('', 0n)))
    expect(code).toBe(0)
    expect(out.join('\n').split('\n')).toEqual([
      'TENANT  SAMPLES  SERIES     BYTES  SINCE       WAITING  REFUSED  LOST',
      'acme      1.23M      42  3.00 MiB  2024-10-04        5        3     0',
      '(none)    1.23M      42  3.00 MiB  -                 5        0     0',
    ])
  })

  it('shows everything as JSON', async () => {
    const { out } = await runCli(['history', '--json'], answers(of('acme', DAY)))
    expect(JSON.parse(out.join(''))).toMatchObject({ tenant: 'acme', stored: 1234567, oldest: Number(DAY) })
  })

  it('says so if nothing is remembered, or not everything was shown', async () => {
    const nothing = await runCli(['history'], answers())
    expect([nothing.code, nothing.out, nothing.err.join()]).toEqual([0, [], expect.stringContaining('`keep`')])
    const failed: Script = ({ of }) => {
      const entry = [string('name', 'history/acme'), string('state', 'failed'), string('detail', 'it is too new')]
      if (of === 'producer.history') return { followedBy: [{ answer: list() }] }
      return of === 'producer.sensors' ? { followedBy: [{ answer: list(entry) }] } : {}
    }
    const { code, err } = await runCli(['history'], failed)
    expect([code, err.join()]).toEqual([1, expect.stringContaining('cannot be read: it is too new')])
    const cut = await runCli(['history'], answers(of('acme', 0n), MORE))
    expect([cut.code, cut.err.join()]).toEqual([1, expect.stringContaining('incomplete')])
  })
})

describe('cinnabar history export', () => {
  const numbers = (
    name: string,
    element: typeof UINT64 | typeof DOUBLE,
    items: readonly (bigint | number)[],
  ): Field => ({
    name,
    type: ARRAY,
    value: { element, items } as never,
  })
  interface Given {
    readonly tenant?: string
    readonly name?: string
    readonly host?: string
    readonly samples: readonly (readonly [ms: number, value: number])[]
    readonly ended?: readonly number[]
  }
  const piece = ({ tenant = 'acme', name = 'load', host = 'web1', samples, ended = [] }: Given): Field[] => [
    string('tenant', tenant),
    string('metric', `gmetric.${name}`),
    string('name', `gmetric_${name}`),
    { name: 'labels', ...rec(string('host', host)) } as Field,
    numbers(
      'times',
      UINT64,
      samples.map(([ms]) => BigInt(ms) * 1_000n),
    ),
    numbers(
      'values',
      DOUBLE,
      samples.map(([, value]) => value),
    ),
    numbers(
      'ended',
      UINT64,
      ended.map((ms) => BigInt(ms) * 1_000n),
    ),
  ]
  const more = [{ name: 'more', type: BasicType.BOOLEAN, value: true } as Field, string('after', 'x')]
  const pages = (...all: readonly Value[]): Script => {
    let asked = 0
    return ({ of }) => {
      if (of !== 'producer.history.select') return {}
      const answer = all[asked++] as Value
      return { result: 100 + asked, followedBy: [{ answer }] }
    }
  }
  const two = () =>
    pages(
      list(
        piece({
          samples: [
            [1_500, 1],
            [2_000, Number.POSITIVE_INFINITY],
          ],
        }),
        more,
      ),
      list(
        piece({ samples: [[3_001, Number.NaN]], ended: [2_500] }),
        piece({ name: 'swap', host: 'a"b\\c\nd,', samples: [[1, -0.5]] }),
      ),
    )

  it('writes OpenMetrics, page by page, with an end', async () => {
    const { code, out, producer } = await runCli(
      ['history', 'export', 'gmetric.*', 'host=web*', '--until', '1970-01-02T00:00Z'],
      two(),
    )
    expect(code).toBe(0)
    expect(out.join('\n').split('\n')).toEqual([
      '# TYPE gmetric_load unknown',
      'gmetric_load{host="web1"} 1 1.500',
      'gmetric_load{host="web1"} +Inf 2',
      'gmetric_load{host="web1"} NaN 3.001',
      '# TYPE gmetric_swap unknown',
      'gmetric_swap{host="a\\"b\\\\c\\nd,"} -0.5 0.001',
      '# EOF',
    ])
    const [first, second] = producer.asked.filter(({ of }) => of === 'producer.history.select')
    expect(first?.args).toEqual({
      host: 'web*',
      metric: 'gmetric.*',
      from: 0n,
      to: DAY,
      with_losses: true,
      with_families: true,
    })
    expect(second?.args).toEqual({ after: 'x' })
  })

  it('writes what is known of metrics above their samples, once for all of a histogram', async () => {
    const known = (name: string, type: string, help = '', unit = ''): Field =>
      ({
        name: 'family',
        ...rec(string('name', name), string('type', type), string('help', help), string('unit', unit)),
      }) as Field
    const of = (name: string, family?: Field): Field[] => [
      ...piece({ name, samples: [[1_000, 1]] }),
      ...(family === undefined ? [] : [family]),
    ]
    const waits = known('gmetric_wait_seconds', 'histogram', 'How "long"\\.\nAll of it.', 'seconds')
    const { out, producer } = await runCli(
      ['history', 'export', 'gmetric.*'],
      pages(
        list(
          of('load', known('gmetric_load', 'gauge', '', 'seconds')),
          of('sent_total', known('gmetric_sent_total', 'counter', 'All.')),
          of('odd', known('gmetric_odd', 'counter')),
          of('load_total', known('gmetric_load_total', 'counter')),
          of('wait_seconds_bucket', waits),
          of('wait_seconds_sum', waits),
          of('other'),
          of('sent_total', known('gmetric_sent_total', 'counter', 'All.')),
        ),
      ),
    )
    const line = (name: string): string => `gmetric_${name}{host="web1"} 1 1`
    expect(out.join('\n').split('\n')).toEqual([
      '# TYPE gmetric_load gauge',
      line('load'),
      '# TYPE gmetric_sent counter',
      '# HELP gmetric_sent All.',
      line('sent_total'),
      '# TYPE gmetric_odd unknown',
      line('odd'),
      '# TYPE gmetric_load_total unknown',
      line('load_total'),
      '# TYPE gmetric_wait_seconds histogram',
      '# UNIT gmetric_wait_seconds seconds',
      '# HELP gmetric_wait_seconds How \\"long\\"\\\\.\\nAll of it.',
      line('wait_seconds_bucket'),
      line('wait_seconds_sum'),
      '# TYPE gmetric_other unknown',
      line('other'),
      line('sent_total'),
      '# EOF',
    ])
    const [asked] = producer.asked.filter(({ of: name }) => name === 'producer.history.select')
    expect(asked?.args).toMatchObject({ with_families: true })
  })

  it('quotes names that Prometheus has only in quotes', async () => {
    const [tenant, metric, , , ...columns] = piece({ samples: [[1_000, 1]] }) as [Field, Field, Field, Field, Field]
    const labels = { name: 'labels', ...rec(string('host', 'a'), string('z é', 'b"')) } as Field
    const { out } = await runCli(
      ['history', 'export', 'x.y'],
      pages(list([tenant, metric, string('name', 'x.y'), labels, ...columns])),
    )
    expect(out.join('\n').split('\n')).toEqual(['# TYPE "x.y" unknown', '{"x.y",host="a","z é"="b\\""} 1 1', '# EOF'])
  })

  it('writes CSV, with the ends of series', async () => {
    const { out } = await runCli(['history', 'export', 'gmetric.*', '--format', 'csv'], two())
    expect(out.join('\n')).toBe(
      [
        'tenant,metric,name,labels,time,value',
        'acme,gmetric.load,gmetric_load,"{host=""web1""}",1970-01-01T00:00:01.500Z,1',
        'acme,gmetric.load,gmetric_load,"{host=""web1""}",1970-01-01T00:00:02.000Z,+Inf',
        'acme,gmetric.load,gmetric_load,"{host=""web1""}",1970-01-01T00:00:02.500Z,',
        'acme,gmetric.load,gmetric_load,"{host=""web1""}",1970-01-01T00:00:03.001Z,NaN',
        'acme,gmetric.swap,gmetric_swap,"{host=""a\\""b\\\\c\\nd,""}",1970-01-01T00:00:00.001Z,-0.5',
      ].join('\n'),
    )
  })

  const uints = (name: string, ...items: readonly bigint[]): Field => numbers(name, UINT64, items)
  const windows = (): Field[] => [
    ...piece({ samples: [] }).slice(0, 4),
    uint64('step_ms', 3_600_000n),
    uints('ends', 3_600_000_000n, 7_200_000_000n),
    ...['min', 'max', 'sum', 'first', 'last', 'resets'].map((name, at) => numbers(name, DOUBLE, [at, at + 10])),
    ...['count', 'first_times', 'last_times'].map((name) => uints(name, 5n, 6n)),
  ]
  const loss = (tenant: string, metric: string, count: bigint): Field[] => [
    string('tenant', tenant),
    string('metric', metric),
    uint64('from', 1_500_000n),
    uint64('to', 2_000_000n),
    uint64('lost', count),
    string('reason', 'overflow'),
  ]

  it('writes windows as CSV', async () => {
    const words = ['history', 'export', 'gmetric.load', '--step', '1h']
    const { code, out, producer } = await runCli([...words, '--format', 'csv'], pages(list(windows())))
    expect([code, out.join('\n')]).toEqual([
      0,
      [
        'tenant,metric,name,labels,time,min,max,sum,count,first,last',
        'acme,gmetric.load,gmetric_load,"{host=""web1""}",1970-01-01T01:00:00.000Z,0,1,2,5,3,4',
        'acme,gmetric.load,gmetric_load,"{host=""web1""}",1970-01-01T02:00:00.000Z,10,11,12,6,13,14',
      ].join('\n'),
    ])
    const [asked] = producer.asked.filter(({ of }) => of === 'producer.history.select')
    expect(asked?.args).toMatchObject({ step_ms: 3_600_000n, with_losses: true })
    const inText = await runCli(words, pages())
    expect([inText.code, inText.err.join()]).toEqual([2, expect.stringContaining('--format csv')])
    const short = await runCli(['history', 'export', 'gmetric.load', '--step', '1m'], pages())
    expect([short.code, short.err.join()]).toEqual([2, expect.stringContaining('at least 5m')])
  })

  it('says on the standard error which values are missing, of the tenant that is chosen', async () => {
    const sample = piece({ samples: [[1, 1]] })
    const lost = [loss('acme', 'gmetric.*', 7n), loss('', '', 0n), loss('acme', '', 1n)]
    const all = await runCli(['history', 'export', 'gmetric.load'], pages(list(...lost, sample)))
    const range = 'missing from 1970-01-01T00:00:01.500Z to 1970-01-01T00:00:02.000Z:'
    expect(all.err.join('\n').split('\n')).toEqual([
      `${range} 7 values of gmetric.* (overflow)`,
      `${range} values (overflow)`,
      `${range} 1 value (overflow)`,
    ])
    expect([all.code, all.out.at(-1)]).toEqual([0, '# EOF'])
    const words = ['history', 'export', 'gmetric.load', '--tenant', 'acme']
    const many = Array.from({ length: 23 }, () => loss('acme', 'gmetric.*', 7n))
    const cut = await runCli(words, pages(list(loss('north', '', 1n), ...many, sample)))
    expect(cut.err).toHaveLength(21)
    expect(cut.err.at(-1)).toContain('3 more ranges')
  })

  it('does not mix tenants, and has no end if it is not complete', async () => {
    const both = () => pages(list(piece({ samples: [[1, 1]] }), piece({ tenant: 'north', samples: [[1, 2]] })))
    const mixed = await runCli(['history', 'export', 'gmetric.load'], both())
    expect([mixed.code, mixed.err.join(), mixed.out.join()]).toEqual([
      2,
      expect.stringContaining('acme and north'),
      expect.not.stringContaining('EOF'),
    ])
    const one = await runCli(['history', 'export', 'gmetric.load', '--tenant', 'north'], both())
    expect([one.code, one.out.join('\n')]).toEqual([0, expect.stringContaining(' 2 0.001\n# EOF')])
    const void_ = { type: BasicType.VOID, value: null } as Value
    const cut = await runCli(
      ['history', 'export', 'gmetric.load'],
      pages(list(piece({ samples: [[1, 1]] }), more), void_),
    )
    expect([cut.code, cut.out.join()]).toEqual([1, expect.not.stringContaining('EOF')])
  })

  it('fails where nothing matches, and refuses what is no time', async () => {
    const nothing = await runCli(['history', 'export', 'gmetric.nothing'], pages(list()))
    expect([nothing.code, nothing.err.join()]).toEqual([1, expect.stringContaining('gmetric.nothing')])
    const wrong = await runCli(['history', 'export', 'gmetric.load', '--since', 'once'], pages())
    expect([wrong.code, wrong.producer.asked]).toEqual([2, []])
  })
})

describe('cinnabar history drop', () => {
  const script: Script = ({ of }) => {
    const result = rec(string('outcome', 'ok'), string('detail', 'dropped'))
    return of === 'history.drop' ? { followedBy: [{ answer: result, transaction: 1 }] } : {}
  }
  const argsOf = ({ producer }: Awaited<ReturnType<typeof runCli>>) =>
    producer.asked.filter(({ of }) => of === 'history.drop').map(({ args }) => args)

  it('names what goes, and asks', async () => {
    const line = ['history', 'drop', 'gmetric.load', 'host=web1', 'cpu=0', '--tenant', 'acme']
    const yes = await runCli(line, script, { answers: ['y'] })
    expect([yes.code, yes.err[0]]).toEqual([0, 'what is remembered of gmetric.load host=web1 cpu=0 of the tenant acme'])
    expect(argsOf(yes)).toEqual([{ metric: 'gmetric.load', labels: 'host=web1\ncpu=0', tenant: 'acme' }])
    const no = await runCli(line, script, { answers: ['n'] })
    expect([no.code, argsOf(no)]).toEqual([1, []])
    const nobody = await runCli(line, script)
    expect([nobody.code, argsOf(nobody)]).toEqual([2, []])
  })

  it('drops everything only of a tenant that is named', async () => {
    const { code, producer } = await runCli(['history', 'drop', '--yes'], script)
    expect([code, producer.asked]).toEqual([2, []])
    expect(argsOf(await runCli(['history', 'drop', '--tenant', 'acme', '--yes'], script))).toEqual([{ tenant: 'acme' }])
  })
})
