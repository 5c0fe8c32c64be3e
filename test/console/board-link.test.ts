import { describe, expect, it } from 'vitest'
import { parseScope } from '../../auth/permissions.ts'
import type { ChartSpec } from '../../console/board.ts'
import { boardLink, SHARED, scopeOf, sharedBoardOf, tokenNameOf } from '../../console/board-link.ts'
import { parseRoute } from '../../console/route.ts'

const chart = (...metrics: string[]): ChartSpec => ({
  lines: metrics.map((metric) => ({ metric, args: { host: 'web1' } })),
})
const BOARD = [chart('gmetric.load_one', 'gmetric.load_five'), chart('host.load.one', 'gmetric.load_one')]
const TOKEN = `cnb_${'a'.repeat(43)}`

describe('the scope of a link', () => {
  it('names each metric of the board once, and the lists that charts need, for nothing but reading', () => {
    const lists = ['producer.metrics', 'producer.recent', 'producer.history.select']
    const expected = ['gmetric.load_one', 'gmetric.load_five', 'host.load.one', ...lists]
    expect(parseScope(scopeOf(BOARD) ?? '')).toEqual(expected.map((object) => ({ command: 'WATCH', object })))
  })

  it.each([['a b'], ['a;EXECUTE *'], ['a\nEXECUTE *'], ['a\u00a0b']])(
    'is none for a board with the metric %j, which would be more than one word',
    (metric) => {
      expect(scopeOf([chart('host.load.one', metric)])).toBeUndefined()
    },
  )

  it('is none for more metrics than a scope has lines', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => chart(`test.m${index}`))
    expect(parseScope(scopeOf(many(61)) ?? '')).toHaveLength(64)
    expect(scopeOf(many(62))).toBeUndefined()
  })
})

describe('the link', () => {
  it('has the token and the board in the fragment alone, in place of the one of the page', () => {
    const link = boardLink('https://monitor.example/console/#/board?name=x', BOARD, 'Räume & Co', TOKEN)
    const { origin, pathname, search, hash } = new URL(link)
    expect([origin, pathname, search]).toEqual(['https://monitor.example', '/console/', ''])
    const { view, object, args } = parseRoute(hash)
    expect([view, object]).toEqual([SHARED, ''])
    expect(sharedBoardOf(args)).toEqual({ token: TOKEN, name: 'Räume & Co', charts: BOARD })
  })

  it('that is not whole is a board without charts or token', () => {
    expect(sharedBoardOf(parseRoute('#/shared?chart=%').args)).toEqual({ token: '', name: '', charts: [] })
  })
})

it('is listed by the name of the board, as far as a token may have one', () => {
  expect(tokenNameOf('ours')).toBe('board ours')
  expect(tokenNameOf('')).toBe('board')
  expect([...tokenNameOf('😀'.repeat(80))]).toHaveLength(64)
})
