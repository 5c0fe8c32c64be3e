import { expect, test, vi } from 'vitest'
import { parseAssignments, splitWords, toTypedArguments } from '../../cli/arguments.ts'
import type { CataloguedArgument } from '../../cli/records.ts'

const noTypes = async (): Promise<CataloguedArgument[]> => []
const declared = (name: string, type: string) => ({
  name,
  type,
  isOptional: true,
  description: '',
  isSecret: false,
  bounds: '',
})
const typed = (words: string[], types = noTypes) => toTypedArguments(parseAssignments(words), types)

test('words with "=" are arguments, others are metrics', () => {
  const { names, assignments } = splitWords(['host.load.*', 'host=n1', 'gmetric.a', 'q=a=b', 'empty='])
  expect(names).toEqual(['host.load.*', 'gmetric.a'])
  expect([...assignments]).toEqual([
    ['host', 'n1'],
    ['q', 'a=b'],
    ['empty', ''],
  ])
})

test.each([['novalue'], ['=x']])('%s is no argument', (word) => {
  expect(() => parseAssignments([word])).toThrow(/write name=value/)
})

test('an argument can be given only once', () => {
  expect(() => parseAssignments(['a=1', 'a=2'])).toThrow(/the argument a is given twice/)
})

test.each<[string, unknown]>([
  ['7', 7n],
  ['-7', -7n],
  ['9223372036854775808', 9223372036854775808n],
  ['18446744073709551616', '18446744073709551616'],
  ['0.5', 0.5],
  ['-.5', -0.5],
  ['1e3', 1000],
  ['5.', 5],
  ['true', true],
  ['false', false],
  ['True', 'True'],
  ['1.2.3', '1.2.3'],
  ['10.0.0.1', '10.0.0.1'],
  ['0x10', '0x10'],
  ['n1', 'n1'],
  ['-', '-'],
  ['', ''],
])('%s is sent as what it looks like where another type than a string is declared', async (text, value) => {
  expect(await typed([`a=${text}`], async () => [declared('a', 'double')])).toEqual({ a: value })
})

test.each(['cpu=0', 'code=200', 'le=5', 'le=0.005', 'quantile=0.99', 'port=9100', 'ok=true', 'id=-1', 'x=1e3'])(
  'a label that no declaration knows, or that is declared a string, is a text: %s',
  async (word) => {
    const [name = '', text] = word.split('=')
    expect(await typed([word])).toEqual({ [name]: text })
    expect(await typed([word], async () => [declared(name, 'string')])).toEqual({ [name]: text })
  },
)

test('the interval of polled metrics is a number also where the catalogue cannot be read', async () => {
  expect(await typed(['interval_ms=500', 'deadline_ms=7'])).toEqual({ interval_ms: 500n, deadline_ms: 7n })
})

test('a parameter declared a string takes what looks like a number', async () => {
  const types = async () => [declared('host', 'string'), declared('cpu', 'uint32')]
  expect(await typed(['host=7', 'cpu=7', 'other=true'], types)).toEqual({ host: '7', cpu: 7n, other: 'true' })
})

test('the declared types are queried only if a value does not look like a string', async () => {
  const types = vi.fn(noTypes)
  await typed(['host=n1', 'index=a'], types)
  expect(types).not.toHaveBeenCalled()
  await typed(['host=n1', 'index=1'], types)
  expect(types).toHaveBeenCalledOnce()
})

test('a metric may have "=" in its name, and a value a dot', () => {
  const { names, assignments } = splitWords(['gmetric.a=b', 'host=n1.example', 'x'])
  expect(names).toEqual(['gmetric.a=b', 'x'])
  expect([...assignments]).toEqual([['host', 'n1.example']])
})
