import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Value, VOID } from '../../../protocol/monitor/value.ts'
import { boolean, double, list, MORE, runCli, type Script, string, TIME, uint32 } from '../fake-cli.ts'

const parameter = (name: string, type: string, optional: boolean) => [
  string('name', name),
  string('type', type),
  boolean('optional', optional),
]
const metric = (name: string, unit = '') => [
  string('name', name),
  string('kind', 'continuous'),
  string('type', 'uint32'),
  string('unit', unit),
  string('description', 'What it is.'),
  { name: 'parameters', ...list(parameter('host', 'string', true), parameter('cpu', 'uint32', false)) },
]
const uint32Value = (value: number): Value => ({ type: BasicType.UINT32, value })
const answer = (value: Value) => ({ followedBy: [{ answer: value }] })

describe('metrics', () => {
  const pages: Script = ({ of, args }) => {
    expect(of).toBe('producer.metrics')
    return answer(args['after'] === 'b' ? list(metric('c')) : list(metric('a', 'MB'), metric('b'), MORE))
  }

  test('lists the catalogue, page by page', async () => {
    const { code, out, producer } = await runCli(['metrics', 'h*'], pages)
    expect(code).toBe(0)
    expect(out).toEqual([
      'NAME  KIND        TYPE    UNIT  PARAMETERS  DESCRIPTION',
      'a     continuous  uint32  MB    [host] cpu  What it is.',
      'b     continuous  uint32        [host] cpu  What it is.',
      'c     continuous  uint32        [host] cpu  What it is.',
    ])
    expect(producer.asked.map(({ args }) => args)).toEqual([{ match: 'h*' }, { match: 'h*', after: 'b' }])
    expect(producer.isClosed).toBe(true)
  })

  test('prints a JSON object per line', async () => {
    const { out } = await runCli(['metrics', '--json'], pages)
    expect(out.map((line) => JSON.parse(line).name)).toEqual(['a', 'b', 'c'])
    expect(JSON.parse(out[0]!).parameters[1]).toEqual({ name: 'cpu', type: 'uint32', optional: false })
  })

  test('fails if nothing matches', async () => {
    const { code, err } = await runCli(['metrics', 'x*'], () => answer(list()))
    expect({ code, err }).toEqual({ code: 1, err: ['cinnabar: no metric matches x*'] })
  })
})

