/** The one rule by which output is compared, and how a page is taken apart. */
import { describe, expect, it } from 'vitest'
import { readPage } from './page.ts'
import { idsIn, isShown, linesOf } from './shown.ts'

describe('what is shown', () => {
  it.each([
    ['numbers', '02:04:18.066  host.load.one  4.46', '11:59:00.001  host.load.one  0'],
    ['a negative number', 'at -1 °C', 'at 20.5 °C'],
    ['white space', 'A    B', 'A B'],
    ['an indented line', '  A B', 'A B'],
    ['anything for …', 'password: … (once)', 'password: x-y (once)'],
    ['lines for a line of …', 'a\n…\nb', 'a\n1\n2\nb'],
    ['no lines for a line of …', 'a\n…', 'a'],
    ['rows with ids in any order', 'ID\n1234567 a 2\n2345678 b -\nend', 'ID\n34567890 b -\n4567890 a 5\nend'],
    ['signs of expressions', "try: 'host.*' (now)", "try: 'host.*' (now)"],
  ])('takes %s', (_, shown, printed) => {
    expect(isShown(linesOf(shown), linesOf(printed))).toBe(true)
  })

  it.each([
    ['another word', 'host.load.one 1', 'host.load.two 1'],
    ['another sign', 'host.load', 'host-load'],
    ['a line more', 'a', 'a\nb'],
    ['a line less', 'a\nb', 'a'],
    ['a word for a number', '1', 'a'],
    ['words that run together', 'a b', 'ab'],
    ['a line broken', 'a b', 'a\nb'],
    ['other rows in another order', 'a 1\nb 2', 'b 2\na 1'],
    ['nothing', 'a', ''],
    ['something', '', 'a'],
  ])('does not take %s', (_, shown, printed) => {
    expect(isShown(linesOf(shown), linesOf(printed))).toBe(false)
  })
})

describe('ids', () => {
  it('that are shown stand for those that were printed', () => {
    const shown = ['channel 809438160; go on', '1 of 342622147']
    expect(idsIn(shown, ['channel 123456789; go on', '2 of 2222222222'])).toEqual([
      ['809438160', '123456789'],
      ['342622147', '2222222222'],
    ])
    expect(idsIn(['1111111 a', '2222222 b'], ['3333333 b', '4444444 a'])).toEqual([
      ['1111111', '4444444'],
      ['2222222', '3333333'],
    ])
    expect(idsIn(['…', 'a 1234567'], ['x', 'y', 'a 7654321'])).toEqual([])
  })
})

describe('a page', () => {
  const text = [
    '# The `one` heading, *twice*!',
    'See [it](a.md#b), `npm run x` and `](no)`.',
    '   ```ts other words',
    '   // file: a.ts',
    '     two',
    '   ```',
    '# The one heading twice',
    '<!-- console',
    '$ hidden',
    '-->',
  ].join('\n')
  const page = readPage('p.md', text)

  it('has fenced and hidden blocks with their lines and the heading above', () => {
    expect(page.blocks).toEqual([
      {
        line: 3,
        language: 'ts',
        words: ['other', 'words'],
        lines: ['// file: a.ts', '  two'],
        isHidden: false,
        file: 'a.ts',
        section: 'the-one-heading-twice',
      },
      {
        line: 8,
        language: 'console',
        words: [],
        lines: ['$ hidden'],
        isHidden: true,
        file: undefined,
        section: 'the-one-heading-twice-1',
      },
    ])
  })

  it('has anchors, links and what stands in backticks', () => {
    expect([...page.anchors]).toEqual(['the-one-heading-twice', 'the-one-heading-twice-1'])
    expect(page.links).toEqual([{ line: 2, text: 'a.md#b' }])
    expect(page.spans.map((span) => span.text)).toEqual(['one', 'npm run x', '](no)'])
  })

  it('has rows that go on with the npm command at the head of their table', () => {
    const table = '| `npm run` | x |\n|---|---|\n| `a` | `b` |\n| c | `d` |\n\n| `e` |\n|---|\n| `f` |'
    const texts = readPage('p.md', table).spans.map((span) => span.text)
    expect(texts).toEqual(['npm run', 'npm run a', 'b', 'd', 'e', 'f'])
  })

  it('that does not close a block is refused', () => {
    expect(() => readPage('p.md', '```ts\nx')).toThrow('p.md:1: this block is not closed')
  })
})
