/** A text that is read with the memory of those before it says the same as one that is read without. */
import { describe, expect, it } from 'vitest'
import { TextMemory, TextParser } from '../../../protocol/prometheus/text.ts'
import { familyMetadata, type TextFormat } from '../../../protocol/prometheus/text-line.ts'
import { seeds } from '../../support/long.ts'
import { Random } from '../../support/random.ts'
import { SampleList, TextReader } from '../../support/text-samples.ts'

const NUMBERS = ['0', '-0', '1', '17', '-3.5', '1e3', '1.5E-07', '1.7640302893456e+09', '0.1', '123456789012345', '.5']
const ODD_NUMBERS = [
  '5.',
  '+1',
  'NaN',
  '+Inf',
  '-Inf',
  '0.30000000000000004',
  '1234567890123456789',
  '1e400',
  '4.9e-324',
]

const TEXT = `# HELP a Of a.
# TYPE a counter
a{b="c"} 1
a{b="d"} 2
# HELP "ü" Größe
# TYPE "ü" gauge
{"ü",ort="Köln"} 3
e 4
`

describe('a text that is read again', () => {
  it('is recognised, but for its values', () => {
    const reader = new TextReader()
    expect(reader.read(TEXT).looked).toBe(4)
    const again = reader.read(TEXT.replace('d"} 2', 'd"} 22.5').replace('n"} 3', 'n"} NaN'))
    expect(again.looked).toBe(0)
    expect(again.samples.map(({ series, value }) => [series, value])).toEqual([
      ['a{b="c"}', 1],
      ['a{b="d"}', 22.5],
      ['{"ü",ort="Köln"}', Number.NaN],
      ['e', 4],
    ])
  })

  it('is recognised in pieces of one byte', () => {
    const reader = new TextReader()
    reader.read(TEXT)
    expect(reader.read(TEXT, 1)).toEqual(reader.read(TEXT))
    expect(reader.read(TEXT, 1).looked).toBe(0)
  })

  it('of lines that are new, gone or elsewhere only these are read', () => {
    const reader = new TextReader()
    reader.read(TEXT)
    expect(reader.read(TEXT.replace('a{b="c"} 1\n', '')).looked).toBe(0)
    expect(reader.read(TEXT).looked).toBe(1)
    expect(reader.read(`${TEXT}f 5\n`).looked).toBe(1)
    expect(reader.read(`${TEXT}f 6\n`).looked).toBe(0)
    expect(reader.read(`g 6\n${TEXT}`).looked).toBe(1)
  })

  it('a series is not taken for one whose name begins like it', () => {
    const reader = new TextReader()
    reader.read('a 1\nab 2\n')
    expect(reader.read('ab 3\na 4\n').samples).toMatchObject([
      { series: 'ab', value: 3 },
      { series: 'a', value: 4 },
    ])
  })

  it.each([
    ['a name, and then a blank and labels after it', ['foo 1\n', 'foo {a="b"} 1\n']],
    ['both, in another order', ['foo 1\nfoo {a="b"} 2\n', 'foo {a="b"} 2\nfoo 1\n']],
    ['a line that becomes longer than it may be', [`${'a'.repeat(65_533)} 1\n`, `${'a'.repeat(65_533)} 12\n`]],
    ['comments in another order', ['# HELP a x\n# TYPE a counter\na 1\n', '# TYPE a counter\n# HELP a y\na 1\n']],
  ])('%s: read as without a memory', (_, texts) => {
    const reader = new TextReader()
    const attempt = (of: TextReader, text: string): unknown => {
      try {
        const { samples, families } = of.read(text)
        return { samples, families }
      } catch (error) {
        return (error as Error).message
      }
    }
    for (const text of [...texts, ...texts]) expect(attempt(reader, text)).toEqual(attempt(new TextReader(), text))
  })

  it('in another format is read anew', () => {
    const memory = new TextMemory<{ readonly text: string }>()
    const read = (format: TextFormat, text: string): ReadonlyMap<string, unknown> => {
      const parser = new TextParser(format, { lineBytes: 100, families: 10 }, new SampleList(), memory)
      for (const _ of parser.push(Buffer.from(text)));
      for (const _ of parser.end());
      return parser.families
    }
    read('prometheus', '# UNIT foo bar\nfoo 1\n')
    expect(() => read('openmetrics', '# UNIT foo bar\nfoo 1\n# EOF\n')).toThrow('does not end with its unit')
    expect(read('openmetrics', '#TYPE foo counter\nfoo 1\n# EOF\n').size).toBe(1)
    expect(read('prometheus', '#TYPE foo counter\nfoo 1\n').size).toBe(0)
  })

  it('of very many lines the first are recognised', () => {
    const reader = new TextReader()
    const text = Array.from({ length: 40_000 }, (_, index) => `a${index} 1\n`).join('')
    reader.read(text)
    expect(reader.read(text).looked).toBe(40_000 - 32_768)
    expect(reader.read(text).samples).toHaveLength(40_000)
  })

  it('of a family another comment is heard', () => {
    const reader = new TextReader()
    reader.read(TEXT)
    const other = reader.read(TEXT.replace('Of a.', 'Of others.'))
    expect(familyMetadata('a', other.families)).toEqual({ type: 'counter', help: 'Of others.', unit: '' })
    expect(familyMetadata('a', reader.read(TEXT.replace('# HELP a Of a.\n', '')).families)?.help).toBe('')
  })

  it('what is wrong in it has its line and offset, and the memory stays', () => {
    const reader = new TextReader()
    reader.read(TEXT)
    expect(() => reader.read(TEXT.replace('e 4', 'e x'))).toThrow(
      expect.objectContaining({ message: 'line 8: "x" is no value', offset: Buffer.byteLength(TEXT) - 4 }),
    )
    expect(reader.read(TEXT).looked).toBe(0)
  })

  it.each([...NUMBERS, ...ODD_NUMBERS.filter((number) => number !== '1e400')])('%s is the same number', (number) => {
    const reader = new TextReader()
    reader.read('a 1\n')
    const { samples, looked } = reader.read(`a ${number}\n`)
    expect(looked).toBe(0)
    expect(samples).toEqual(new TextReader().read(`a ${number}\n`).samples)
    const plain = Number(number)
    if (!Number.isNaN(plain)) expect(samples[0]?.value).toBe(plain)
  })

  it.each(['', 'x', '1 x', '1e', '1e+', '-', '.', '1.5.2', '0x10', '1_000', '1e400'])(
    '"%s" is no value there either',
    (number) => {
      const reader = new TextReader()
      reader.read('a 1\n')
      expect(() => reader.read(`a ${number}\n`)).toThrow(/^line 1: /)
    },
  )
})