describe('get', () => {
  const script: Script = ({ of, args }) => {
    if (of === 'host.load.one') return answer(double(0.42))
    if (of === 'gmetric.foo') return answer(list([string('host', 'n1'), uint32('value', 42)], MORE))
    if (of !== 'producer.metrics') return { status: 'NO_SUCH_METRIC' }
    const known = args['match'] === 'host.load.one' ? [metric('host.load.one', '%')] : []
    return answer(list(...(args['match'] === 'gmetric.*' ? [metric('gmetric.*')] : known)))
  }

  test('prints value, unit and time', async () => {
    const { out, err } = await runCli(['get', 'host.load.one'], script)
    expect({ out, err }).toEqual({
      out: [expect.stringMatching(/^host.load.one {2}0.4 % {2}2023-11-14 22:13:20.005 {2}\d+ d ago$/)],
      err: [],
    })
  })

  test('prints a table for a pattern, and reports that the answer is incomplete', async () => {
    const { code, out, err } = await runCli(['get', 'gmetric.foo'], script)
    expect(code).toBe(1)
    expect(out).toEqual([
      'HOST  VALUE  TIME',
      expect.stringMatching(/^n1 {7}42 {2}2023-11-14 22:13:20.005 {2}\d+ d ago$/),
    ])
    expect(err.join()).toMatch(/the answer is incomplete/)
  })

  test('prints a JSON object for each value, and one more if the answer is incomplete', async () => {
    const { code, out } = await runCli(['get', 'gmetric.foo', '--json'], script)
    expect(code).toBe(1)
    expect(out.map((line) => JSON.parse(line))).toEqual([
      { metric: 'gmetric.foo', time: TIME, host: 'n1', value: 42 },
      { lost: 0, reason: 'too long', metric: 'gmetric.foo' },
    ])
  })

  test('prints several metrics as one table', async () => {
    const several: Script = ({ of }) => {
      if (of === 'a.size') return answer(uint32Value(2_048))
      if (of === 'gmetric.foo') return answer(list([string('host', 'n1'), uint32('value', 42)]))
      return answer(list(...(of === 'producer.metrics' ? [metric('a.size', 'B')] : [])))
    }
    const { out } = await runCli(['get', 'gmetric.foo', 'a.size'], several)
    expect(out).toEqual([
      'NAME         HOST     VALUE  TIME',
      expect.stringMatching(/^a\.size {13}2\.00 KiB {2}2023/),
      'gmetric.foo  n1          42',
    ])
    expect((await runCli(['get', '--exact', 'a.size'], several)).out[0]).toMatch(/^a\.size {2}2048 B {2}2023/)
  })

  test('--raw prints values only, with all digits', async () => {
    const raw: Script = ({ of }) => {
      if (of === 'a') return answer(double(1 / 3))
      if (of === 'b') return answer(list([string('host', 'n1'), uint32('value', 42)]))
      return answer({ type: BasicType.REC, value: [uint32('x', 1)] })
    }
    expect((await runCli(['get', '--raw', 'a', 'b', 'c'], raw)).out).toEqual(['0.3333333333333333', '42', '{"x":1}'])
  })

  test('a metric that does not exist may be a misspelt one', async () => {
    const misspelt: Script = ({ of }) => {
      return of === 'producer.metrics' ? answer(list(metric('host.load.one'))) : { status: 'NO_SUCH_METRIC' }
    }
    const { code, err } = await runCli(['get', 'host.lod.one'], misspelt)
    expect(code).toBe(1)
    expect(err[0]).toMatch(/NO_SUCH_METRIC\)\. Did you mean `host\.load\.one`\?$/)
    expect(err).toHaveLength(2)
  })

  test('sends a host called 7 as the string that the family declares', async () => {
    const { producer } = await runCli(['get', 'gmetric.foo', 'host=7', 'cpu=7'], script)
    expect(producer.asked.find(({ of }) => of === 'gmetric.foo')?.args).toEqual({ host: '7', cpu: 7n })
  })

  test('sends labels that nothing declares as texts, and what any metric of a pattern declares as that', async () => {
    const open = [string('name', 'prometheus.cpu')]
    const parameters = list([string('name', 'core'), string('type', 'uint32')])
    const declaring = [string('name', 'prometheus.other'), { name: 'parameters', ...parameters }]
    const labelled: Script = ({ of, args }) => {
      if (of !== 'producer.metrics') return answer(double(1))
      return answer(args['match'] === 'prometheus.*' ? list(open, declaring) : list(open))
    }
    const { producer } = await runCli(['get', 'prometheus.cpu', 'cpu=0', 'code=200', 'le=0.5', 'core=1'], labelled)
    expect(producer.asked.find(({ of }) => of === 'prometheus.cpu')?.args).toEqual({
      cpu: '0',
      code: '200',
      le: '0.5',
      core: '1',
    })
    const all = await runCli(['get', 'prometheus.*', 'cpu=0', 'core=1'], labelled)
    expect(all.producer.asked.find(({ of }) => of === 'prometheus.*')?.args).toEqual({ cpu: '0', core: 1n })
  })

  test('does without a catalogue that it may not read', async () => {
    const refused: Script = ({ of }) => (of === 'a.b' ? answer(double(1)) : { status: 'NO_SUCH_METRIC' })
    const { code, producer } = await runCli(['get', 'a.b', 'n=7'], refused)
    expect(code).toBe(0)
    expect(producer.asked.find(({ of }) => of === 'a.b')?.args).toEqual({ n: '7' })
  })

  test('says which targets have not answered yet, if there is no value', async () => {
    const sensor = (name: string, awaited: number) => [
      string('name', name),
      {
        name: 'counters',
        type: BasicType.REC,
        value: [{ name: 'awaited', type: BasicType.UINT64, value: BigInt(awaited) }],
      } as const,
    ]
    const waiting: Script = ({ of }) => {
      if (of === 'prometheus.a') return answer(list())
      if (of !== 'producer.sensors') return { status: 'NO_SUCH_METRIC' }
      return answer(list(sensor('scrape/a', 1), sensor('scrape/b', 0), sensor('scrape/c', 1), MORE))
    }
    const { code, err } = await runCli(['get', 'prometheus.a'], waiting)
    expect({ code, err }).toEqual({
      code: 1,
      err: ['cinnabar: no value: nothing currently matches prometheus.a; no answer yet from scrape/a, scrape/c'],
    })
  })

  test('says what was probably meant where no metric has the name', async () => {
    const misspelt: Script = ({ of, args }) => {
      if (of !== 'producer.metrics' || args['match'] !== 'gmetric.*') return answer(list())
      return answer(list(metric('gmetric.load_one')))
    }
    expect((await runCli(['get', 'gmetric.lod_one'], misspelt)).err).toEqual([
      'cinnabar: no value: nothing currently matches gmetric.lod_one. Did you mean `gmetric.load_one`?',
    ])
  })

  test.each([
    [VOID, 'cinnabar: no value of a host=n1: its source has sent none, or only old ones'],
    [list(), 'cinnabar: no value: nothing currently matches a host=n1'],
  ])('fails where there is no value', async (value, message) => {
    const script: Script = ({ of }) => ({ followedBy: [{ answer: of === 'a' ? value : list() }] })
    const { code, out, err } = await runCli(['get', 'a', 'host=n1'], script)
    expect({ code, out, err }).toEqual({ code: 1, out: [], err: [message] })
  })
})

test('an answer that is not a list is reported', async () => {
  const { code, err } = await runCli(['channels'], () => ({
    followedBy: [{ answer: { type: BasicType.UINT32, value: 5 } }],
  }))
  expect({ code, err }).toEqual({ code: 1, err: ['cinnabar: the answer of producer.channels is not a list but 5'] })
})
