import { describe, expect, it } from 'vitest'
import { optionsIn } from './options.ts'

const DEFAULTS = { values: 1_000, dir: '/tmp', through: false } as const

describe('optionsIn', () => {
  it('gives the defaults where nothing is said', () => {
    expect(optionsIn([], DEFAULTS)).toEqual({ values: 1_000, dir: '/tmp', through: false })
  })

  it('takes a number, text or a flag, as the default is one', () => {
    const given = optionsIn(['--values', '2e6', '--dir=7', '--through'], DEFAULTS)
    expect(given).toEqual({ values: 2_000_000, dir: '7', through: true })
  })

  it.each([
    [['--values', 'many'], '--values many: a number is needed'],
    [['--values='], '--values : a number is needed'],
    [['--value', '3'], "Unknown option '--value'"],
    [['3'], 'Unexpected argument'],
  ])('refuses %j', (argv, message) => {
    expect(() => optionsIn(argv, DEFAULTS)).toThrow(message)
  })
})
