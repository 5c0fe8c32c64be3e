import { describe, expect, it } from 'vitest'
import {
  Boards,
  boardArgs,
  type ChartSpec,
  chartLink,
  chartOfUrl,
  chartsOf,
  chartsText,
  chartText,
  decodeChart,
  encodeChart,
  MAX_CHARTS,
  placeOf,
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

const EXPRESSION: ChartSpec = { lines: [], expr: 'sum by (host) (rate(x{a="/,;="}[5m])) # é' }

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

  it.each([
    [
      { board: 7, version: 3 },
      { board: 7, version: 3 },
    ],
    [{ board: 7 }, { board: 7, version: undefined }],
  ])('says which board of the server it is: %j', (place, found) => {
    const { args } = parseRoute(linkTo('board', '', boardArgs([LOAD], 'ops', place)))
    expect([placeOf(args), chartsOf(args)]).toEqual([found, [LOAD]])
  })

  it.each(['board=0', 'board=-1', 'board=1.5', 'board=x', 'version=3', 'board=99999999999'])(
    'is none of the server with %s',
    (args) => expect(placeOf(new URLSearchParams(args))).toBeUndefined(),
  )

  it('has a bound, and leaves out what is no chart', () => {
    const args = new URLSearchParams([['chart', '%'], ...Array.from({ length: 99 }, (_, n) => ['chart', `m${n}`])])
    expect(chartsOf(args)).toHaveLength(MAX_CHARTS - 1)
  })
})

describe('Boards', () => {
  it('has those that earlier versions have kept, until they are deleted', () => {
    const kept = new Kept()
    kept.setItem('cinnabar.boards', JSON.stringify({ ops: chartsText([LOAD]), ['__proto__']: '', other: 7 }))
    const boards = boardsIn(kept)
    expect(boards.names).toEqual(['__proto__', 'ops'])
    expect(chartsOf(new URLSearchParams(boards.get('ops')))).toEqual([LOAD])
    expect(boards.delete('ops')).toBe('')
    expect(boards.names).toEqual(['__proto__'])
    expect(boards.get('constructor')).toBeUndefined()
  })

  it('pins a chart once to the board that was shown last', () => {
    const boards = boardsIn(new Kept())
    boards.opened(String(new URLSearchParams(boardArgs([HOSTILE], 'ops', { board: 7, version: 2 }))))
    expect(boards.pin(LOAD)).toBe('')
    expect(boards.pin(LOAD)).toBe('')
    const last = new URLSearchParams(boards.last)
    expect(placeOf(last)).toEqual({ board: 7, version: 2 })
    expect(last.get('name')).toBe('ops')
    expect(chartsOf(last)).toEqual([HOSTILE, LOAD])
  })

  it('works in a browser that lets the page store nothing', () => {
    const boards = new Boards(
      new BrowserStorage(() => {
        throw new Error('SecurityError')
      }),
    )
    expect([boards.names, boards.last]).toEqual([[], ''])
    expect(boards.opened('')).toContain('switched off')
  })

  it('says why it cannot keep one', () => {
    const kept = new Kept()
    kept.isFull = true
    expect(boardsIn(kept).opened('chart=a')).toContain('storage is full')
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
    boards.opened(chartsText(charts))
    expect(boards.pin(LOAD)).toBe('A board has at most 40 charts: remove one first.')
  })
})

describe('a chart of an expression', () => {
  it('is text like any other, and links to the view of queries', () => {
    expect(decodeChart(encodeChart(EXPRESSION))).toEqual(EXPRESSION)
    const { charts } = { charts: chartsOf(new URLSearchParams(chartsText([EXPRESSION, LOAD]))) }
    expect(charts).toEqual([EXPRESSION, LOAD])
    expect(chartText(EXPRESSION)).toBe(EXPRESSION.expr)
    const { view, args } = parseRoute(chartLink(EXPRESSION))
    expect([view, args.get('expr'), args.get('show')]).toEqual(['query', EXPRESSION.expr, 'chart'])
    expect(decodeChart('=%')).toBeUndefined()
  })
})
