import { describe, expect, it } from 'vitest'
import {
  Boards,
  boardArgs,
  type ChartSpec,
  chartLink,
  chartOfUrl,
  chartsOf,
  chartText,
  decodeChart,
  encodeChart,
  MAX_CHARTS,
} from '../../console/board.ts'
import { BrowserStorage } from '../../console/browser-storage.ts'
import { linkTo, parseRoute } from '../../console/route.ts'

const LOAD: ChartSpec = { lines: [{ metric: 'gmetric.load_one', args: { host: 'web1' } }] }
const HOSTILE: ChartSpec = {
  lines: [
    { metric: 'gmetric.a/b;c=d,e&f?g#h%41 +"<img onerror>"', args: { host: 'א;=,/&#?%', 'x=y': '' } },
    { metric: 'x'.repeat(240), args: {} },
  ],
  scale: 'rate',
}

class Kept {
  readonly #items = new Map<string, string>()
  isFull = false
  getItem(key: string): string | null {
    return this.#items.get(key) ?? null
  }
  setItem(key: string, value: string): void {
    if (this.isFull) throw new Error('QuotaExceededError')
    this.#items.set(key, value)
  }
}

function boardsIn(kept: Kept): Boards {
  return new Boards(new BrowserStorage(() => kept))
}

describe('a chart as text', () => {
  it('is readable', () => {
    expect(encodeChart({ ...LOAD, scale: 'rate' })).toBe('gmetric.load_one;host=web1/rate')
  })

  it.each<ChartSpec>([LOAD, HOSTILE, { ...LOAD, scale: 'total' }])('comes back as it was', (chart) => {
    expect(decodeChart(encodeChart(chart))).toEqual(chart)
  })

  it.each(['', ',', ';host=x', '%', 'a,,b'])('is none if it is %j', (text) => {
    expect(decodeChart(text)).toBeUndefined()
  })

  it.each([undefined, 'rate', 'total'] as const)(
    'comes back from the URL of its metric, with the scale %s',
    (scale) => {
      const chart: ChartSpec = { lines: [LOAD.lines[0]!, HOSTILE.lines[0]!], ...(scale && { scale }) }
      const { view, object, args } = parseRoute(chartLink(chart))
      expect(view).toBe('metrics')
      expect(chartOfUrl(object, args)).toEqual(chart)
    },
  )
})

describe('a chart as people read it', () => {
  const line = (metric: string, host: string) => ({ metric, args: { host } })
  it.each([
    [[line('a', 'web1')], 'a host=web1'],
    [[line('a', 'web1'), line('b', 'web1')], 'a, b host=web1'],
    [[line('a', 'web1'), line('a', 'web2')], 'a host=web1, host=web2'],
    [[line('a', 'web1'), line('b', 'web2')], 'a host=web1, b host=web2'],
    [[{ metric: 'a', args: {} }], 'a'],
  ])('%j: %s', (lines, text) => expect(chartText({ lines })).toBe(text))
})

describe('a board in a URL', () => {
  it('comes back as it was, with its name', () => {
    const { view, args } = parseRoute(linkTo('board', '', boardArgs([LOAD, HOSTILE], 'a & b')))
    expect(view).toBe('board')
    expect(args.get('name')).toBe('a & b')
    expect(chartsOf(args)).toEqual([LOAD, HOSTILE])
  })

  it('has a bound, and leaves out what is no chart', () => {
    const args = new URLSearchParams([['chart', '%'], ...Array.from({ length: 99 }, (_, n) => ['chart', `m${n}`])])
    expect(chartsOf(args)).toHaveLength(MAX_CHARTS - 1)
  })
})

describe('Boards', () => {
  it('keeps boards under names', () => {
    const kept = new Kept()
    expect(boardsIn(kept).save('ops', [LOAD])).toBe('')
    expect(boardsIn(kept).save('__proto__', [])).toBe('')
    const boards = boardsIn(kept)
    expect(boards.names).toEqual(['__proto__', 'ops'])
    expect(chartsOf(new URLSearchParams(boards.get('ops')))).toEqual([LOAD])
    expect(boards.delete('ops')).toBe('')
    expect(boards.names).toEqual(['__proto__'])
    expect(boards.get('constructor')).toBeUndefined()
  })

  it('pins a chart once to the board that was shown last', () => {
    const boards = boardsIn(new Kept())
    boards.opened([HOSTILE], 'ops')
    expect(boards.pin(LOAD)).toBe('')
    expect(boards.pin(LOAD)).toBe('')
    const last = new URLSearchParams(boards.last)
    expect(last.get('name')).toBe('ops')
    expect(chartsOf(last)).toEqual([HOSTILE, LOAD])
  })

  it('replaces no board of another name', () => {
    const boards = boardsIn(new Kept())
    boards.save('ops', [LOAD])
    expect(boards.save('ops', [])).toContain('There is a board ops already')
    expect(boards.save('ops', [HOSTILE], 'other')).toContain('There is a board ops already')
    expect(boards.isKept('ops', [LOAD])).toBe(true)
    expect(boards.save('ops', [HOSTILE], 'ops')).toBe('')
    expect([boards.isKept('ops', [LOAD]), boards.isKept('ops', [HOSTILE]), boards.isKept('none', [])]).toEqual([
      false,
      true,
      false,
    ])
  })

  it('works in a browser that lets the page store nothing', () => {
    const boards = new Boards(
      new BrowserStorage(() => {
        throw new Error('SecurityError')
      }),
    )
    expect([boards.names, boards.last]).toEqual([[], ''])
    expect(boards.save('ops', [LOAD])).toContain('switched off')
  })

  it('says why it cannot keep one', () => {
    const kept = new Kept()
    const boards = boardsIn(kept)
    expect(boards.save('', [])).toBe('A name has 1 to 80 characters.')
    kept.isFull = true
    expect(boards.save('ops', [LOAD])).toContain('storage is full')
  })

  it('takes what somebody else has written for nothing', () => {
    const kept = new Kept()
    for (const text of ['{', 'null', '[]', '"x"', '{"a":1}']) {
      kept.setItem('cinnabar.boards', text)
      expect(boardsIn(kept).names).toEqual([])
    }
  })

  it('has at most 40 charts on a board', () => {
    const boards = boardsIn(new Kept())
    const charts = Array.from({ length: MAX_CHARTS }, (_, n): ChartSpec => ({ lines: [{ metric: `m${n}`, args: {} }] }))
    boards.opened(charts, '')
    expect(boards.pin(LOAD)).toBe('A board has at most 40 charts: remove one first.')
  })
})
