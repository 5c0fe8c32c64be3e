import { describe, expect, test } from 'vitest'
import { FIRST_VIEW, filterOf, HELP, press, type TopView } from '../../../cli/top/view.ts'

const PAGE = { rows: 100, height: 10 }

function pressed(...keys: readonly string[]): TopView {
  return keys.reduce<TopView>((view, key) => {
    const next = press(view, key, PAGE)
    if (next === 'quit') throw new Error(`${key} quits`)
    return next
  }, FIRST_VIEW)
}

describe('a key', () => {
  test.each(['q', 'interrupt'])('%s quits', (key) => {
    expect(press(FIRST_VIEW, key, PAGE)).toBe('quit')
    expect(press({ ...FIRST_VIEW, isHelp: true }, key, PAGE)).toBe('quit')
  })

  test('sortKeys, by number or beside, and turns round', () => {
    expect(['1', '2', '3', '4'].map((key) => pressed(key).sort)).toEqual(['metric', 'host', 'value', 'age'])
    expect(pressed('right', '>').sort).toBe('value')
    expect(pressed('left').sort).toBe('age')
    expect(pressed('r').isReversed).toBe(true)
    expect(pressed('r', 'r').isReversed).toBe(false)
    expect(pressed('r', '2')).toMatchObject({ sort: 'host', isReversed: false })
    expect(pressed('r', '1')).toMatchObject({ sort: 'metric', isReversed: true })
  })

  test('scrolls, and not beyond either end', () => {
    expect(pressed('down', 'j', 'j', 'k').top).toBe(2)
    expect(pressed('page-down', 'page-down', 'page-up').top).toBe(10)
    expect(pressed('up').top).toBe(0)
    expect(pressed('end', 'down').top).toBe(90)
    expect(pressed('G', 'page-down', 'page-up').top).toBe(80)
    expect(pressed('G', 'g').top).toBe(0)
    expect(press({ ...FIRST_VIEW, top: 90 }, 'up', { rows: 20, height: 10 })).toMatchObject({ top: 9 })
    expect(press(FIRST_VIEW, 'down', { rows: 3, height: 10 })).toMatchObject({ top: 0 })
  })

  test('types a filter, which applies at once', () => {
    const typing = pressed('/', 'l', 'q', '?', 'backspace')
    expect(typing.typed).toBe('lq')
    expect(filterOf(typing)).toBe('lq')
    expect(pressed('/', 'l', 'q', 'enter')).toMatchObject({ typed: undefined, filter: 'lq' })
    expect(pressed('/', 'a', 'enter', '/', 'b', 'escape')).toMatchObject({ typed: undefined, filter: 'a' })
    expect(pressed('/', 'a', 'enter', 'escape').filter).toBe('')
    expect(pressed('/', '日', '😀', 'backspace', 'up', ' ').typed).toBe('日 ')
    expect(pressed('/', 'a', 'b', 'clear', 'c').typed).toBe('c')
    expect(press(typing, 'interrupt', PAGE)).toBe('quit')
    expect(pressed('/', ...'x'.repeat(300)).typed).toHaveLength(200)
  })

  test('holds still, and helps until the next one', () => {
    expect(pressed(' ').isPaused).toBe(true)
    expect(pressed(' ', ' ').isPaused).toBe(false)
    expect(pressed('h').isHelp).toBe(true)
    expect(pressed('?', ' ')).toMatchObject({ isHelp: false, isPaused: false })
  })

  test('without a meaning changes nothing', () => {
    expect(press(FIRST_VIEW, 'x', PAGE)).toBe(FIRST_VIEW)
  })

  test('with a meaning is in the help', () => {
    const reported = HELP.map(([keys]) => keys).join(' ')
    for (const key of ['q', 'r', '/', 'k', 'j', 'g', 'G', 'space', 'h', '?', '1', '4']) expect(reported).toContain(key)
  })
})