describe.each(seeds({ short: 20, long: 400 }))('random texts that change, seed %i', (seed) => {
  it('say the same with a memory and without', () => {
    const random = new Random(seed)
    const pick = <T>(of: readonly T[]): T => of[random.below(of.length)] as T
    const numbers = [...NUMBERS, ...ODD_NUMBERS].filter((number) => number !== '1e400')
    const line = (): (() => string) => {
      const name = `${pick(['a', 'ab', 'node_cpu', 'x_total'])}${random.below(6)}`
      const labels = pick(['', `{l="${random.below(4)}"}`, `{l="ü${random.below(3)}",m="} 1"}`, `{ l = "x" , }`])
      const end = pick(['\n', '\n', '\n', '\r\n'])
      const blank = pick([' ', ' ', ' ', '  ', '\t'])
      if (random.below(5) === 0) {
        const said = pick(['HELP', 'TYPE', 'XYZ'])
        const text = said === 'TYPE' ? pick(['counter', 'gauge']) : pick(['one', 'two ü'])
        return () => `# ${said} ${name} ${text}${end}`
      }
      const time = pick(['', '', '', ' 1700000000000'])
      return () => name + labels + blank + pick(numbers) + time + end
    }
    const lines = Array.from({ length: 30 }, line)
    const reader = new TextReader()
    for (let round = 0; round < 12; round++) {
      for (let change = random.below(4); change > 0; change--) {
        const at = random.below(lines.length)
        const kind = random.below(4)
        if (kind === 0) lines.splice(at, 1)
        else if (kind === 1) lines.splice(at, 0, line())
        else if (kind === 2) lines[at] = line()
        else lines.push(...lines.splice(0, at))
      }
      const text = lines.map((one) => one()).join('')
      const { samples, families } = reader.read(text, pick([1, 7, 100_000]))
      const fresh = new TextReader().read(text)
      expect(samples).toEqual(fresh.samples)
      expect([...families].sort()).toEqual([...fresh.families].sort())
    }
  })
})
